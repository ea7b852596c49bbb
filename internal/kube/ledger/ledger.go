// Package ledger is the durable record of machines: NodeClaims in the API
// server, for every API generation.
//
// It may import kube/convert and dialect, core, cloud and controller-runtime.
// What always holds: a record is written before the effect that it records and
// carries our finalizer; every write is made on the version that was read, so
// that two writers never overwrite each other; the status is written once per
// pass.
package ledger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1 "karpenter/api/v1"
	"karpenter/internal/cloud"
	"karpenter/internal/core/lifecycle"
	"karpenter/internal/core/world"
	"karpenter/internal/kube/convert"
	"karpenter/internal/kube/dialect"
)

// conditionMessageMax is where the text of a condition is cut, in bytes.
const conditionMessageMax = 300

// Ledger writes records.
type Ledger struct {
	Client client.Client
	Now    func() time.Time
}

// Machine is what is to be bought, as planned.
type Machine = convert.Machine

// Begin writes a machine down, for the pool that will own it.
func (l *Ledger) Begin(ctx context.Context, pool world.Pool, m Machine) (world.Record, error) {
	claim := convert.Claim(pool, m)
	if err := l.Client.Create(ctx, claim); err != nil {
		return world.Record{}, fmt.Errorf("writing down a machine of %s %q: %w", pool.Kind, pool.Name, err)
	}
	return convert.Record(claim), nil
}

// Plan writes down that the machine of the record is meant for these pods too.
func (l *Ledger) Plan(ctx context.Context, name string, pods []world.ObjectName) error {
	claim := &v1.NodeClaim{}
	if err := l.Client.Get(ctx, client.ObjectKey{Name: name}, claim); err != nil {
		return err
	}
	return l.patch(ctx, claim, func() { convert.Plan(claim, pods) })
}

// Prepared writes down the launch that is about to be sent. Nothing may be sent
// that was not written down; a record that is being deleted takes nothing.
// classHash stands for the class that it was prepared with, if that has a hash.
func (l *Ledger) Prepared(ctx context.Context, claim *v1.NodeClaim, request cloud.Prepared, classHash string) error {
	return l.patch(ctx, claim, func() {
		if classHash != "" {
			metav1.SetMetaDataAnnotation(&claim.ObjectMeta, dialect.AnnotationClassHash, classHash)
			metav1.SetMetaDataAnnotation(&claim.ObjectMeta, dialect.AnnotationClassHashVersion, convert.ClassHashVersion)
		}
		controllerutil.AddFinalizer(claim, dialect.FinalizerTermination)
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, dialect.AnnotationLaunchRequest, string(request))
	})
}

// Launched writes down which instance the record got. Labels come first: the
// provider ID, in the status, says that nothing is left to write.
//
// A record that changed in the meantime, most likely because it is being
// deleted, gets at least the provider ID, so that its machine is found.
func (l *Ledger) Launched(ctx context.Context, claim *v1.NodeClaim, i cloud.Instance) error {
	read := claim.DeepCopy()
	err := l.launched(ctx, claim, i)
	if apierrors.IsConflict(err) {
		known := read.DeepCopy()
		known.Status.ProviderID, known.Status.ImageID = i.ProviderID, i.ImageID
		err = errors.Join(err, client.IgnoreNotFound(l.Client.Status().Patch(ctx, known, client.MergeFrom(read))))
	}
	return err
}

func (l *Ledger) launched(ctx context.Context, claim *v1.NodeClaim, i cloud.Instance) error {
	err := l.patch(ctx, claim, func() { claim.Labels = launchedLabels(claim, i.Labels) })
	if err != nil {
		return err
	}
	return l.status(ctx, claim, func() {
		s := &claim.Status
		s.ProviderID, s.ImageID = i.ProviderID, i.ImageID
		s.Capacity, s.Allocatable = convert.ResourceList(i.Capacity), convert.ResourceList(i.Allocatable)
		l.set(claim, lifecycle.Condition{Type: lifecycle.Launched, Status: lifecycle.True, Reason: string(lifecycle.Launched)})
		l.set(claim, lifecycle.Condition{Type: lifecycle.Registered, Status: lifecycle.Unknown, Reason: "NodeNotFound", Message: "the machine did not register yet"})
	})
}

// launchedLabels are those of the provider, overridden by single-valued
// requirements, overridden by the record's own.
func launchedLabels(claim *v1.NodeClaim, provider map[string]string) map[string]string {
	out := maps.Clone(provider)
	if out == nil {
		out = map[string]string{}
	}
	for _, r := range claim.Spec.Requirements {
		if r.Operator == corev1.NodeSelectorOpIn && len(r.Values) == 1 {
			if _, ok := out[r.Key]; !ok {
				out[r.Key] = r.Values[0]
			}
		}
	}
	maps.Copy(out, claim.Labels)
	return out
}

// Note writes conditions, and the name of the Node if it is not empty.
func (l *Ledger) Note(ctx context.Context, claim *v1.NodeClaim, node string, conditions ...lifecycle.Condition) error {
	return l.NoteStep(ctx, claim, lifecycle.Step{Joined: node, Conditions: conditions})
}

