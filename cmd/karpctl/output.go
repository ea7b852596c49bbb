package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// formats are what -o takes, in every command.
var formats = []string{"table", "json", "yaml"}

// outputFlag adds -o to a command.
func outputFlag(cmd *cobra.Command, format *string, usual string) {
	cmd.Flags().StringVarP(format, "output", "o", usual, "table, json or yaml")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
}

// knownFormat refuses what -o does not take.
func knownFormat(format string) error {
	if !slices.Contains(formats, format) {
		return errUsage{fmt.Errorf("-o %s: no such format; choose table, json or yaml", format)}
	}
	return nil
}

// write prints an answer: as JSON or YAML the value, as a table what table
// prints.
func write(w io.Writer, format string, value any, table func(io.Writer) error) error {
	switch format {
	case "json":
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(value)
	case "yaml":
		data, err := yaml.Marshal(value)
		if err == nil {
			_, err = w.Write(data)
		}
		return err
	}
	return table(w)
}

// columns prints rows under a head, in columns.
func columns(w io.Writer, head []string, rows [][]string) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for _, row := range append([][]string{head}, rows...) {
		fmt.Fprintln(t, strings.TrimRight(strings.Join(row, "\t"), "\t"))
	}
	return t.Flush()
}

// patience is how long something may take before it is told what goes on, and
// how often it is told that it still does.
const (
	patience = time.Second
	again    = 5 * time.Second
)

// progress says on w what goes on, if it takes longer than a second, until the
// result is called. Only files are told: what is kept in memory is no person.
func progress(w io.Writer, what string) (done func()) {
	if _, file := w.(*os.File); !file {
		return func() {}
	}
	stop, ended := make(chan struct{}), make(chan struct{})
	begun := time.Now()
	go func() {
		defer close(ended)
		wait := patience
		for {
			select {
			case <-stop:
				return
			case <-time.After(wait):
				fmt.Fprintf(w, "%s … %s\n", what, time.Since(begun).Round(time.Second))
				wait = again
			}
		}
	}()
	return sync.OnceFunc(func() { close(stop); <-ended })
}

// program is what the user has called: as a plugin of kubectl it has another name.
func program() string {
	name := os.Args[0]
	name = strings.TrimSuffix(name[strings.LastIndexAny(name, `/\`)+1:], ".exe")
	if plugin, ok := strings.CutPrefix(name, "kubectl-"); ok {
		return "kubectl " + strings.ReplaceAll(plugin, "_", "-")
	}
	return "karpctl"
}
