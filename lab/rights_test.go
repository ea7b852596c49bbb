package lab_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"karpenter/lab"
	"karpenter/lab/rights"
)

// unprovoked are rights, by how they begin, that the tests of this package may do
// without, with what needs them.
var unprovoked = map[string]string{
	"delete pods":                  "a pod that stays beyond the time that its machine has left",
	"patch events":                 "an event that is told again after minutes is counted up",
	"create configmaps in":         "the journal begins a ConfigMap",
	"get configmaps karpenter-j":   "the journal is read after a start",
	"update configmaps karpenter-": "the journal goes round its ConfigMaps in hours",
}

// checkRights holds what the controller asked of the API server, in all tests,
// against the rights that the chart gives it, under which it ran: nothing may
// have been refused, and nothing may be given that is not needed.
func checkRights(root string) error {
	log, err := os.Open(shared.Cluster.AuditLog())
	if err != nil {
		return err
	}
	defer log.Close()
	requests, err := rights.FromAudit(log, shared.Cluster.Audited)
	if err != nil {
		return err
	}
	var problems []error
	for _, r := range requests.Refused {
		problems = append(problems, fmt.Errorf("the controller may not %s: the chart's rules lack it", r))
	}
	rendered, err := lab.Rendered(root)
	if err != nil {
		return err
	}
	granted, err := rights.Granted(bytes.TrimSpace(rendered), "karpenter", "karpenter")
	if err != nil {
		return err
	}
	// A part of the tests needs a part of the rights.
	if flag.Lookup("test.run").Value.String() == "" && !flag.Lookup("test.short").Value.(flag.Getter).Get().(bool) {
		problems = append(problems, unneeded(granted, requests)...)
	}
	return errors.Join(problems...)
}

func unneeded(granted []rights.Right, requests rights.Requests) (problems []error) {
	unused := rights.Unused(granted, requests)
	var without []string
	for _, r := range unused {
		watch := r
		watch.Verb = "watch"
		switch {
		case r.Verb == "list" && slices.Contains(granted, watch) && !slices.Contains(unused, watch):
			// Older API servers do not stream what is there: they are asked for a list
			// before the watch.
		case slices.ContainsFunc(slices.Collect(maps.Keys(unprovoked)), func(begin string) bool { return strings.HasPrefix(r.String(), begin) }):
			without = append(without, r.String())
		default:
			problems = append(problems, fmt.Errorf("no test needs the right to %s: take it out of the chart, or say in unprovoked what needs it", r))
		}
	}
	fmt.Printf("rights of the chart: %d, nothing was refused; not needed by these tests: %s\n", len(granted), strings.Join(without, ", "))
	return problems
}
