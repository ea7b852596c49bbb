package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"karpenter/internal/core/world"
	"karpenter/internal/explain"
	"karpenter/internal/live"
)

// explainers answer for each kind of thing.
var explainers = map[string]func(w *live.World, namespace, name string) (*explain.Answer, error){
	"pod": func(w *live.World, namespace, name string) (*explain.Answer, error) {
		if ns, n, ok := strings.Cut(name, "/"); ok {
			namespace, name = ns, n
		}
		return explain.Pod(w.Dump, world.ObjectName{Namespace: namespace, Name: name})
	},
	"node": func(w *live.World, _, name string) (*explain.Answer, error) { return explain.Node(w.Dump, name) },
	"provisioner": func(w *live.World, _, name string) (*explain.Answer, error) {
		return explain.Pool(w.Dump, "Provisioner", name)
	},
	"nodepool": func(w *live.World, _, name string) (*explain.Answer, error) {
		return explain.Pool(w.Dump, "NodePool", name)
	},
}

// others are the other words for these kinds.
var others = map[string]string{
	"po": "pod", "pods": "pod", "no": "node", "nodes": "node", "nodeclaim": "node", "nodeclaims": "node",
	"provisioners": "provisioner", "nodepools": "nodepool",
}

func explainCommand() *cobra.Command {
	var (
		from              source
		format, namespace string
	)
	kinds := slices.Sorted(maps.Keys(explainers))
	cmd := &cobra.Command{
		Use:   "explain pod|node|provisioner|nodepool NAME",
		Short: "Say why a pod waits, why a node is still here, or what a pool can buy",
		Long: `Explain asks the functions that decide why something is as it is.

Of a pod: which machine it waits for and how far that is; or for every pool the
first rule that fails, the pool that comes closest first, with what is asked for,
what there is instead, and what may have been meant. Of a node: why it exists, why
it is still here, and the move that would save most. Of a pool: whether it is
ready, what it can buy now, what is closed and until when, and all requirements,
defaults included.

It asks a cluster, or manifests (-f), or a dump (--dump).

Exit code 0: explained; 1: there is no such thing, or something could not be read;
2: wrong command line.`,
		Example: `  karpctl explain pod default/web-7d4b9c-x2x5q
  karpctl explain node ip-10-0-1-17.us-west-2.compute.internal
  karpctl explain provisioner default -o json

  # without a cluster
  karpctl explain pod default/web-0 -f provisioner.yaml -f awsnodetemplate.yaml -f pods.yaml`,
		ValidArgs: kinds,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && strings.Contains(args[0], "/") {
				return nil // kind/name, as kubectl takes it
			}
			if len(args) != 2 {
				return errUsage{fmt.Errorf("say what to explain: one of %s, and its name", strings.Join(kinds, ", "))}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				kind, name, _ := strings.Cut(args[0], "/")
				args = []string{kind, name}
			}
			kind := strings.ToLower(args[0])
			if known, ok := others[kind]; ok {
				kind = known
			}
			about, ok := explainers[kind]
			if !ok {
				return errUsage{fmt.Errorf("%s: nothing is known of this kind; choose one of %s", args[0], strings.Join(kinds, ", "))}
			}
			if err := knownFormat(format); err != nil {
				return err
			}
			w, readErr := from.read(cmd)
			if w == nil {
				return readErr
			}
			defer progress(cmd.ErrOrStderr(), "looking")()
			answer, err := about(w, namespace, args[1])
			if err != nil {
				return errors.Join(readErr, err)
			}
			err = write(cmd.OutOrStdout(), format, answer, func(w io.Writer) error { return text(w, answer.Text()) })
			return errors.Join(readErr, err)
		},
	}
	from.flags(cmd)
	outputFlag(cmd, &format, "table")
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "default", "namespace of a pod that is named without one")
	return cmd
}
