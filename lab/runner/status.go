package runner

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// report writes the status of the pod.
func (l *life) report(ctx context.Context, state corev1.ContainerState, phase corev1.PodPhase) {
	l.mu.Lock()
	ready, restarts := l.ready && state.Running != nil, max(l.starts-1, 0)
	l.mu.Unlock()
	now := metav1.Now()
	word := corev1.ConditionFalse
	if ready {
		word = corev1.ConditionTrue
	}
	condition := func(t corev1.PodConditionType, s corev1.ConditionStatus) corev1.PodCondition {
		return corev1.PodCondition{Type: t, Status: s, LastTransitionTime: now}
	}
	c := container(l.pod)
	started := state.Running != nil
	status := corev1.PodStatus{
		Phase: phase, StartTime: &now, HostIP: loopback, PodIP: l.ip, PodIPs: []corev1.PodIP{{IP: l.ip}},
		Conditions: []corev1.PodCondition{
			condition(corev1.PodReadyToStartContainers, corev1.ConditionTrue), condition(corev1.PodInitialized, corev1.ConditionTrue),
			condition(corev1.ContainersReady, word), condition(corev1.PodReady, word),
		},
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: c.Name, Image: c.Image, Ready: ready, Started: &started, RestartCount: int32(restarts), State: state,
			ContainerID: "lab://" + string(l.pod.UID),
		}},
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": l.pod.UID}, "status": status})
	if err == nil {
		_, err = l.runner.client.CoreV1().Pods(l.pod.Namespace).Patch(ctx, l.pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	}
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && ctx.Err() == nil {
		l.log.Error("writing the status of a pod failed", "error", err)
	}
}

// probe asks again and again and tells when the answer changes: once that it is
// well, then when it has failed as often as the probe says, and so on. A probe
// that begins at once is asked often until its first success, as after a start.
func (l *life) probe(ctx context.Context, p *corev1.Probe, ports map[string]string, tell func(ok bool)) {
	if p == nil || p.HTTPGet == nil {
		tell(true)
		return
	}
	client := &http.Client{Timeout: time.Duration(p.TimeoutSeconds) * time.Second}
	url := "http://" + loopback + ":" + ports[p.HTTPGet.Port.String()] + p.HTTPGet.Path
	well, failures := false, 0
	next := time.Duration(p.InitialDelaySeconds) * time.Second
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(next):
		}
		switch {
		case get(ctx, client, url):
			failures = 0
			if !well {
				well = true
				tell(true)
			}
		case ctx.Err() != nil:
			return
		default:
			failures++
			if failures == int(p.FailureThreshold) {
				well = false
				tell(false)
			}
		}
		next = time.Duration(p.PeriodSeconds) * time.Second
		if !well && p.InitialDelaySeconds == 0 {
			next = min(next, 250*time.Millisecond)
		}
	}
}

// get reports whether a probe of that URL succeeds.
func get(ctx context.Context, client *http.Client, url string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	answer, err := client.Do(request)
	if err != nil {
		return false
	}
	answer.Body.Close()
	return answer.StatusCode >= 200 && answer.StatusCode < 400
}
