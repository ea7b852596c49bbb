package rig

import (
	"errors"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/internal/scenario/cases"
	"karpenter/sim/kube"
)

// Call is one that a process makes to the world.
type Call struct {
	// Process that makes it.
	Process *Process
	// Cloud: to EC2 and its neighbours; otherwise to the API server.
	Cloud bool
	// Name is the action in the cloud (CreateFleet), or verb and kind (patch
	// NodeClaim/status).
	Name string
	// Write: it may change something.
	Write bool
	// After: it has had its effect, and the answer is on its way.
	After bool
	// About is the object, as Kind/name or Kind/namespace/name, or the instance.
	About string
}

// Interceptor sees every call of a process before it has an effect and, if it
// had one, after it. An error becomes the answer. It may end the process.
type Interceptor func(Call) error

// Intercept replaces the interceptor; nil: nobody looks.
func (r *Rig) Intercept(i Interceptor) { r.interceptor = i }

// errDead is the answer to calls of a process that has ended.
var errDead = errors.New("this process has ended: its calls have no effect")

// pass asks the interceptor, and answers for processes that have ended.
func (r *Rig) pass(c Call) error {
	if c.Process.dead {
		return errDead
	}
	if r.interceptor == nil {
		return nil
	}
	err := r.interceptor(c)
	if c.Process.dead {
		return errDead
	}
	return err
}

// kubeCall is the hook of the API server.
func (r *Rig) kubeCall(c kube.Call) error {
	p := r.process(c.Actor)
	if p == nil {
		return nil
	}
	name := c.Verb + " " + c.Kind
	if c.Subresource != "" {
		name += "/" + c.Subresource
	}
	before := c.Phase == kube.Before
	pod := c.Name.Namespace + "/" + c.Name.Name
	if c.Subresource == "eviction" && before {
		r.Log.add(cases.AskedEvict, pod, 0)
		if r.Plant == IgnoreBudgets {
			r.Log.add(cases.PodDeleted, pod, 0)
			gone := &corev1.Pod{}
			gone.Namespace, gone.Name = c.Name.Namespace, c.Name.Name
			_ = r.Kube.Client("planted").Delete(ctx, gone)
			return nil
		}
	}
	if c.Subresource == "eviction" && !before {
		r.Log.add(cases.Evicted, pod, 0)
	}
	if c.Kind == "Pod" && c.Verb == "delete" && !before {
		r.Log.add(cases.PodDeleted, pod, r.grace(c.Name.Namespace, c.Name.Name))
	}
	about := c.Kind + "/" + c.Name.Name
	if c.Name.Namespace != "" {
		about = c.Kind + "/" + pod
	}
	return r.pass(Call{Process: p, Name: name, Write: c.Write(), After: !before, About: about})
}

// process is the one of this name that acts, if there is one.
func (r *Rig) process(name string) *Process {
	for _, p := range append(r.old[:len(r.old):len(r.old)], r.Process) {
		if p != nil && p.name == name {
			return p
		}
	}
	return nil
}

// grace is how many seconds a pod that is being deleted has.
func (r *Rig) grace(namespace, name string) int {
	pod := &corev1.Pod{}
	err := r.Kube.Client("rig").Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, pod)
	if err != nil || pod.DeletionGracePeriodSeconds == nil {
		return 0
	}
	return int(*pod.DeletionGracePeriodSeconds)
}

// callNames are the names of calls to the cloud as cases write them.
var callNames = map[string]string{"CreateFleet": "create", "TerminateInstances": "terminate"}

// callName is how a case names an action.
func callName(action string) string {
	if n, ok := callNames[action]; ok {
		return n
	}
	return strings.ToLower(action[:1]) + action[1:]
}

// Is reports whether the call has the name that a case gives it.
func (c Call) Is(name string) bool {
	if c.Cloud {
		return callName(c.Name) == name
	}
	verb, kind, _ := strings.Cut(c.Name, " ")
	_, sub, _ := strings.Cut(kind, "/")
	switch name {
	case "evict":
		return sub == "eviction"
	case "status":
		return sub == "status"
	}
	return c.Write && sub == "" && (verb == name && name != "create" && name != "terminate" || c.Name == name)
}

func sortedSet(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}
