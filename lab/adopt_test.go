package lab_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karpenter/sim/ec2"
)

// A NodePool takes the machines of a Provisioner over and gives them back, while
// a Deployment grows. No pod is moved and no machine ends.
func TestANodePoolTakesMachinesOverAndGivesThemBack(t *testing.T) {
	name := unique("adopt")
	namespace(t, name)
	apply(t, pool(name, "node.kubernetes.io/instance-type=m6a.large")+deployment(name))
	scale := func(n int) {
		t.Helper()
		if _, err := shared.Cluster.Kubectl(t.Context(), "scale", "deployment", "inflate", "-n", name, "--replicas", fmt.Sprint(n)); err != nil {
			t.Fatal(err)
		}
	}
	scale(2)
	within(t, time.Minute, allRun(t, name, 2))
	first := where(t, name)

	apply(t, twin(name)) // only now: it could have bought the first machines as well
	annotate := func(value string) {
		t.Helper()
		if _, err := shared.Cluster.Kubectl(t.Context(), "annotate", "nodepool", name, "--overwrite", "karpenter.sh/adopt-provisioner"+value); err != nil {
			t.Fatal(err)
		}
	}
	annotate("=" + name)
	scale(4)
	within(t, time.Minute, ownedBy(t, name, "karpenter.sh/nodepool", "karpenter.sh/provisioner-name"))
	within(t, time.Minute, allRun(t, name, 4))
	within(t, time.Minute, ownedBy(t, name, "karpenter.sh/nodepool", "karpenter.sh/provisioner-name"))
	second := where(t, name)

	annotate("-")
	scale(5)
	// What the Provisioner bought goes back to it; what the NodePool itself
	// bought stays where it is.
	within(t, time.Minute, func() error {
		for _, n := range nodesOf(t, second) {
			if before, adopted := first[podOn(second, n.Name)]; adopted && before == n.Name && n.Labels["karpenter.sh/provisioner-name"] != name {
				return fmt.Errorf("node %s has not gone back", n.Name)
			}
		}
		return nil
	})
	within(t, time.Minute, allRun(t, name, 5))

	now := where(t, name)
	for pod, node := range second {
		if now[pod] != node {
			t.Errorf("pod %s was on %s, and is on %q now", pod, node, now[pod])
		}
	}
	for pod, node := range first {
		if second[pod] != node {
			t.Errorf("pod %s was on %s, and was on %q after the move", pod, node, second[pod])
		}
	}
	for _, i := range shared.Cloud.Instances() {
		if mine := i.Tags["karpenter.sh/provisioner-name"] + i.Tags["karpenter.sh/nodepool"]; strings.HasPrefix(mine, name) && i.State != ec2.Running {
			t.Errorf("instance %s is %s", i.ID, i.State)
		}
	}
	scale(0)
}

// where tells, by UID, on which node each pod runs.
func where(t *testing.T, namespace string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, p := range pods(t, namespace) {
		if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
			out[string(p.UID)] = p.Spec.NodeName
		}
	}
	return out
}

func podOn(where map[string]string, node string) string {
	for pod, n := range where {
		if n == node {
			return pod
		}
	}
	return ""
}

// nodesOf are the nodes on which the pods run.
func nodesOf(t *testing.T, where map[string]string) (out []corev1.Node) {
	t.Helper()
	list, err := shared.Client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range list.Items {
		if podOn(where, n.Name) != "" {
			out = append(out, n)
		}
	}
	return out
}

// ownedBy holds when the pods run on machines that carry one label with the
// name, and not the other, in the cluster and in EC2.
func ownedBy(t *testing.T, name, label, not string) func() error {
	return func() error {
		nodes := nodesOf(t, where(t, name))
		for _, n := range nodes {
			if n.Labels[label] != name || n.Labels[not] != "" {
				return fmt.Errorf("node %s: %s=%q, %s=%q", n.Name, label, n.Labels[label], not, n.Labels[not])
			}
			i, ok := shared.Cloud.Instance(n.Spec.ProviderID[strings.LastIndex(n.Spec.ProviderID, "/")+1:])
			if !ok || i.Tags[label] != name || i.Tags[not] != "" {
				return fmt.Errorf("instance of node %s: tags %v", n.Name, i.Tags)
			}
		}
		if len(nodes) == 0 {
			return fmt.Errorf("no nodes")
		}
		return nil
	}
}

// twin is a NodePool that buys the same machines as [pool], and the class that
// it needs; its nodes and those of the Provisioner may both be used.
func twin(name string) string {
	return strings.ReplaceAll(`
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: NAME}
spec:
  role: karpenter-workshop-node
  amiSelectorTerms: [{alias: al2023@latest}]
  subnetSelectorTerms: [{tags: {Name: "birenchong-eks-vpc-stack-PrivateSubnet*"}}]
  securityGroupSelectorTerms: [{id: sg-0xxxxxxxxxxxxxxxxx6}]
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: NAME}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: NAME}
      requirements:
        - {key: node.kubernetes.io/instance-type, operator: In, values: [m6a.large]}
        - {key: kubernetes.io/os, operator: In, values: [linux]}
        - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
  disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: 2s, budgets: [{nodes: 100%}]}
---
`, "NAME", name)
}

// deployment is one whose pods take a machine each, of any pool.
func deployment(namespace string) string {
	return strings.ReplaceAll(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: inflate, namespace: NAME}
spec:
  replicas: 0
  selector: {matchLabels: {app: inflate}}
  template:
    metadata: {labels: {app: inflate}}
    spec:
      terminationGracePeriodSeconds: 0
      nodeSelector: {node.kubernetes.io/instance-type: m6a.large}
      containers:
        - name: inflate
          image: public.ecr.aws/eks-distro/kubernetes/pause:3.2
          resources: {requests: {cpu: 1200m, memory: 1Gi}}
---
`, "NAME", namespace)
}
