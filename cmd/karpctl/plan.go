package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"karpenter/internal/core/schedule"
	"karpenter/internal/core/world"
	"karpenter/internal/scenario"
)

const planExample = `  # what would be bought for these pods?
  karpctl plan -f provisioner.yaml -f awsnodetemplate.yaml -f deployment.yaml

  # a whole folder, other region, as JSON
  karpctl plan -f ./manifests --region eu-central-1 -o json

  # what would happen in the cluster now, and with a changed pool; for CI
  karpctl plan --live
  karpctl plan --live -f changed.yaml --diff

  # pods from a running cluster
  kubectl get pods -A -o yaml | karpctl plan -f provisioner.yaml -f -`

func planCommand() *cobra.Command {
	var (
		from       source
		format     string
		live, diff bool
	)
	cmd := &cobra.Command{
		Use:   "plan -f FILE…",
		Short: "Print what would be bought, for manifests or for a cluster as it is",
		Long: `Plan reads NodePools, EC2NodeClasses, Provisioners, AWSNodeTemplates, NodeClaims, Nodes, DaemonSets, Pods and
workloads (Deployment, ReplicaSet, StatefulSet, ReplicationController, Job) from
YAML or JSON, and prints the machines that the controller would buy, with pods
and price per hour, and for every pod that is left out the reason.

It works offline: instance types, zones and prices come from the embedded
catalogue, with every subnet and security group taken to exist. Pods that are
not bound to a node count as pending.

In JSON and YAML, prices are in millionths of a dollar per hour.

With --live it reads a cluster instead (or a dump), and prints what the controller
would do there now: machines that are bought and removed, the cost per hour before
and after, and the pods that move. With -f it does so as if the Provisioners and
NodePools in the files were those of the cluster; --diff prints what that changes.
Commands that remove machines are looked at once more before they are carried out.

Exit code 0: planned (pods may be left out); 1: something could not be read, what
could be read is planned all the same; 2: wrong command line, region or zone. With
--live 0: nothing would be done (with --diff: the change makes no difference); 2:
something would; 1: anything else.`,
		Example: planExample,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return errUsage{fmt.Errorf("%s: name files with -f", args[0])}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := knownFormat(format); err != nil {
				return err
			}
			if live {
				return planLive(cmd, &from, from.files, format, diff)
			}
			if diff || from.dump != "" {
				return errUsage{errors.New("--diff and --dump are for a cluster as it is; add --live")}
			}
			if len(from.files) == 0 {
				return errUsage{errors.New("-f: name at least one file or folder, or - for stdin; for a cluster as it is, --live")}
			}
			manifests, readErr := scenario.Read(from.files, cmd.InOrStdin())
			snapshot, buildErr := manifests.Snapshot(from.place())
			if snapshot == nil {
				return errors.Join(readErr, errUsage{buildErr})
			}
			done := progress(cmd.ErrOrStderr(), "planning")
			plan := schedule.Solve(snapshot, schedule.Options{})
			done()
			printErr := write(cmd.OutOrStdout(), format, plan, func(w io.Writer) error { return text(w, plan.Text()) })
			note(cmd.ErrOrStderr(), manifests, snapshot, plan)
			return errors.Join(readErr, buildErr, printErr)
		},
	}
	from.flags(cmd)
	outputFlag(cmd, &format, "table")
	cmd.Flags().BoolVar(&live, "live", false, "plan for a cluster as it is, or with --dump for a dump")
	cmd.Flags().BoolVar(&diff, "diff", false, "with --live and -f: print what the changed pools change")
	return cmd
}

// note writes what a reader of the plan may wonder about.
func note(w io.Writer, m *scenario.Manifests, s *world.Snapshot, p schedule.Plan) {
	for _, text := range slices.Concat(m.Doubled, scenario.Unsuited(s)) {
		fmt.Fprintln(w, "warning:", text)
	}
	for _, text := range m.Idle {
		fmt.Fprintln(w, text)
	}
	if len(m.Skipped) > 0 {
		fmt.Fprintf(w, "not needed for a plan, skipped: %s\n", strings.Join(m.Skipped, ", "))
	}
	if len(p.Machines) > 0 {
		fmt.Fprintf(w, "prices are those of the embedded catalogue of %s, for spot typical ones\n", scenario.PricesAsOf().Format(time.DateOnly))
	}
}
