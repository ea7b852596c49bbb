package agreement

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var namespaceNames = []string{"default", "blue", "red"}

// namespaces carry labels by which pods may select them.
func namespaces(d *draft) {
	for _, name := range append(namespaceNames, "kube-system") {
		d.Namespaces = append(d.Namespaces, corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{corev1.LabelMetadataName: name, "owner": pick(d, []string{"red", "blue"})},
		}})
	}
}

func (d *draft) namespace() string {
	if d.chance(0.2) {
		return pick(d, namespaceNames)
	}
	return namespaceNames[0]
}
