package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"karpenter/internal/live"
	"karpenter/internal/scenario"
)

// source says where the world is read: manifests, a dump, or else a cluster.
type source struct {
	access live.Access
	files  []string
	dump   string
	zones  []string
	at     string
}

// flags adds the flags of the source to a command.
func (s *source) flags(cmd *cobra.Command) {
	s.clusterFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&s.access.Region, "region", "", "region of the embedded catalogue, where it is needed (default: that of the nodes; for manifests us-west-2)")
	f.StringVar(&s.dump, "dump", "", "read a dump instead of a cluster; - for stdin")
	f.StringSliceVarP(&s.files, "filename", "f", nil, "read manifests (instead of a cluster): file or folder, - for stdin; may be repeated")
	f.StringSliceVar(&s.zones, "zones", nil, "with -f: zones that have subnets (default: all of the region)")
	f.StringVar(&s.at, "at", "", "with -f: the time of the moment, as 2006-01-02T15:04:05Z (default: now)")
	_ = cmd.MarkFlagFilename("dump", "gz")
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml", "json")
	cmd.MarkFlagsMutuallyExclusive("dump", "kubeconfig")
}

// clusterFlags adds those that say which cluster.
func (s *source) clusterFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.access.Kubeconfig, "kubeconfig", "", "file with the cluster to read (default: as kubectl)")
	f.StringVar(&s.access.Context, "context", "", "context of the kubeconfig")
	f.StringVar(&s.access.Namespace, "karpenter-namespace", "karpenter", "namespace of the controller")
	f.StringVar(&s.access.Lease, "lease", "karpenter-leader-election", "lease that the leading controller holds")
	f.StringVar(&s.access.Port, "port", "8080", "metrics port of the controller")
	f.StringVar(&s.access.Controller, "controller", "", "address of that port, e.g. http://127.0.0.1:8080 (default: through the API server)")
}

// offline reports whether no cluster is asked.
func (s *source) offline() bool { return s.dump != "" || len(s.files) > 0 }

// cluster connects to the cluster.
func (s *source) cluster() (live.Cluster, error) { return live.Connect(s.access, time.Now()) }

// read returns the world. What a reader should know goes to stderr; an error may
// come beside a world that lacks something.
func (s *source) read(cmd *cobra.Command) (*live.World, error) {
	w, err := s.world(cmd)
	if w == nil {
		return nil, err
	}
	if len(s.files) == 0 {
		for _, n := range w.Notes {
			fmt.Fprintln(cmd.ErrOrStderr(), "note:", n)
		}
	}
	return w, err
}

func (s *source) world(cmd *cobra.Command) (*live.World, error) {
	switch {
	case s.dump != "" && len(s.files) > 0:
		return nil, errUsage{errors.New("--dump and -f exclude each other: name one source")}
	case s.dump != "":
		return live.Dumped(s.dump, cmd.InOrStdin())
	case len(s.files) > 0:
		now := time.Now()
		if s.at != "" {
			var err error
			if now, err = time.Parse(time.RFC3339, s.at); err != nil {
				return nil, errUsage{fmt.Errorf("--at %s: no time; write it as 2006-01-02T15:04:05Z", s.at)}
			}
		}
		return live.Written(s.files, cmd.InOrStdin(), s.place(), now)
	}
	done := progress(cmd.ErrOrStderr(), "reading the cluster")
	defer done()
	c, err := s.cluster()
	if err != nil {
		return nil, err
	}
	return c.World(cmd.Context())
}

// place is where the machines of manifests would be bought.
func (s *source) place() scenario.Place {
	return scenario.Place{Region: cmp.Or(s.access.Region, "us-west-2"), Zones: s.zones}
}

// one is the only argument of a command.
func one(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return errUsage{fmt.Errorf("%s takes one argument, %s; see '%s --help'", cmd.Name(), what, cmd.CommandPath())}
		}
		return nil
	}
}

// none refuses arguments.
func none(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return errUsage{fmt.Errorf("%s: %s takes no argument; see '%s --help'", args[0], cmd.Name(), cmd.CommandPath())}
	}
	return nil
}

// errDiffers is the answer of commands that compare: something is not the same.
var errDiffers = errors.New("differs")

// compares is the annotation of such commands: 2 means nothing else there.
const compares = "compares"

var comparing = map[string]string{compares: "true"}

func text(w io.Writer, s string) error {
	_, err := io.WriteString(w, s)
	return err
}
