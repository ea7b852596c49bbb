package mirror

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/world"
)

func uses(claimName string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		source := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claimName}}
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "v", VolumeSource: source})
	}
}

func volumeClaim(name, volume string, modes ...corev1.PersistentVolumeAccessMode) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: volume, AccessModes: modes},
	}
}

func volumeIn(zone string) *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-" + zone}}
	v.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "ebs.csi.aws.com", VolumeHandle: "vol-" + zone}
	v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
		{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: label.Zone, Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}}},
	}}}
	return v
}

func apartFrom(team string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: label.Hostname, LabelSelector: &metav1.LabelSelector{},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": team}},
		}}}}
	}
}

// TestChangesOfOtherObjectsReachPodsThatDoNotChange: the pod stays as it is,
// what it refers to comes and changes.
func TestChangesOfOtherObjectsReachPodsThatDoNotChange(t *testing.T) {
	m, c := mirrorOf(t, provisioner(), pod("p", unschedulable, uses("data"), apartFrom("red")))
	pending := func() world.Pod {
		t.Helper()
		v := view(t, m, t0)
		if len(v.Pending) != 1 {
			t.Fatalf("want one pending pod, got %v", v.Pending)
		}
		return v.Pending[0]
	}
	create := func(objects ...client.Object) {
		t.Helper()
		for _, o := range objects {
			if err := c.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
	}
	if p := pending(); !strings.Contains(p.Refused, "no PersistentVolumeClaim default/data") || p.AntiAffinity[0].Namespaces != nil {
		t.Errorf("nothing exists yet: %q, apart from %v", p.Refused, p.AntiAffinity)
	}
	create(volumeIn("a"), volumeClaim("data", "pv-a"), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other", Labels: map[string]string{"team": "red"}}})
	p := pending()
	if strings.Contains(p.Refused, "data") || len(p.Volumes) != 1 || p.Volumes[0][0].Values[0] != "a" || p.Attach[0].Volume != "vol-a" {
		t.Errorf("its volume is in zone a: %+v", p)
	}
	if !slices.Equal(p.AntiAffinity[0].Namespaces, []string{"other"}) {
		t.Errorf("namespace other is of team red: %v", p.AntiAffinity)
	}
	if err := c.Delete(t.Context(), volumeClaim("data", "pv-a")); err != nil {
		t.Fatal(err)
	}
	if p := pending(); !strings.Contains(p.Refused, "no PersistentVolumeClaim") {
		t.Errorf("the claim is gone again: %q", p.Refused)
	}
}

func TestPodsOfNodesCarryTheirRules(t *testing.T) {
	m, _ := mirrorOf(t, provisioner(), nodeOf("a"), volumeIn("a"), volumeClaim("data", "pv-a"), pod("p", on("node-a"), uses("data"), apartFrom("red")))
	n := view(t, m, t0).Nodes[0]
	if p := n.Pods[0]; len(p.AntiAffinity) != 1 || len(p.Attach) != 1 || p.Labels["app"] != "p" {
		t.Errorf("got %+v", p)
	}
}

func TestOnePodHasAClaimForItself(t *testing.T) {
	m, c := mirrorOf(t, provisioner(), nodeOf("a"), volumeIn("a"), volumeClaim("data", "pv-a", corev1.ReadWriteOncePod),
		pod("first", on("node-a"), uses("data")), pod("second", unschedulable, uses("data")))
	if p := view(t, m, t0).Pending[0]; !strings.Contains(p.Refused, "pod first uses it") {
		t.Errorf("got %q", p.Refused)
	}
	if err := c.Delete(t.Context(), pod("first")); err != nil {
		t.Fatal(err)
	}
	if p := view(t, m, t0).Pending[0]; strings.Contains(p.Refused, "uses it") {
		t.Errorf("the first is gone: %q", p.Refused)
	}
}

func TestAttachLimits(t *testing.T) {
	count := int32(25)
	told := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "node-a"}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{
		{Name: "ebs.csi.aws.com", Allocatable: &storagev1.VolumeNodeResources{Count: &count}},
	}}}
	m, _ := mirrorOf(t, provisioner(), claim("a", launched), nodeOf("a"), told, claim("b", launched), nodeOf("b"), claim("c"))
	want := map[string]int64{"node-a": 25, "node-b": 7, "c": 7}
	for _, n := range view(t, m, t0).Nodes {
		if len(n.AttachLimits) != 1 || n.AttachLimits[0] != (quantity.Amount{Name: "ebs.csi.aws.com", Value: want[n.Name]}) {
			t.Errorf("%s: got %v, want %d", n.Name, n.AttachLimits, want[n.Name])
		}
	}
}
