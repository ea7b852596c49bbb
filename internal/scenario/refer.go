package scenario

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karpenter/internal/kube/convert"
)

// refer puts together what pods and nodes refer to. What an API server or its
// controllers would have added is added here: namespaces that nobody wrote down,
// the name of each as a label, and the claims of StatefulSets.
func (m *Manifests) refer() *convert.Lookups {
	look := &convert.Lookups{}
	for _, p := range m.Pods {
		look.Add(namespace(p.Namespace, nil))
		look.Add(p)
	}
	for _, c := range m.templates {
		look.Add(c)
	}
	for _, o := range m.Referred {
		if n, ok := o.(*corev1.Namespace); ok {
			o = namespace(n.Name, n.Labels)
		}
		look.Add(o)
	}
	return look
}

func namespace(name string, labels map[string]string) *corev1.Namespace {
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelMetadataName: name}}}
	maps.Copy(n.Labels, labels)
	return n
}

// withRuntime returns the pod with what the admission of the API server takes
// from its RuntimeClass: the overhead, and where such pods may run. A class that
// is not among the manifests is taken to add nothing.
func (m *Manifests) withRuntime(p *corev1.Pod) *corev1.Pod {
	var class *nodev1.RuntimeClass
	for _, r := range m.Runtimes {
		if p.Spec.RuntimeClassName != nil && r.Name == *p.Spec.RuntimeClassName {
			class = r
		}
	}
	if class == nil {
		return p
	}
	p = p.DeepCopy()
	if class.Overhead != nil && p.Spec.Overhead == nil {
		p.Spec.Overhead = class.Overhead.PodFixed
	}
	if s := class.Scheduling; s != nil {
		selector := maps.Clone(s.NodeSelector)
		if selector == nil {
			selector = map[string]string{}
		}
		maps.Copy(selector, p.Spec.NodeSelector)
		p.Spec.NodeSelector = selector
		p.Spec.Tolerations = append(p.Spec.Tolerations, s.Tolerations...)
	}
	return p
}
