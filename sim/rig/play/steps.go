package play

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "karpenter/api/v1"
	"karpenter/internal/admission"
	"karpenter/internal/controller/planner"
	"karpenter/internal/kube/intent"
	"karpenter/internal/scenario/cases"
	"karpenter/sim/ec2"
	"karpenter/sim/rig"
)

var ctx = context.Background()

// lasts is how long a step goes on unless something comes after it: a batch
// window and a launch, a look for machines to remove, or what every controller
// wants at the moment.
var lasts = map[string]time.Duration{"provision": 8 * time.Second, "disrupt": 5 * time.Second, "tick": 5 * time.Second}

// rests is the half of the planner that a step is not about.
var rests = map[string]planner.Half{"provision": planner.Down, "disrupt": planner.Up}

// validation is how long a disruption pass may take to check what it has
// decided.
const validation = time.Minute

// steps takes the steps of the case, and holds the checks against what comes of
// them. Between two steps the clock jumps: the world goes on, the controller
// does not.
func (p *player) steps(out *Report) error {
	for i := range p.c.Steps {
		s := &p.c.Steps[i]
		at := p.c.Now.Add(s.At.Duration)
		latest := at.Add(validation)
		if i+1 < len(p.c.Steps) {
			latest = earlier(latest, p.c.Now.Add(p.c.Steps[i+1].At.Duration))
		}
		p.rig.Frozen = true
		if at.After(p.rig.Now()) {
			p.rig.Run(at)
		}
		if err := p.step(s, earlier(latest, at.Add(lasts[s.Do])), latest); err != nil {
			return fmt.Errorf("step %d at %s: %w", i+1, s.At, err)
		}
		p.bind()
		last := i+1 == len(p.c.Steps) || p.c.Steps[i+1].At.Duration > s.At.Duration
		if checks := p.c.AtTime(s.At.Duration); checks != nil && last {
			p.check(out, s.At.String(), checks)
		}
	}
	if err := p.seen(); err != nil {
		return err
	}
	p.check(out, "", &p.c.Checks)
	return nil
}

// seen makes sure that every time for which there are checks had a step.
func (p *player) seen() error {
	for _, m := range p.c.Checks.Times {
		if !slices.ContainsFunc(p.c.Steps, func(s cases.Step) bool { return s.At.Duration == m.Duration }) {
			return fmt.Errorf("checks.at.%s: there is no step at that time", m)
		}
	}
	return nil
}

func (p *player) check(out *Report, at string, checks *cases.Checks) {
	for _, r := range p.c.Evaluate(checks, p.state()) {
		out.Results = append(out.Results, Result{at, r})
	}
}

// bind lets kube-scheduler work, as it does at the end of every step.
func (p *player) bind() {
	p.env.Step(p.rig.Now())
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// deciding reports whether machines were chosen to go, and wait for the last
// check.
func (p *player) deciding() bool {
	var claims karpv1.NodeClaimList
	p.must(p.rig.Kube.Client("world").List(ctx, &claims))
	return slices.ContainsFunc(claims.Items, func(c karpv1.NodeClaim) bool {
		in, marked, err := intent.Read(c.Annotations)
		return marked && err == nil && !in.Bought && c.DeletionTimestamp == nil
	})
}

// step takes one step: a pass goes on until end, or until latest where it waits
// for its own checks.
func (p *player) step(s *cases.Step, end, latest time.Time) error {
	switch s.Do {
	case "provision", "disrupt", "tick":
		if s.Crash != nil {
			p.crash(s.Crash)
		}
		p.rig.Frozen = false
		p.rig.Rest = rests[s.Do]
		p.rig.Run(end)
		for s.Do == "disrupt" && p.rig.Now().Before(latest) && p.deciding() {
			p.rig.Run(p.rig.Now().Add(time.Second))
		}
		p.rig.Intercept(nil)
		return nil
	case "restart":
		if p.rig.Process != nil {
			p.rig.Process.Kill()
		}
		p.rig.Start()
		return nil
	case "cloud":
		return p.inCloud(s)
	case "apply":
		return p.apply(s)
	case "message":
		return p.message(s)
	case "admit":
		for _, o := range p.c.Objects {
			p.verdicts[o.Name] = ""
			if err := admission.Check(o.JSON); err != nil {
				p.verdicts[o.Name] = err.Error()
			}
		}
		return nil
	}
	return fmt.Errorf("do: %s: cannot be played yet", s.Do)
}

// crash ends the process at its first call of that name.
func (p *player) crash(c *cases.Crash) {
	p.rig.Intercept(func(call rig.Call) error {
		if call.Is(c.Call) && call.After == (c.When == "after") {
			call.Process.Kill()
		}
		return nil
	})
}

func (p *player) inCloud(s *cases.Step) error {
	kube := p.rig.Kube.Client("world")
	switch {
	case s.Register != "":
		how := joining{ready: s.Ready == nil || *s.Ready, zero: s.Zero}
		for _, i := range p.rig.Cloud.Instances() {
			launched := slices.ContainsFunc(p.launched, func(o ec2.Instance) bool { return o.ID == i.ID })
			if i.ID == s.Register || s.Register == "launched" && launched {
				p.join(i.ID, how)
			}
		}
	case s.Publish != nil:
		for _, n := range p.named(s.Publish.Node) {
			for k, q := range s.Publish.Allocatable {
				n.Status.Allocatable[k] = q
				if c := n.Status.Capacity[k]; c.Cmp(q) < 0 {
					n.Status.Capacity[k] = q
				}
			}
			if err := kube.Status().Update(ctx, &n); err != nil {
				return err
			}
		}
	case s.RemoveTaint != nil:
		for _, n := range p.named(s.RemoveTaint.Node) {
			n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == s.RemoveTaint.Key })
			if err := kube.Update(ctx, &n); err != nil {
				return err
			}
		}
	case s.Terminate != "":
		return p.rig.Cloud.Terminate(s.Terminate)
	case s.Stop != "":
		return p.rig.Cloud.Stop(s.Stop)
	}
	p.rig.Cloud.Tick()
	return nil
}

