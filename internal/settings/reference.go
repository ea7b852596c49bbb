package settings

import (
	"strings"
)

// Entry is one setting, for people.
type Entry struct {
	Key  string   // in the ConfigMap karpenter-global-settings; empty: none
	Env  []string // the preferred name first
	Flag string   // empty: none
	// Default is what holds where nothing is set; empty: nothing.
	Default string
	Help    string
}

// Reference lists what the controller does and what the process is like, in the
// order of the lists that are read by [Parse].
func Reference() (controller, process []Entry) {
	for _, o := range options {
		controller = append(controller, entry(o.key, o.env, o.standard, o.help))
	}
	controller = append(controller, Entry{Key: tagPrefix + "<key>", Help: "tag for everything that is made in the cloud"})
	for _, o := range processOptions {
		process = append(process, entry("", o.env, o.standard, o.help))
	}
	for _, o := range ignored {
		process = append(process, entry("", []string{o.env}, "", "no effect: "+o.why))
	}
	return controller, process
}

func entry(key string, env []string, standard, help string) Entry {
	e := Entry{Key: key, Env: env, Default: standard, Help: help}
	if len(env) > 0 {
		e.Flag = "--" + flagOf(env)
	}
	return e
}

// flagOf is the preferred name in lower case with dashes.
func flagOf(env []string) string { return strings.ToLower(strings.ReplaceAll(env[0], "_", "-")) }
