package convert

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"karpenter/api/v1alpha5"
	"karpenter/internal/admission"
	"karpenter/internal/core/quantity"
	"karpenter/internal/core/world"
	"karpenter/internal/kube/dialect"
)

// Pool translates a Provisioner, with what it means where it says nothing.
//
// An object that breaks the rules of the API, or names no cloud settings, is
// an error. The pool that comes with it has name, kind and UID, and NotReady
// holds the text of the error without the name of the object: it can be part of a snapshot and buys nothing.
func Pool(p *v1alpha5.Provisioner) (world.Pool, error) {
	out := world.Pool{Name: p.Name, Kind: dialect.KindProvisioner, UID: string(p.UID)}
	err := admission.ValidateProvisioner(p)
	if err == nil && p.Spec.Provider == nil && (p.Spec.ProviderRef == nil || p.Spec.ProviderRef.Name == "") {
		err = &admission.InvalidError{Kind: v1alpha5.Kind, Name: p.Name, Problems: field.ErrorList{
			field.Required(field.NewPath("spec", "providerRef", "name"), "missing, so nothing can be bought: set it to the name of an AWSNodeTemplate"),
		}}
	}
	if err != nil {
		out.NotReady = admission.Reason(err)
		return out, err
	}
	spec := &admission.DefaultProvisioner(p).Spec
	if spec.Weight != nil {
		out.Weight = *spec.Weight
	}
	out.Class = classOf(p)
	out.Kubelet = kubelet(spec.KubeletConfiguration)
	out.Catalog = CatalogKey(out.Class, out.Kubelet)
	out.Labels = map[string]string{}
	for k, v := range spec.Labels {
		out.Labels[k] = string(v)
	}
	out.Labels[dialect.Provisioner.PoolLabel] = p.Name
	out.Annotations = maps.Clone(spec.Annotations)
	for _, r := range spec.Requirements {
		out.Requirements = append(out.Requirements, requirement(r.Key, r.Operator, r.Values))
	}
	out.Taints = taints(spec.Taints)
	out.StartupTaints = taints(spec.StartupTaints)
	if spec.Limits != nil {
		out.Limits = limits(spec.Limits.Resources)
	}
	out.EmptyAfter = seconds(spec.TTLSecondsAfterEmpty)
	out.ExpireAfter = seconds(spec.TTLSecondsUntilExpired)
	out.Consolidate = spec.Consolidation != nil && spec.Consolidation.Enabled != nil && *spec.Consolidation.Enabled
	return out, nil
}

// classOf names the AWSNodeTemplate, or the Provisioner itself where it holds
// the cloud settings.
func classOf(p *v1alpha5.Provisioner) world.ClassRef {
	if p.Spec.Provider != nil {
		return world.ClassRef{Group: v1alpha5.GroupVersion.Group, Kind: v1alpha5.Kind, Name: p.Name, Inline: string(p.Spec.Provider.Raw)}
	}
	return world.ClassRef{Group: dialect.Provisioner.ClassGroup, Kind: dialect.Provisioner.ClassKind, Name: p.Spec.ProviderRef.Name}
}

// CatalogKey names what pools with this class and these kubelet settings can
// buy. Equal settings give equal keys, in every process.
func CatalogKey(class world.ClassRef, k world.Kubelet) world.CatalogKey {
	name := class.Kind + "/" + class.Name
	text, err := json.Marshal(struct {
		Inline  string
		Kubelet world.Kubelet
	}{class.Inline, k})
	if err != nil {
		return world.CatalogKey(name) // plain values always marshal
	}
	sum := sha256.Sum256(text)
	return world.CatalogKey(name + "@" + hex.EncodeToString(sum[:4]))
}

func kubelet(k *v1alpha5.KubeletConfiguration) world.Kubelet {
	if k == nil {
		return world.Kubelet{}
	}
	out := world.Kubelet{
		ClusterDNS:                 slices.Clone(k.ClusterDNS),
		MaxPods:                    k.MaxPods,
		PodsPerCore:                k.PodsPerCore,
		SystemReserved:             quantities(k.SystemReserved),
		KubeReserved:               quantities(k.KubeReserved),
		EvictionHard:               texts(k.EvictionHard),
		EvictionSoft:               texts(k.EvictionSoft),
		EvictionSoftGracePeriod:    texts(k.EvictionSoftGracePeriod),
		EvictionMaxPodGraceSeconds: k.EvictionMaxPodGracePeriod,
	}
	if k.ContainerRuntime != nil {
		out.ContainerRuntime = *k.ContainerRuntime
	}
	return out
}

func quantities(list corev1.ResourceList) map[string]string {
	if len(list) == 0 {
		return nil
	}
	out := make(map[string]string, len(list))
	for name, q := range list {
		out[string(name)] = q.String()
	}
	return out
}

func texts[V ~string](m map[string]V) map[string]string {
	if len(m) == 0 {
		return nil
	}
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[k] = string(v)
	}
	return out
}

// limits keeps limits of zero: they mean that nothing may be bought.
func limits(list corev1.ResourceList) []quantity.Amount {
	var out []quantity.Amount
	for name, q := range list {
		out = append(out, quantity.Amount{Name: string(name), Value: amount(name, q, false)})
	}
	slices.SortFunc(out, func(a, b quantity.Amount) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// seconds bounds what a user may write to what a duration can hold.
func seconds(n *int64) *world.Duration {
	if n == nil {
		return nil
	}
	const longest = int64(1<<63-1) / int64(time.Second)
	return &world.Duration{Duration: time.Duration(min(*n, longest)) * time.Second}
}