func (p *player) apply(s *cases.Step) error {
	kube := p.rig.Kube.Client("world")
	switch {
	case s.Bind != nil:
		pod, err := p.find("Pod/" + s.Bind.Pod)
		if err != nil {
			return err
		}
		if pod.(*corev1.Pod).Spec.NodeName == s.Bind.Node {
			return nil
		}
		b := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: s.Bind.Node}}
		b.Namespace, b.Name = pod.GetNamespace(), pod.GetName()
		return kube.SubResource("binding").Create(ctx, pod, b)
	case s.Finish != "":
		o, err := p.find(s.Finish)
		if err != nil {
			return err
		}
		return kube.Status().Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Succeeded"}}`)))
	case s.Gone != "":
		o, err := p.find(s.Gone)
		if client.IgnoreNotFound(err) == nil && err != nil {
			return nil // it has gone by itself
		}
		if err != nil {
			return err
		}
		o.SetFinalizers(nil)
		if err := kube.Update(ctx, o); err != nil {
			return err
		}
		return client.IgnoreNotFound(kube.Delete(ctx, o, client.GracePeriodSeconds(0)))
	case s.Delete != "":
		o, err := p.find(s.Delete)
		if err != nil {
			return err
		}
		return kube.Delete(ctx, o)
	case s.Patch != nil:
		return p.patch(s.Patch)
	}
	return p.convert(s.Convert)
}

// find reads the object that a step names.
func (p *player) find(target string) (client.Object, error) {
	if strings.Count(target, "/") == 1 && strings.HasPrefix(target, "Pod/") {
		target = "Pod/default/" + strings.TrimPrefix(target, "Pod/")
	}
	kind, namespace, name, err := cases.Target(target)
	if err != nil {
		return nil, err
	}
	for gvk := range p.rig.Kube.Client("world").Scheme().AllKnownTypes() {
		if gvk.Kind != kind {
			continue
		}
		obj, err := p.rig.Kube.Client("world").Scheme().New(gvk)
		if err != nil {
			return nil, err
		}
		o, ok := obj.(client.Object)
		if !ok {
			continue
		}
		return o, p.get(o, namespace, name)
	}
	return nil, fmt.Errorf("%s: no such kind here", target)
}

func (p *player) patch(c *cases.Patch) error {
	o, err := p.find(c.Target)
	if err != nil {
		return err
	}
	kube := p.rig.Kube.Client("world")
	body := map[string]json.RawMessage{}
	if c.Metadata != nil {
		body["metadata"] = c.Metadata
	}
	if c.Spec != nil {
		body["spec"] = c.Spec
	}
	if len(body) > 0 {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		if err := kube.Patch(ctx, o, client.RawPatch(types.MergePatchType, text)); err != nil {
			return err
		}
	}
	if c.Status == nil {
		return nil
	}
	text, err := json.Marshal(map[string]json.RawMessage{"status": c.Status})
	if err != nil {
		return err
	}
	return kube.Status().Patch(ctx, o, client.RawPatch(types.MergePatchType, text))
}
