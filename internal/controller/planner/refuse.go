package planner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"karpenter/internal/core/schedule"
	"karpenter/internal/kube/dialect"
	"karpenter/internal/kube/mirror"
)

// refusedWait and refusedMax bound the wait before a machine that the API server
// has refused is asked for again; it doubles.
const (
	refusedWait = 10 * time.Second
	refusedMax  = time.Minute
)

// refusal of a machine by the API server, which would refuse it again.
type refusal struct {
	err   error
	wait  time.Duration
	until time.Time
}

// provision buys the machines of a plan. One that cannot be bought does not keep
// the others. What was refused is no failure of the pass: the pods and the pool
// are told, and the same machine is left alone for a while.
func (p *Planner) provision(ctx context.Context, v *mirror.View, machines []schedule.Machine) (failed error) {
	p.mu.Lock()
	before := p.refused
	p.mu.Unlock()
	refused := map[string]refusal{}
	for _, m := range machines {
		key := m.PoolKind + "/" + m.Pool + " " + fmt.Sprint(m.Pods)
		last := before[key]
		if p.Now().Before(last.until) {
			refused[key] = last
			p.notBought(v, m, last.err)
			continue
		}
		if until, early := p.tooEarly(&m); early {
			p.notBought(v, m, fmt.Errorf("machines for these pods did not become usable; the next one is bought after %s", until.UTC().Format(time.TimeOnly)))
			continue
		}
		rec, err := p.buy(ctx, v, m, nil)
		switch {
		case err == nil:
			p.Metrics.Created("provisioned", m.Pool)
			for _, pod := range m.Pods {
				p.tell(v, pod, corev1.EventTypeNormal, "Nominated", fmt.Sprintf("pod should run on a new node of %s, nodeclaim %s", m.Pool, rec.Name))
			}
			continue
		case final(err):
			wait := min(max(2*last.wait, refusedWait), refusedMax)
			refused[key] = refusal{err, wait, p.Now().Add(wait)}
			p.Log.Error(nil, "a node was refused", poolWord(m.PoolKind), m.Pool, "pods", len(m.Pods), "reason", why(err), "retry", wait.String())
		default:
			failed = errors.Join(failed, err)
		}
		p.notBought(v, m, err)
	}
	p.mu.Lock()
	p.refused = refused
	p.mu.Unlock()
	return failed
}

// notBought tells the pods of a machine, and its pool, why it cannot be bought.
func (p *Planner) notBought(v *mirror.View, m schedule.Machine, err error) {
	for _, pod := range m.Pods {
		p.tell(v, pod, corev1.EventTypeWarning, "FailedScheduling", fmt.Sprintf("no node can be made for this pod: %s %s: %s", poolWord(m.PoolKind), m.Pool, why(err)))
	}
	p.tellPool(v, m, err)
}

// tellPool tells the pool of a machine why it cannot be bought.
func (p *Planner) tellPool(v *mirror.View, m schedule.Machine, err error) {
	if known := v.Pool(m.PoolKind, m.Pool); known != nil {
		pool := dialect.Of(known.Kind).Pool()
		pool.SetName(known.Name)
		pool.SetUID(types.UID(known.UID))
		p.Events.Event(pool, corev1.EventTypeWarning, "FailedProvisioning", "no node can be made: "+why(err))
	}
}

// final reports whether the API server would say the same again.
func final(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// why is the error in words that stay the same from one try to the next: without
// the name, which the API server makes up anew each time.
func why(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil || len(status.Status().Details.Causes) == 0 {
		return err.Error()
	}
	var words []string
	for _, c := range status.Status().Details.Causes {
		words = append(words, c.Field+": "+c.Message)
	}
	return "the API server refuses its NodeClaim: " + strings.Join(words, "; ")
}
