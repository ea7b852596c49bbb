package logbook

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/internal/journal"
	"karpenter/sim/kube"
)

var (
	ctx = context.Background()
	now = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
)

const space = "karpenter"

func cluster(t *testing.T) client.Client {
	s := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(s))
	return kube.New(kube.Options{Scheme: s, Now: func() time.Time { return now }}).Client("test")
}

// process is one life of the controller.
func process(c client.Client) (*Keeper, *journal.Journal) {
	j := journal.New(500, 8)
	return &Keeper{Live: c, Client: c, Journal: j, Namespace: space}, j
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestOutlivesTheProcess: the next process knows what the last one wrote, and
// numbers go on; so does what it did before it had read that.
func TestOutlivesTheProcess(t *testing.T) {
	c := cluster(t)
	for life := range 3 {
		k, j := process(c)
		for i := range 4 {
			j.Add(journal.Entry{Kind: journal.Bought, Time: now, Claims: []string{fmt.Sprintf("claim-%d-%d", life, i)}, Summary: "x"})
			must(t, k.Pass(ctx))
		}
		must(t, k.Pass(ctx)) // nothing new
		if got := j.Entries(); len(got) != 4*(life+1) || got[0].Claims[0] != "claim-0-0" {
			t.Errorf("life %d knows %d entries", life, len(got))
		}
	}
	all, err := Read(ctx, c, space)
	must(t, err)
	if len(all) != 12 {
		t.Fatalf("%d entries", len(all))
	}
	for i, e := range all {
		if e.Seq != uint64(i+1) {
			t.Errorf("entry %d has the number %d", i, e.Seq)
		}
	}
}

// TestPagesAreUsedInTurn: however much is decided, there are eight ConfigMaps, none
// larger than allowed, and the newest entries are there without a gap.
func TestPagesAreUsedInTurn(t *testing.T) {
	c := cluster(t)
	k, j := process(c)
	k.most = 12 << 10
	rng := rand.New(rand.NewPCG(1, 1))
	const rounds, each = 40, 90
	for range rounds {
		for range each {
			var pods []string
			for range 4 {
				pods = append(pods, fmt.Sprintf("space-%x/pod-%x", rng.Uint32(), rng.Uint64())) // does not pack well
			}
			j.Add(journal.Entry{Kind: journal.Provision, Time: now, Pods: pods, Summary: "x"})
		}
		must(t, k.Pass(ctx))
	}
	var list corev1.ConfigMapList
	must(t, c.List(ctx, &list, client.InNamespace(space)))
	for _, m := range list.Items {
		if n := len(m.BinaryData[dataKey]); n > k.most {
			t.Errorf("%s has %d bytes", m.Name, n)
		}
	}
	if len(list.Items) != pages {
		t.Errorf("%d ConfigMaps", len(list.Items))
	}
	all, err := Read(ctx, c, space)
	must(t, err)
	if last := all[len(all)-1].Seq; last != rounds*each || len(all) < 500 || len(all) == rounds*each {
		t.Errorf("%d entries, the last is %d", len(all), last)
	}
	for i := range all[1:] {
		if all[i+1].Seq != all[i].Seq+1 {
			t.Fatalf("%d comes after %d", all[i+1].Seq, all[i].Seq)
		}
	}
}

// TestDamage: a page that somebody wrote into loses what cannot be read, and the
// rest goes on.
func TestDamage(t *testing.T) {
	c := cluster(t)
	k, j := process(c)
	j.Add(journal.Entry{Kind: journal.Tally, Time: now, Summary: "good"})
	must(t, k.Pass(ctx))
	must(t, c.Create(ctx, func() *corev1.ConfigMap {
		m := &corev1.ConfigMap{Data: map[string]string{"x": "y"}}
		m.Namespace, m.Name = space, prefix+"3"
		return m
	}()))
	bad := &corev1.ConfigMap{}
	must(t, c.Get(ctx, client.ObjectKey{Namespace: space, Name: prefix + "0"}, bad))
	text, _ := unpack(bad.BinaryData[dataKey])
	bad.BinaryData[dataKey], _ = pack(append([]byte("not an entry\n"), text...))
	must(t, c.Update(ctx, bad))

	k, j = process(c)
	j.Add(journal.Entry{Kind: journal.Tally, Time: now, Summary: "after"})
	must(t, k.Pass(ctx))
	all, err := Read(ctx, c, space)
	must(t, err)
	if len(all) != 2 || all[0].Summary != "good" || all[1].Seq != 2 {
		t.Errorf("%+v", all)
	}
}
