package live_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "karpenter/api/v1"
	"karpenter/internal/core/disrupt"
	"karpenter/internal/core/schedule"
	"karpenter/internal/core/world"
	"karpenter/internal/forecast"
	"karpenter/internal/journal"
	"karpenter/internal/kube/intent"
)

// checkStory wants that the node was bought, joined, was removed and is gone, in
// this order.
func checkStory(t *testing.T, all []journal.Entry, node string) {
	t.Helper()
	var got []string
	for _, e := range journal.Select(all, journal.Filter{Node: node}) {
		got = append(got, string(e.Kind))
	}
	story := strings.Join(got, " ")
	at := 0
	for _, kind := range []journal.Kind{journal.Bought, journal.Joined, journal.Disrupt, journal.Removed, journal.Gone} {
		i := strings.Index(story[at:], string(kind))
		if i < 0 {
			t.Fatalf("the story of %s has no %s after that: %s", node, kind, story)
		}
		at += i
	}
}

// TestForecastAgrees: in 100 random clusters the controller does what was said
// that it would: it buys the same machines for the same pods, and chooses the same
// machines to go, for the same reason.
func TestForecastAgrees(t *testing.T) {
	buys, removes, quiet := 0, 0, 0
	clusters := 100
	if testing.Short() {
		clusters = 20
	}
	for seed := range uint64(clusters) {
		w := newRunning(t, seed)
		// Machines pile up, since nothing is removed; then pods come and go while the
		// controller does not look.
		w.Rest = "down"
		for range 1 + w.rng.IntN(3) {
			w.Run(w.Now().Add(3 * time.Minute))
			w.shake(12)
		}
		w.Run(w.Now().Add(4 * time.Minute))
		w.Frozen = true
		if most := []int{0, 6, 10, 24}[w.rng.IntN(4)]; most > 0 {
			w.shake(most)
		}
		w.Run(w.Now().Add(20 * time.Second))
		w.Process.Cache().Deliver(-1)

		what, err := w.cluster().World(ctx)
		w.must(err)
		f := forecast.Of(what.Dump)
		want := said(f)
		last := lastOf(w.Process.All.Journal.Entries())
		w.Frozen, w.Rest = false, ""
		w.Run(w.Now().Add(13 * time.Second)) // a batch and a look; nothing is carried out yet
		got := done(w, last)
		if !slices.Equal(want, got) {
			t.Errorf("seed %d:\nsaid %s\ndone %s", seed, strings.Join(want, "\n     "), strings.Join(got, "\n     "))
		}
		buys, removes = buys+len(f.Machines), removes+len(f.Commands)
		if !f.Changes() {
			quiet++
		}
		w.Process.Kill()
	}
	t.Logf("%d machines bought, %d commands, %d clusters at rest", buys, removes, quiet)
	if buys < clusters/4 || removes < clusters/4 || quiet == 0 {
		t.Errorf("too little happened: %d machines bought, %d commands, %d clusters at rest", buys, removes, quiet)
	}
}

func lastOf(entries []journal.Entry) (last uint64) {
	for _, e := range entries {
		last = max(last, e.Seq)
	}
	return last
}

// said are the things to do of a forecast.
func said(f *forecast.Forecast) (out []string) {
	for _, m := range f.Machines {
		out = append(out, bid(&m))
	}
	for _, c := range f.Commands {
		out = append(out, choice(&c))
	}
	slices.Sort(out)
	return out
}

func bid(m *schedule.Machine) string {
	return fmt.Sprintf("buy %s for %s", m.Price, names(m.Pods))
}

func choice(c *disrupt.Command) string {
	var nodes []string
	for _, t := range c.Remove {
		nodes = append(nodes, t.Node)
	}
	slices.Sort(nodes)
	return fmt.Sprintf("%s %v, %d bought, saves %s", c.Method, nodes, len(c.Replace), c.Saves)
}

func names(pods []world.ObjectName) string {
	var out []string
	for _, p := range pods {
		out = append(out, p.String())
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// done are the things that were done since an entry of the journal: as it says, and
// as the objects in the cluster bear out.
func done(w *running, last uint64) (out []string) {
	claims := map[string]*v1.NodeClaim{}
	var list v1.NodeClaimList
	w.must(w.kube.List(ctx, &list))
	for i := range list.Items {
		claims[list.Items[i].Name] = &list.Items[i]
	}
	for _, e := range w.Process.All.Journal.Entries() {
		switch {
		case e.Seq <= last:
		case e.Kind == journal.Provision:
			plan := e.Decision.(*schedule.Plan)
			for _, m := range plan.Machines {
				out = append(out, bid(&m))
			}
		case e.Kind == journal.Bought && e.Command == "":
			c := claims[e.Claims[0]]
			if c == nil {
				w.t.Errorf("NodeClaim %s is not there", e.Claims[0])
				continue
			}
			if planned := strings.Split(c.Annotations["karpenter.sh/planned-pods"], ","); len(planned) != len(e.Pods) {
				w.t.Errorf("NodeClaim %s is for %d pods, not %d", c.Name, len(planned), len(e.Pods))
			}
		case e.Kind == journal.Disrupt:
			d := e.Decision.(disrupt.Decision)
			for i := range d.Commands {
				if cmd := &d.Commands[i]; strings.HasPrefix(e.Command, cmd.Remove[0].Claim+"-") {
					out = append(out, choice(cmd))
					w.marked(cmd, claims)
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

// marked wants the intent of the command on its machines, unless they are gone.
func (w *running) marked(cmd *disrupt.Command, claims map[string]*v1.NodeClaim) {
	for _, t := range cmd.Remove {
		c := claims[t.Claim]
		if c == nil || c.DeletionTimestamp != nil {
			continue
		}
		if in, ok, err := intent.Read(c.Annotations); err != nil || !ok || in.Method != cmd.Method {
			w.t.Errorf("NodeClaim %s: intent %+v, %v, %v", c.Name, in, ok, err)
		}
	}
}
