package lab_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// Small pods fit on either machine, large ones only on the one with much
// memory. If small pods take that one, large ones stay pending for ever though
// the plan was complete. kube-scheduler must follow the plan.
func TestSchedulerFollowsThePlan(t *testing.T) {
	name := unique("plan")
	objects := pool(name, "node.kubernetes.io/instance-type=c6a.xlarge, r6a.xlarge")
	for i := range 3 {
		objects += pod(name, fmt.Sprintf("small-%d", i), name, "1", "1Gi") + pod(name, fmt.Sprintf("large-%d", i), name, "1", "8Gi")
	}
	namespace(t, name)
	apply(t, objects)
	planned := map[string]string{} // pod → claim, as long as the claim says so
	within(t, 90*time.Second, func() error {
		for pod, claim := range plannedPods(t) {
			planned[pod] = claim
		}
		return allRun(t, name, 6)()
	})
	if len(planned) == 0 {
		t.Fatal("no NodeClaim says which pods are planned for it")
	}
	nodes := nodesOfClaims(t)
	for _, p := range pods(t, name) {
		claim, ok := planned[name+"/"+p.Name]
		if !ok {
			t.Errorf("pod %s was planned for no machine", p.Name)
			continue
		}
		if nodes[claim] != p.Spec.NodeName {
			t.Errorf("pod %s runs on %s, planned for %s (%s)", p.Name, p.Spec.NodeName, nodes[claim], claim)
		}
	}
	if n := len(instances(name)); n != 2 {
		t.Errorf("%d machines were bought, want 2", n)
	}
}

var claims = schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodeclaims"}

// plannedPods maps each planned pod, as namespace/name, to its NodeClaim.
func plannedPods(t *testing.T) map[string]string {
	t.Helper()
	planned := map[string]string{}
	eachClaim(t, func(claim string, annotations map[string]string, _ string) {
		text := annotations["karpenter.sh/planned-pods"]
		var names []string
		if json.Unmarshal([]byte(text), &names) != nil {
			names = strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
		}
		for _, n := range names {
			planned[n] = claim
		}
	})
	return planned
}

// nodesOfClaims maps NodeClaims to the names of their Nodes.
func nodesOfClaims(t *testing.T) map[string]string {
	t.Helper()
	nodes := map[string]string{}
	eachClaim(t, func(claim string, _ map[string]string, node string) { nodes[claim] = node })
	return nodes
}

func eachClaim(t *testing.T, do func(claim string, annotations map[string]string, node string)) {
	t.Helper()
	client, err := dynamic.NewForConfig(shared.Config)
	if err != nil {
		t.Fatal(err)
	}
	list, err := client.Resource(claims).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list.Items {
		status, _ := c.Object["status"].(map[string]any)
		node, _ := status["nodeName"].(string)
		do(c.GetName(), c.GetAnnotations(), node)
	}
}
