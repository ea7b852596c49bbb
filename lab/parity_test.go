package lab_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/api/v1alpha5"
	"karpenter/internal/kube/nominate"
	"karpenter/sim/kube"
)

// The simulated API server is only worth something if it answers as the real one
// does: the same calls are made to both, and what comes of them is compared.
func TestTheSimulatedAPIServerAnswersAsTheRealOne(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, policyv1.AddToScheme, v1alpha5.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	real, err := client.New(shared.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	for name, script := range parityScripts {
		t.Run(name, func(t *testing.T) {
			simulated := kube.New(kube.Options{Scheme: scheme, Now: time.Now, Seed: 1}).Client("parity")
			name := unique("parity")
			var told [2]string
			for i, c := range []client.Client{real, simulated} {
				p := &parity{Client: c, ctx: t.Context(), name: name}
				script(p)
				told[i] = strings.Join(p.told, "\n")
				p.cleanUp()
			}
			want, got := strings.Split(told[0], "\n"), strings.Split(told[1], "\n")
			for i := range max(len(want), len(got)) {
				if i >= len(want) || i >= len(got) || want[i] != got[i] {
					t.Fatalf("they differ at line %d.\nreal:\n%s\n\nsimulated:\n%s", i+1, told[0], told[1])
				}
			}
		})
	}
}

// parity makes calls and writes down what comes of them.
type parity struct {
	client.Client
	ctx  context.Context
	name string
	told []string
	made []client.Object
}

func (p *parity) say(what string, err error, more ...any) {
	out := "ok"
	if err != nil {
		out = fmt.Sprintf("%s %d", apierrors.ReasonForError(err), code(err))
	}
	p.told = append(p.told, strings.TrimSpace(fmt.Sprint(what, ": ", out, " ", strings.Trim(fmt.Sprintf("%v", more), "[]"))))
}

func code(err error) int32 {
	if s, ok := err.(apierrors.APIStatus); ok {
		return s.Status().Code
	}
	return 0
}

func (p *parity) create(what string, o client.Object) {
	p.made = append(p.made, o)
	p.say(what, p.Create(p.ctx, o), o.GetGeneration(), o.GetUID() != "")
}

// read reads an object anew, and says whether it is there.
func (p *parity) read(o client.Object) bool {
	err := p.Get(p.ctx, client.ObjectKeyFromObject(o), o)
	if err != nil {
		p.say("read", err)
	}
	return err == nil
}

func (p *parity) cleanUp() {
	for _, o := range p.made {
		_ = p.Patch(p.ctx, o, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
		_ = p.Delete(p.ctx, o, client.GracePeriodSeconds(0))
	}
}

func (p *parity) pod() *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: p.name, Labels: map[string]string{"parity": p.name}},
		Spec: corev1.PodSpec{SchedulerName: "nobody", Containers: []corev1.Container{{Name: "main", Image: "app:1"}, {Name: "side", Image: "side:1"}}}}
}

func (p *parity) provisioner() *v1alpha5.Provisioner {
	o := &v1alpha5.Provisioner{ObjectMeta: metav1.ObjectMeta{Name: p.name}}
	o.Spec.ProviderRef = &v1alpha5.ProviderRef{Name: "none"}
	return o
}

func (p *parity) patch(what string, o client.Object, kind types.PatchType, body string) {
	p.say(what, p.Patch(p.ctx, o, client.RawPatch(kind, []byte(body))), o.GetGeneration())
}

func (p *parity) bind(what string, pod *corev1.Pod) {
	p.say(what, p.SubResource("binding").Create(p.ctx, pod, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: "parity-nowhere"}}))
}

func (p *parity) evict(what string, pod *corev1.Pod, options *metav1.DeleteOptions) {
	p.say(what, p.SubResource("eviction").Create(p.ctx, pod, &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}, DeleteOptions: options}))
}

