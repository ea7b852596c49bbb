package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"karpenter/internal/kube/migrate"
	"karpenter/internal/scenario"
)

const convertExample = `  # to NodePool and EC2NodeClass; what changes in meaning is printed to stderr
  karpctl convert -f provisioner.yaml -f awsnodetemplate.yaml --role KarpenterNodeRole > v1.yaml

  # all of a running cluster, with the notes as JSON
  kubectl get provisioners,awsnodetemplates -o yaml | karpctl convert -f - --instance-profile nodes -o json

  # and back
  karpctl convert -f v1.yaml --to v1alpha5`

// directions are the generations that manifests can be turned into.
var directions = map[string]struct {
	convert func([]migrate.Object, migrate.Options) (migrate.Result, error)
	from    string
}{
	"v1":       {migrate.ToV1, "Provisioner or AWSNodeTemplate"},
	"v1alpha5": {migrate.FromV1, "NodePool or EC2NodeClass"},
}

func convertCommand() *cobra.Command {
	var (
		files      []string
		to, format string
		opt        migrate.Options
	)
	cmd := &cobra.Command{
		Use:   "convert -f FILE…",
		Short: "Turn Provisioners and AWSNodeTemplates into NodePools and EC2NodeClasses, or back",
		Long: `Convert reads Provisioners and AWSNodeTemplates from YAML or JSON and prints the
NodePools and EC2NodeClasses that mean the same, or the other way round. What
held by default is written out. What changes in meaning, and what has no
counterpart, is listed on stderr (with -o json: in the field "notes").

With --adopt, machines that run go over to the NodePool as soon as it is applied:
labels, owners and tags change hands, no machine is replaced and no pod is moved.
Taking the annotation karpenter.sh/adopt-provisioner off gives them back.

Pools that share an AWSNodeTemplate but have different kubelet settings need an
EC2NodeClass each. Objects of other kinds are not printed.

Exit code 0: all was converted; 1: something could not be, what could be is
printed all the same; 2: wrong command line.`,
		Example: convertExample,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return errUsage{fmt.Errorf("%s: name files with -f", args[0])}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			way, known := directions[to]
			switch {
			case !known:
				return errUsage{fmt.Errorf("--to %s: no such version; choose v1 or v1alpha5", to)}
			case knownFormat(format) != nil:
				return knownFormat(format)
			case opt.Role != "" && opt.InstanceProfile != "":
				return errUsage{errors.New("--role and --instance-profile exclude each other: an EC2NodeClass has one of the two")}
			case len(files) == 0:
				return errUsage{errors.New("-f: name at least one file or folder, or - for stdin")}
			}
			manifests, readErr := scenario.Read(files, cmd.InOrStdin())
			for _, text := range manifests.Doubled {
				fmt.Fprintln(cmd.ErrOrStderr(), "warning:", text)
			}
			result, err := way.convert(slices.Concat(manifests.Classes, manifests.Pools), opt)
			if readErr == nil && err == nil && len(result.Objects) == 0 {
				err = nothing(to, manifests)
			}
			return errors.Join(readErr, err, printConverted(cmd.OutOrStdout(), cmd.ErrOrStderr(), format, result))
		},
	}
	cmd.Flags().StringSliceVarP(&files, "filename", "f", nil, "file or folder with manifests, - for stdin; may be repeated")
	cmd.Flags().StringVar(&to, "to", "v1", "v1 (NodePool, EC2NodeClass) or v1alpha5 (Provisioner, AWSNodeTemplate)")
	outputFlag(cmd, &format, "yaml")
	_ = cmd.RegisterFlagCompletionFunc("to", cobra.FixedCompletions(slices.Sorted(maps.Keys(directions)), cobra.ShellCompDirectiveNoFileComp))
	cmd.Flags().StringVar(&opt.Role, "role", "", "IAM role of classes that name no instance profile")
	cmd.Flags().BoolVar(&opt.Adopt, "adopt", false, "let each NodePool take over the machines of its Provisioner, with an annotation")
	cmd.Flags().StringVar(&opt.InstanceProfile, "instance-profile", "", "instance profile of classes that name none (before: aws.defaultInstanceProfile)")
	return cmd
}

// nothing says that no object is of the generation to convert from, and how to
// convert those of the other.
func nothing(to string, m *scenario.Manifests) error {
	err := fmt.Errorf("nothing to convert: there is no %s among the manifests", directions[to].from)
	if len(m.Pools)+len(m.Classes) == 0 {
		return err
	}
	other := "v1alpha5"
	if to == other {
		other = "v1"
	}
	return fmt.Errorf("%w; for those that are there give --to %s", err, other)
}

// printConverted writes the objects, and the notes beside them or in them.
func printConverted(out, notes io.Writer, format string, r migrate.Result) error {
	objects := make([]map[string]any, 0, len(r.Objects))
	for _, o := range r.Objects {
		plain, err := plain(o)
		if err != nil {
			return err
		}
		objects = append(objects, plain)
	}
	switch format {
	case "json":
		return write(out, format, map[string]any{"objects": objects, "notes": r.Notes}, nil)
	case "table":
		var rows [][]string
		for i, o := range r.Objects {
			rows = append(rows, []string{fmt.Sprint(objects[i]["kind"]), o.GetName(), fmt.Sprint(objects[i]["apiVersion"])})
		}
		for _, n := range r.Notes {
			fmt.Fprintln(notes, "note:", n)
		}
		return columns(out, []string{"KIND", "NAME", "VERSION"}, rows)
	}
	for i, o := range objects {
		text, err := yaml.Marshal(o)
		if err != nil {
			return err
		}
		if i > 0 {
			fmt.Fprintln(out, "---")
		}
		if _, err := out.Write(text); err != nil {
			return err
		}
	}
	for _, n := range r.Notes {
		fmt.Fprintln(notes, "note:", n)
	}
	return nil
}

// plain is the object as people write it: without what only a cluster knows, and
// without blocks that say nothing.
func plain(o any) (map[string]any, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	var out map[string]any
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, err
	}
	delete(out, "status")
	if m, ok := out["metadata"].(map[string]any); ok {
		delete(m, "creationTimestamp")
	}
	if spec, ok := out["spec"].(map[string]any); ok {
		if t, ok := spec["template"].(map[string]any); ok && len(t["metadata"].(map[string]any)) == 0 {
			delete(t, "metadata")
		}
	}
	return out, nil
}
