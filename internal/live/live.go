// Package live finds out what is known of a cluster at one moment: from the
// cluster itself, from a dump, or from manifests.
//
// It imports scenario, dump, journal, kube and clients; it writes nothing. What
// always holds: the answer says where it was read and what it lacks.
package live

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "karpenter/api/aws/v1"
	awsv1alpha1 "karpenter/api/aws/v1alpha1"
	"karpenter/api/v1"
	"karpenter/internal/core/label"
	"karpenter/internal/core/world"
	"karpenter/internal/dump"
	"karpenter/internal/kube/convert"
	"karpenter/internal/kube/dialect"
	"karpenter/internal/kube/mirror"
	"karpenter/internal/scenario"
)

// World is what is known at one moment: snapshot, records, prices (in the
// catalogues of the snapshot) and closed offerings. Nobody changes it.
type World struct {
	*dump.Dump
	// Notes say what a reader should know: where it comes from, and what it lacks.
	Notes []string
}

// nominationWindow is what the controller uses where nothing is set.
const nominationWindow = 20 * time.Second

// Cluster is a running one.
type Cluster struct {
	Reader client.Reader
	// Kinds are the kinds of pools that its API server knows; none: all.
	Kinds []dialect.Dialect
	// Controller fetches from the metrics port of the leading controller; nil:
	// nobody can be asked.
	Controller func(ctx context.Context, path string, query url.Values) ([]byte, error)
	// Namespace of the controller, in which the journal is.
	Namespace string
	// Region for the embedded catalogue; empty: that of the nodes.
	Region string
	Now    time.Time
}

// World asks the controller, which alone knows what the cloud has told; where it
// cannot be asked, it reads the cluster and takes types and prices from the
// embedded catalogue.
func (c Cluster) World(ctx context.Context) (*World, error) {
	why := "no controller was found"
	if c.Controller != nil {
		data, err := c.Controller(ctx, "world", nil)
		if err == nil {
			return answered(data)
		}
		why = "the controller could not be asked (" + firstLine(err.Error()) + ")"
	}
	w, err := c.read(ctx)
	if err != nil {
		return nil, err
	}
	w.Notes = append(w.Notes, fmt.Sprintf("%s, so types and prices are those of the embedded catalogue of %s, and what the cloud has none left of is not known",
		why, scenario.PricesAsOf().Format(time.DateOnly)))
	return w, nil
}

// Decision fetches a decision of the controller's journal, to be replayed.
func (c Cluster) Decision(ctx context.Context, seq string) (*World, error) {
	if c.Controller == nil {
		return nil, fmt.Errorf("no controller was found to ask for entry %s of its journal; name its metrics port with --controller", seq)
	}
	data, err := c.Controller(ctx, "world", url.Values{"seq": {seq}})
	if err != nil {
		return nil, err
	}
	return answered(data)
}

// answered reads what the controller answered.
func answered(data []byte) (*World, error) {
	d, err := dump.Read(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("what the controller answered: %w", err)
	}
	return &World{Dump: d}, nil
}

func firstLine(s string) string { line, _, _ := strings.Cut(s, "\n"); return line }

// read makes the snapshot out of the objects of the cluster.
func (c Cluster) read(ctx context.Context) (*World, error) {
	kinds := c.Kinds
	if len(kinds) == 0 {
		kinds = dialect.All()
	}
	classes, err := c.classes(ctx, kinds)
	if err != nil {
		return nil, mayRead(err)
	}
	region, err := c.region(ctx)
	if err != nil {
		return nil, err
	}
	shop, err := scenario.Shop(region, classes)
	if err != nil {
		return nil, fmt.Errorf("%w; name another one with --region", err)
	}
	v, err := mirror.New(c.Reader, func(_ context.Context, p world.Pool) world.Catalog { return shop(p) }, kinds...).
		View(ctx, c.Now, world.DefaultPolicy(), nominationWindow)
	if err != nil {
		return nil, mayRead(err)
	}
	var claims v1.NodeClaimList
	if err := c.Reader.List(ctx, &claims); err != nil {
		return nil, mayRead(err)
	}
	return &World{Dump: dump.New("cluster", c.Now, dump.Usual(), v.Snapshot, convert.Records(claims.Items), nil)}, nil
}

func mayRead(err error) error {
	return fmt.Errorf("%w; reading needs the rights of the ClusterRole in docs/karpctl.md", err)
}

// classes reads the classes of all pools.
func (c Cluster) classes(ctx context.Context, kinds []dialect.Dialect) (out []dialect.Object, err error) {
	for _, d := range kinds {
		switch d.Kind {
		case dialect.KindProvisioner:
			var list awsv1alpha1.AWSNodeTemplateList
			if err := c.Reader.List(ctx, &list); err != nil {
				return nil, fmt.Errorf("reading AWSNodeTemplates: %w", err)
			}
			for i := range list.Items {
				out = append(out, &list.Items[i])
			}
		default:
			var list awsv1.EC2NodeClassList
			if err := c.Reader.List(ctx, &list); err != nil {
				return nil, fmt.Errorf("reading EC2NodeClasses: %w", err)
			}
			for i := range list.Items {
				out = append(out, &list.Items[i])
			}
		}
	}
	return out, nil
}

// region is where machines would be bought: that of the nodes.
func (c Cluster) region(ctx context.Context) (string, error) {
	if c.Region != "" {
		return c.Region, nil
	}
	var nodes corev1.NodeList
	if err := c.Reader.List(ctx, &nodes); err != nil {
		return "", mayRead(fmt.Errorf("reading nodes: %w", err))
	}
	for i := range nodes.Items {
		if region := nodes.Items[i].Labels[label.Region]; region != "" {
			return region, nil
		}
	}
	return "", fmt.Errorf("no node has the label %s, so the region is not known; name it with --region", label.Region)
}

// Dumped reads a dump; the file "-" is stdin.
func Dumped(file string, stdin io.Reader) (*World, error) {
	in := stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	d, err := dump.Read(in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return &World{Dump: d}, nil
}

// Written makes a world of manifests. What could not be read is an error beside
// the world of the rest; without a place there is none.
func Written(files []string, stdin io.Reader, at scenario.Place, now time.Time) (*World, error) {
	m, readErr := scenario.Read(files, stdin)
	s, buildErr := m.Snapshot(at)
	if s == nil {
		return nil, buildErr
	}
	w := &World{Dump: dump.New("manifests", now, dump.Usual(), s, m.Records(), nil)}
	w.Notes = append(w.Notes, slices.Concat(m.Doubled, scenario.Unsuited(s))...)
	w.Notes = append(w.Notes, fmt.Sprintf("prices are those of the embedded catalogue of %s, for spot typical ones", scenario.PricesAsOf().Format(time.DateOnly)))
	if readErr != nil {
		return w, readErr
	}
	return w, buildErr
}