// ending says how a pod is being deleted.
func (p *parity) ending(what string, pod *corev1.Pod) {
	if p.read(pod) {
		grace := int64(-1)
		if pod.DeletionGracePeriodSeconds != nil {
			grace = *pod.DeletionGracePeriodSeconds
		}
		p.say(what, nil, pod.DeletionTimestamp != nil, grace, pod.Generation)
	}
}

var parityScripts = map[string]func(*parity){
	"create": func(p *parity) {
		o := p.provisioner()
		o.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "True", Reason: "Said", LastTransitionTime: metav1.Now()}}
		p.create("create", o)
		p.say("status", nil, len(o.Status.Conditions))
		p.say("again", p.Create(p.ctx, p.provisioner()))
		p.say("with a version", p.Create(p.ctx, o))
		bad := p.provisioner()
		bad.Name = "Not_A_Name"
		p.say("bad name", p.Create(p.ctx, bad))
		bad.Name = ""
		p.say("no name", p.Create(p.ctx, bad))
		dry := p.provisioner()
		dry.Name += "-dry"
		p.say("dry", p.Create(p.ctx, dry, client.DryRunAll))
		p.read(dry)
	},
	"lock": func(p *parity) {
		first := p.provisioner()
		p.create("create", first)
		second := first.DeepCopy()
		first.Labels = map[string]string{"by": "first"}
		p.say("first", p.Update(p.ctx, first), first.Generation)
		second.Labels = map[string]string{"by": "second"}
		p.say("second", p.Update(p.ctx, second))
		p.say("its status", p.Status().Update(p.ctx, second))
		base := second.DeepCopy()
		second.Labels["x"] = "y"
		p.say("locked patch", p.Patch(p.ctx, second.DeepCopy(), client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})))
		p.say("patch", p.Patch(p.ctx, second, client.MergeFrom(base)), second.Labels)
		blind := p.provisioner()
		p.say("blind update", p.Update(p.ctx, blind))
		other := second.DeepCopy()
		other.UID = "another"
		p.say("update of another", p.Update(p.ctx, other))
		uid, version := types.UID("another"), "1"
		p.say("delete another", p.Delete(p.ctx, second, client.Preconditions{UID: &uid}))
		p.say("delete a version", p.Delete(p.ctx, second, client.Preconditions{ResourceVersion: &version}))
		none := p.provisioner()
		none.Name, none.ResourceVersion = none.Name+"-none", "1"
		p.say("delete none", p.Delete(p.ctx, none))
		p.say("update none", p.Update(p.ctx, none))
		p.patch("patch none", none, types.MergePatchType, `{}`)
	},
	"generation": func(p *parity) {
		o := p.provisioner()
		p.create("create", o)
		version := o.ResourceVersion
		p.say("same", p.Update(p.ctx, o), o.Generation, o.ResourceVersion == version)
		p.patch("same patch", o, types.MergePatchType, `{"metadata":{"name":"`+p.name+`"}}`)
		// Whether the version stays then is chance: the server notes who has written, and when.
		p.patch("labels", o, types.MergePatchType, `{"metadata":{"labels":{"a":"b"}}}`)
		p.patch("spec", o, types.MergePatchType, `{"spec":{"weight":7}}`)
		p.patch("status by the main resource", o, types.MergePatchType, `{"status":{"lastScaleTime":"2030-01-01T00:00:00Z"}}`)
		p.say("lastScaleTime", nil, o.Status.LastScaleTime != nil)
		weight := int32(9)
		o.Spec.Weight = &weight
		o.Status.LastScaleTime = &metav1.Time{Time: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
		o.Labels["by"] = "status"
		p.say("status", p.Status().Update(p.ctx, o), o.Generation, *o.Spec.Weight, o.Status.LastScaleTime != nil, o.Labels)
		o.Generation, o.CreationTimestamp = 99, metav1.Time{}
		p.say("what nobody may set", p.Update(p.ctx, o), o.Generation, o.CreationTimestamp.IsZero())
	},
	"finalizers": func(p *parity) {
		o := p.provisioner()
		o.Finalizers = []string{"parity.test/hold"}
		p.create("create", o)
		p.say("delete", p.Delete(p.ctx, o))
		p.say("delete again", p.Delete(p.ctx, o))
		p.read(o)
		p.say("held", nil, o.DeletionTimestamp != nil, *o.DeletionGracePeriodSeconds, o.Generation)
		more := o.DeepCopy()
		more.Finalizers = append(more.Finalizers, "parity.test/late")
		p.say("one more", p.Update(p.ctx, more))
		o.DeletionTimestamp = nil
		p.say("back to life", p.Update(p.ctx, o), o.DeletionTimestamp != nil)
		p.patch("release", o, types.MergePatchType, `{"metadata":{"finalizers":null}}`)
		p.read(o)
	},
	"pod": func(p *parity) {
		o := p.pod()
		p.create("create", o)
		s := &o.Spec
		p.say("given", nil, o.Status.Phase, *s.TerminationGracePeriodSeconds, len(s.Tolerations), *s.Priority, s.RestartPolicy, s.SchedulerName)
		p.patch("image", o, types.StrategicMergePatchType, `{"spec":{"containers":[{"name":"side","image":"side:2"}]}}`)
		p.say("containers", nil, len(o.Spec.Containers), o.Spec.Containers[1].Image)
		p.patch("deadline", o, types.MergePatchType, `{"spec":{"activeDeadlineSeconds":100}}`)
		p.patch("node by patch", o, types.MergePatchType, `{"spec":{"nodeName":"n"}}`)
		p.patch("json patch", o, types.JSONPatchType, `[{"op":"replace","path":"/metadata/labels/parity","value":"other"}]`)
		p.patch("json test", o, types.JSONPatchType, `[{"op":"test","path":"/metadata/labels/parity","value":"no"}]`)
		p.patch("broken patch", o, types.MergePatchType, `{`)
		p.read(o)
		o.ResourceVersion = ""
		o.Labels["x"] = "y"
		p.say("blind update", p.Update(p.ctx, o), o.Generation)
		o.Status.Message, o.Labels["by"] = "hello", "status"
		p.say("status", p.Status().Update(p.ctx, o), o.Status.Message, o.Labels["by"], o.Generation)
		p.say("delete", p.Delete(p.ctx, o))
		p.read(o)
	},
	"binding": func(p *parity) {
		o := p.pod()
		p.create("create", o)
		o.Status.NominatedNodeName = "somewhere"
		p.say("nominated", p.Status().Update(p.ctx, o))
		p.bind("bind", o)
		p.read(o)
		p.say("bound", nil, o.Spec.NodeName, o.Status.NominatedNodeName, o.Generation, o.Status.Conditions[0].Type, o.Status.Conditions[0].Status)
		p.bind("bind again", o)
		none := p.pod()
		none.Name += "-none"
		p.bind("bind none", none)
		gated := p.pod()
		gated.Name += "-gated"
		gated.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "parity.test/gate"}}
		p.create("gated", gated)
		p.say("says", nil, len(gated.Status.Conditions), gated.Status.Conditions[0].Reason)
		p.bind("bind gated", gated)
		p.patch("open", gated, types.MergePatchType, `{"spec":{"schedulingGates":null}}`)
		p.bind("bind open", gated)
	},
	"grace": func(p *parity) {
		o := p.pod()
		p.create("create", o)
		p.bind("bind", o)
		p.say("delete", p.Delete(p.ctx, o))
		p.ending("deleted", o)
		p.say("longer", p.Delete(p.ctx, o, client.GracePeriodSeconds(60)))
		p.ending("no longer", o)
		p.say("shorter", p.Delete(p.ctx, o, client.GracePeriodSeconds(20)))
		p.ending("shorter", o)
		p.say("over", p.Delete(p.ctx, o, client.GracePeriodSeconds(0)))
		p.read(o)
		done := p.pod()
		done.Name += "-done"
		p.create("create", done)
		p.bind("bind", done)
		p.read(done)
		done.Status.Phase = corev1.PodSucceeded
		p.say("done", p.Status().Update(p.ctx, done))
		p.say("delete", p.Delete(p.ctx, done))
		p.read(done)
	},
	"eviction": func(p *parity) {
		o := p.pod()
		p.create("create", o)
		uid := types.UID("another")
		p.evict("another", o, &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
		p.bind("bind", o)
		p.read(o)
		o.Status.Phase = corev1.PodRunning
		o.Status.Conditions = append(o.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
		p.say("run", p.Status().Update(p.ctx, o))
		five := intstr.FromInt32(5)
		for _, name := range []string{p.name + "-a", p.name + "-b"} {
			p.create("budget", &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
				Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &five, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"parity": p.name}}}})
			p.evict("evict", o, nil) // refused by one, and then because there are two
		}
		p.evict("dry", o, &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		for _, b := range p.made[1:] {
			p.say("delete budget", p.Delete(p.ctx, b))
		}
		p.evict("evict dry", o, &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		p.ending("not evicted", o)
		p.evict("evict", o, nil)
		p.ending("evicted", o)
		p.say("says", nil, o.Status.Conditions[len(o.Status.Conditions)-1].Type, o.Status.Conditions[len(o.Status.Conditions)-1].Reason)
		none := p.pod()
		none.Name += "-none"
		p.evict("none", none, nil)
	},
	"nomination": func(p *parity) {
		o := p.pod()
		p.create("create", o)
		apply := func(what, manager, node string, opts ...client.SubResourcePatchOption) {
			body := fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"namespace":"default"}}`, p.name)
			if node != "" {
				body = fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"namespace":"default"},"status":{"nominatedNodeName":%q}}`, p.name, node)
			}
			target := p.pod()
			p.say(what, p.Status().Patch(p.ctx, target, client.RawPatch(types.ApplyPatchType, []byte(body)), append(opts, client.FieldOwner(manager))...))
			if p.read(o) {
				whose, ours := nominate.Of(o)
				p.say("nominated", nil, whose, ours)
			}
		}
		apply("ours", nominate.Manager, "a")
		apply("another node", nominate.Manager, "b")
		o.Status.NominatedNodeName = "c"
		p.say("theirs", p.Status().Update(p.ctx, o, client.FieldOwner("somebody")))
		apply("not ours to change", nominate.Manager, "d")
		apply("not ours to take back", nominate.Manager, "")
		apply("the same", nominate.Manager, "c")
		apply("no more", nominate.Manager, "")
		apply("by force", nominate.Manager, "d", client.ForceOwnership)
		o.Labels["x"] = "y"
		p.say("something else", p.Update(p.ctx, o, client.FieldOwner("somebody")))
		apply("taken back", nominate.Manager, "")
		apply("anew", nominate.Manager, "e")
		before := o.DeepCopy()
		o.Status.NominatedNodeName = ""
		p.say("cleared", p.Status().Patch(p.ctx, o, client.StrategicMergeFrom(before), client.FieldOwner("somebody")))
		apply("and again", nominate.Manager, "e")
	},
	"lists": func(p *parity) {
		o := p.pod()
		p.create("create", o)
		p.bind("bind", o)
		for _, f := range []client.MatchingFields{
			{"spec.nodeName": "parity-nowhere"}, {"metadata.name": p.name}, {"spec.nodeName": "other"}, {"status.phase": "Pending"}, {"spec.hostIPC": "x"},
		} {
			var list corev1.PodList
			p.say("list", p.List(p.ctx, &list, f, client.InNamespace("default"), client.MatchingLabels{"parity": p.name}), len(list.Items))
		}
	},
	"node": func(p *parity) {
		o := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: p.name}}
		o.Spec.Taints = []corev1.Taint{{Key: "parity.test/own", Effect: corev1.TaintEffectNoSchedule}}
		o.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		p.create("create", o)
		var taints []string
		for _, t := range o.Spec.Taints {
			taints = append(taints, t.Key)
		}
		p.say("has", nil, taints, len(o.Status.Conditions))
		p.patch("provider", o, types.MergePatchType, `{"spec":{"providerID":"aws:///z/i-1"}}`)
		p.patch("another provider", o, types.MergePatchType, `{"spec":{"providerID":"aws:///z/i-2"}}`)
		p.patch("no provider", o, types.MergePatchType, `{"spec":{"providerID":null}}`)
		p.patch("cordon", o, types.MergePatchType, `{"spec":{"unschedulable":true}}`)
		p.patch("status by the main resource", o, types.MergePatchType, `{"status":{"nodeInfo":{"kubeletVersion":"x"}}}`)
		p.say("version", nil, o.Status.NodeInfo.KubeletVersion)
	},
	"held pod": func(p *parity) {
		o := p.pod()
		o.Finalizers = []string{"parity.test/hold"}
		p.create("create", o)
		p.say("delete", p.Delete(p.ctx, o))
		p.ending("held", o)
		p.bind("bind", o)
		p.evict("evict", o, nil)
		p.patch("release", o, types.MergePatchType, `{"metadata":{"finalizers":null}}`)
		p.read(o)
		b := p.pod()
		b.Name += "-bound"
		b.Finalizers = []string{"parity.test/hold"}
		p.create("create", b)
		p.bind("bind", b)
		p.say("delete", p.Delete(p.ctx, b))
		p.ending("asked", b)
		p.say("kubelet is done", p.Delete(p.ctx, b, client.GracePeriodSeconds(0)))
		p.ending("held", b)
		p.patch("release", b, types.MergePatchType, `{"metadata":{"finalizers":null}}`)
		p.read(b)
		c := p.pod()
		c.Name += "-early"
		c.Finalizers = []string{"parity.test/hold"}
		p.create("create", c)
		p.bind("bind", c)
		p.say("delete", p.Delete(p.ctx, c))
		p.patch("release before the kubelet is done", c, types.MergePatchType, `{"metadata":{"finalizers":null}}`)
		p.ending("runs on", c)
	},
	"tolerations": func(p *parity) {
		o := p.pod()
		p.create("create", o)
		more := o.DeepCopy()
		more.Spec.Tolerations = append(more.Spec.Tolerations, corev1.Toleration{Key: "k", Operator: corev1.TolerationOpExists})
		p.say("one more", p.Update(p.ctx, more), len(more.Spec.Tolerations), more.Generation)
		more.Spec.Tolerations = more.Spec.Tolerations[:2] // the first two are made anew if they are missing
		p.say("one less", p.Update(p.ctx, more))
		p.read(o)
		o.Spec.NodeSelector = map[string]string{"a": "b"}
		p.say("selector", p.Update(p.ctx, o))
	},
	"limits": func(p *parity) {
		o := p.pod()
		o.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("2")}
		o.Spec.PriorityClassName = "system-cluster-critical"
		o.Spec.TerminationGracePeriodSeconds = new(int64)
		p.create("create", o)
		p.say("given", nil, o.Spec.Containers[0].Resources.Requests.Cpu().Value(), *o.Spec.Priority, *o.Spec.TerminationGracePeriodSeconds)
		p.bind("bind", o)
		p.say("delete", p.Delete(p.ctx, o))
		p.ending("deleted", o)
	},
	"all of": func(p *parity) {
		for _, suffix := range []string{"a", "b"} {
			o := p.pod()
			o.Name += suffix
			p.create("create", o)
		}
		generated := p.pod()
		generated.Name, generated.GenerateName = "", p.name+"-"
		p.create("generate", generated)
		p.say("name", nil, len(generated.Name)-len(p.name), generated.GenerateName == p.name+"-")
		var list corev1.PodList
		p.say("list", p.List(p.ctx, &list, client.InNamespace("default"), client.MatchingLabels{"parity": p.name}), len(list.Items))
		p.say("delete", p.DeleteAllOf(p.ctx, &corev1.Pod{}, client.InNamespace("default"), client.MatchingLabels{"parity": p.name}))
		p.say("list", p.List(p.ctx, &list, client.InNamespace("default"), client.MatchingLabels{"parity": p.name}), len(list.Items))
	},
}
