package claim

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"karpenter/internal/cloud"
	"karpenter/internal/core/lifecycle"
	"karpenter/internal/core/world"
	"karpenter/internal/kube/convert"
	"karpenter/internal/kube/dialect"
)

// driftPoll is how often a machine is compared with what its class selects.
const driftPoll = 5 * time.Minute

// Drifter finds how machines differ from what would be bought now.
type Drifter interface {
	// Drifted says how a machine differs from what its class selects, and in
	// words; empty if it does not. Without an instance only the image is looked at.
	Drifted(ctx context.Context, class world.ClassRef, instance, image string, labels map[string]string) (reason, detail string, err error)
	// Types are what the pool can buy; none if that is not known.
	Types(ctx context.Context, pool world.Pool) []world.InstanceType
}

// found is what the cloud was asked about a machine.
type found struct {
	at             time.Time
	about          string // pool and class, as they were
	reason, detail string
}

// drift adds to the step whether the machine has drifted. Where that cannot be
// found out it is left as it was.
func (c *Controller) drift(ctx context.Context, p *pass, step *lifecycle.Step) error {
	r := &p.in.Record
	if c.Drift == nil || !p.hasPool || !r.Registered.True() || step.Delete != "" {
		return nil
	}
	in := lifecycle.DriftInput{Now: p.in.Now, Record: *r, Pool: &p.pool}
	if p.pool.Kind == dialect.KindProvisioner {
		if !c.Settings().DriftEnabled {
			step.Conditions = append(step.Conditions, lifecycle.Condition{Type: lifecycle.Drifted})
			return nil
		}
		in.ImageOnly = true
		in.Annotated = len(p.nodes) == 1 && p.nodes[0].Annotations[dialect.AnnotationVoluntaryDisruption] == "drifted"
	} else if p.claim.Annotations[dialect.AnnotationAdoptedFrom] != "" {
		// It was made by the rules of another generation, from another class: held
		// against those of its new pool every machine that moves would be replaced.
		step.Conditions = append(step.Conditions, lifecycle.Condition{Type: lifecycle.Drifted})
		return nil
	} else {
		in.Types = c.Drift.Types(ctx, p.pool)
	}
	hash, generation, err := c.Ledger.Class(ctx, p.pool.Class)
	if err != nil {
		return err
	}
	in.PoolChanged = differs(r, dialect.AnnotationPoolHash, dialect.AnnotationPoolHashVersion, p.pool.Hash, convert.PoolHashVersion)
	in.ClassChanged = differs(r, dialect.AnnotationClassHash, dialect.AnnotationClassHashVersion, hash, convert.ClassHashVersion)
	f := c.recall(p.claim).found
	if about := fmt.Sprint(p.pool.Class, generation, in.ImageOnly); f.about != about || !p.in.Now.Before(f.at.Add(driftPoll)) {
		if f, err = c.ask(ctx, p, in.ImageOnly); err != nil {
			log.FromContext(ctx).V(1).Info("cannot tell whether the machine has drifted", "nodeclaim", r.Name, "error", err.Error())
			return nil
		}
		f.at, f.about = p.in.Now, about
		c.remember(p.claim, func(m *memory) { m.found = f })
	}
	in.Provider, in.Detail = f.reason, f.detail
	condition := lifecycle.Drift(in)
	if condition.Status != "" && !r.Drifted.True() {
		log.FromContext(ctx).Info("the machine has drifted", "nodeclaim", r.Name, "node", r.NodeName, "reason", condition.Reason, "detail", condition.Message)
	}
	step.Conditions = append(step.Conditions, condition)
	if at := f.at.Add(driftPoll); step.Again.IsZero() || at.Before(step.Again) {
		step.Again = at
	}
	return nil
}

func (c *Controller) ask(ctx context.Context, p *pass, imageOnly bool) (f found, err error) {
	id := ""
	if !imageOnly {
		if id, err = cloud.InstanceID(p.in.Record.ProviderID); err != nil {
			return f, err
		}
	}
	f.reason, f.detail, err = c.Drift.Drifted(ctx, p.pool.Class, id, p.in.Record.ImageID, p.in.Record.Labels)
	return f, err
}

// differs reports whether a hash that was written on the record is another one
// than now. Hashes that were computed in another way say nothing.
func differs(r *world.Record, key, versionKey, now, version string) bool {
	was := r.Annotations[key]
	return was != "" && now != "" && r.Annotations[versionKey] == version && was != now
}
