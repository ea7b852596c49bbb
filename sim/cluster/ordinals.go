package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// statefulSet keeps n pods, numbered from 0 or from spec.ordinals.start, each with its claims, one after the other
// unless they are said to be independent.
func (o *Owners) statefulSet(ctx context.Context, s *appsv1.StatefulSet) error {
	pods, err := o.of(ctx, s)
	if err != nil {
		return err
	}
	want, parallel := value(s.Spec.Replicas, 1), s.Spec.PodManagementPolicy == appsv1.ParallelPodManagement
	start := 0
	if s.Spec.Ordinals != nil {
		start = int(s.Spec.Ordinals.Start)
	}
	for k := range want {
		name := fmt.Sprintf("%s-%d", s.Name, start+k)
		i := slices.IndexFunc(pods, func(p corev1.Pod) bool { return p.Name == name })
		switch {
		case i < 0:
			if err := o.ordinal(ctx, s, name); err != nil {
				return err
			}
		case finished(&pods[i]) && pods[i].DeletionTimestamp == nil:
			if err := o.client.Delete(ctx, &pods[i]); client.IgnoreNotFound(err) != nil {
				return err
			}
		}
		if !parallel && (i < 0 || condition(&pods[i], corev1.PodReady) != corev1.ConditionTrue) {
			return nil
		}
	}
	for _, p := range slices.Backward(pods) {
		var k int
		if n, _ := fmt.Sscanf(strings.TrimPrefix(p.Name, s.Name+"-"), "%d", &k); n == 1 && (k < start || k >= start+want) && p.DeletionTimestamp == nil {
			if err := o.client.Delete(ctx, &p); client.IgnoreNotFound(err) != nil || !parallel {
				return err
			}
		}
	}
	return nil
}

// ordinal makes a pod of a StatefulSet, and the claims that it needs first.
func (o *Owners) ordinal(ctx context.Context, s *appsv1.StatefulSet, name string) error {
	p := fromTemplate(s, "StatefulSet", appsv1.SchemeGroupVersion.String(), &s.Spec.Template)
	p.Name = name
	for i := range s.Spec.VolumeClaimTemplates {
		t := &s.Spec.VolumeClaimTemplates[i]
		c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: t.Name + "-" + name, Labels: t.Labels, Annotations: t.Annotations}, Spec: *t.Spec.DeepCopy()}
		if err := o.client.Create(ctx, c); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		v := corev1.Volume{Name: t.Name, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: c.Name}}}
		p.Spec.Volumes = append(slices.DeleteFunc(p.Spec.Volumes, func(o corev1.Volume) bool { return o.Name == t.Name }), v)
	}
	return o.client.Create(ctx, p)
}

// job runs its pods until as many have succeeded as it asks for.
func (o *Owners) job(ctx context.Context, j *batchv1.Job, now time.Time) error {
	if j.Status.CompletionTime != nil {
		return nil
	}
	pods, err := o.of(ctx, j)
	if err != nil {
		return err
	}
	running, succeeded := 0, 0
	for i := range pods {
		switch p := &pods[i]; {
		case p.Status.Phase == corev1.PodSucceeded:
			succeeded++
		case active(p):
			running++
		}
	}
	completions := value(j.Spec.Completions, int32(value(j.Spec.Parallelism, 1)))
	for range min(value(j.Spec.Parallelism, 1), completions-succeeded) - running {
		t := j.Spec.Template.DeepCopy()
		if t.Spec.RestartPolicy == "" {
			t.Spec.RestartPolicy = corev1.RestartPolicyNever
		}
		if err := o.next(ctx, j, "Job", batchv1.SchemeGroupVersion.String(), j.Name, t); err != nil {
			return err
		}
	}
	if succeeded < completions {
		return nil
	}
	at := metav1.Time{Time: now.Truncate(time.Second)}
	j.Status.CompletionTime, j.Status.Succeeded = &at, int32(succeeded)
	j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: at})
	return o.client.Status().Update(ctx, j)
}
