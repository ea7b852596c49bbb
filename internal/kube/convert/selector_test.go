package convert

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Whatever is taken for valid at first sight is valid to Kubernetes.
func TestPlainSelectors(t *testing.T) {
	words := []string{"", "a", "-", "a-", "-a", "a-b", "0", "A", "a.b", "a/b", "ä", "a b", strings.Repeat("x", 63), strings.Repeat("x", 64)}
	for _, k := range words {
		for _, v := range words {
			s := &metav1.LabelSelector{MatchLabels: map[string]string{k: v}}
			_, err := metav1.LabelSelectorAsSelector(s)
			if plain(s) && err != nil {
				t.Errorf("%q=%q is not plain: %v", k, v, err)
			}
			if got := Selector(s); got.Nothing != (err != nil) {
				t.Errorf("%q=%q became %v, Kubernetes says %v", k, v, got, err)
			}
		}
	}
}