// NoteStep writes down what a step says about the record itself.
func (l *Ledger) NoteStep(ctx context.Context, claim *v1.NodeClaim, step lifecycle.Step) error {
	return l.status(ctx, claim, func() {
		if step.Joined != "" {
			claim.Status.NodeName = step.Joined
		}
		if step.PodEvent != nil {
			claim.Status.LastPodEventTime = &metav1.Time{Time: step.PodEvent.Truncate(time.Second)}
		}
		for _, c := range step.Conditions {
			l.set(claim, c)
		}
	})
}

// Deadline writes down when the draining of a record ends, unless that is written
// down already: what comes later does not move it.
func (l *Ledger) Deadline(ctx context.Context, claim *v1.NodeClaim, at time.Time) error {
	if claim.Annotations[dialect.AnnotationTerminationTimestamp] != "" {
		return nil
	}
	return l.patch(ctx, claim, func() {
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, dialect.AnnotationTerminationTimestamp, at.UTC().Format(time.RFC3339))
	})
}

// Interrupt writes down that the cloud ends the machine, and when; a deadline
// that comes earlier stays.
func (l *Ledger) Interrupt(ctx context.Context, claim *v1.NodeClaim, why string, at time.Time) error {
	return l.patch(ctx, claim, func() {
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, dialect.AnnotationInterrupted, why)
		if r := convert.Record(claim); r.Deadline == nil || at.Before(*r.Deadline) {
			metav1.SetMetaDataAnnotation(&claim.ObjectMeta, dialect.AnnotationTerminationTimestamp, at.UTC().Format(time.RFC3339))
		}
	})
}

// Delete asks for the end of the record as it was read; if it has changed since,
// the answer is a conflict. A record that is gone already is no error.
func (l *Ledger) Delete(ctx context.Context, claim *v1.NodeClaim) error {
	version := claim.ResourceVersion
	return client.IgnoreNotFound(l.Client.Delete(ctx, claim, client.Preconditions{UID: &claim.UID, ResourceVersion: &version}))
}

// Release takes our finalizer off a record or a Node, and reports whether it
// was there.
func (l *Ledger) Release(ctx context.Context, o client.Object) (bool, error) {
	before := o.DeepCopyObject().(client.Object)
	if !controllerutil.RemoveFinalizer(o, dialect.FinalizerTermination) {
		return false, nil
	}
	err := l.Client.Patch(ctx, o, locked(before))
	return err == nil, client.IgnoreNotFound(err)
}

func (l *Ledger) patch(ctx context.Context, claim *v1.NodeClaim, change func()) error {
	before := claim.DeepCopy()
	change()
	if equality.Semantic.DeepEqual(before, claim) {
		return nil
	}
	return l.Client.Patch(ctx, claim, locked(before))
}

func (l *Ledger) status(ctx context.Context, claim *v1.NodeClaim, change func()) error {
	before := claim.DeepCopy()
	change()
	l.roll(claim)
	if equality.Semantic.DeepEqual(before.Status, claim.Status) {
		return nil
	}
	return l.Client.Status().Patch(ctx, claim, locked(before))
}

func locked(before client.Object) client.Patch {
	return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
}

func (l *Ledger) set(claim *v1.NodeClaim, c lifecycle.Condition) {
	if c.Status == "" {
		meta.RemoveStatusCondition(&claim.Status.Conditions, string(c.Type))
		return
	}
	if len(c.Message) > conditionMessageMax {
		c.Message = strings.ToValidUTF8(c.Message[:conditionMessageMax-3], "") + "..."
	}
	meta.SetStatusCondition(&claim.Status.Conditions, metav1.Condition{
		Type: string(c.Type), Status: metav1.ConditionStatus(c.Status), Reason: c.Reason, Message: c.Message,
		LastTransitionTime: metav1.NewTime(l.Now()), ObservedGeneration: claim.Generation,
	})
}

// roll sets Ready, which holds when the three steps up have been taken and
// otherwise repeats what the first one lacks. Nothing that is on its way out is
// ready.
func (l *Ledger) roll(claim *v1.NodeClaim) {
	ready := lifecycle.Condition{Type: v1.ConditionReady, Status: lifecycle.True, Reason: v1.ConditionReady}
	for _, step := range []string{v1.ConditionLaunched, v1.ConditionRegistered, v1.ConditionInitialized} {
		c := meta.FindStatusCondition(claim.Status.Conditions, step)
		if c == nil {
			ready.Status, ready.Reason, ready.Message = lifecycle.Unknown, "Awaiting"+step, ""
			break
		}
		if c.Status != metav1.ConditionTrue {
			ready.Status, ready.Reason, ready.Message = lifecycle.False, c.Reason, c.Message
			if c.Status == metav1.ConditionUnknown {
				ready.Status = lifecycle.Unknown
			}
			break
		}
	}
	if claim.DeletionTimestamp != nil {
		ready = lifecycle.Condition{Type: v1.ConditionReady, Status: lifecycle.False, Reason: "Terminating", Message: "the machine is being taken down"}
	}
	l.set(claim, ready)
}
