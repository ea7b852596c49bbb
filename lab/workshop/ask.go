package workshop

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"karpenter/internal/core/label"
	"karpenter/sim/ec2"
)

const namespace = "karpenter"

var (
	provisioners = schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1alpha5", Resource: "provisioners"}
	templates    = schema.GroupVersionResource{Group: "karpenter.k8s.aws", Version: "v1alpha1", Resource: "awsnodetemplates"}
	nodeclaims   = schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodeclaims"}
)

// machines are the instances of a provisioner that have not ended; empty: of
// all.
func (p *play) machines(provisioner string) (out []ec2.Instance) {
	for _, i := range p.Lab.Cloud.Instances() {
		if !i.Gone() && (provisioner == "" || i.Tags[label.Provisioner] == provisioner) {
			out = append(out, i)
		}
	}
	return out
}

// pods of a namespace with a label such as app=inflate.
func (p *play) pods(ctx context.Context, namespace, selector string) ([]corev1.Pod, error) {
	list, err := p.Lab.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// run holds when n pods run, and returns on which nodes.
func (p *play) run(ctx context.Context, selector string, n int) error {
	list, err := p.pods(ctx, "default", selector)
	if err != nil {
		return err
	}
	running := 0
	for _, pod := range list {
		if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
			running++
		}
	}
	if running != n {
		return fmt.Errorf("%d of %d pods %s run", running, n, selector)
	}
	return nil
}

// noMachines holds when nothing is left in EC2 and in the cluster.
func (p *play) noMachines(ctx context.Context) error {
	if left := p.machines(""); len(left) > 0 {
		return fmt.Errorf("%d machines are there", len(left))
	}
	claims, err := p.claims(ctx)
	if err != nil {
		return err
	}
	if len(claims) > 0 {
		return fmt.Errorf("%d NodeClaims are there", len(claims))
	}
	nodes, err := p.Lab.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: label.Provisioner})
	if err != nil {
		return err
	}
	if len(nodes.Items) > 0 {
		return fmt.Errorf("%d nodes are there", len(nodes.Items))
	}
	return nil
}

func (p *play) claims(ctx context.Context) ([]unstructured.Unstructured, error) {
	list, err := p.objects.Resource(nodeclaims).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// event returns the message of an event on a pod with a label.
func (p *play) event(ctx context.Context, reason, selector string) (string, error) {
	pods, err := p.pods(ctx, "default", selector)
	if err != nil {
		return "", err
	}
	events, err := p.Lab.Client.CoreV1().Events("default").List(ctx, metav1.ListOptions{FieldSelector: "reason=" + reason})
	if err != nil {
		return "", err
	}
	for _, e := range events.Items {
		ours := strings.Contains(e.Source.Component+e.ReportingController, "karpenter")
		if ours && slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return pod.UID == e.InvolvedObject.UID }) {
			return e.Message, nil
		}
	}
	return "", fmt.Errorf("no event %s on a pod %s", reason, selector)
}

// replicas are the pods of the controller, those that end left out.
func (p *play) replicas(ctx context.Context) (out []corev1.Pod, err error) {
	list, err := p.pods(ctx, namespace, "app.kubernetes.io/name=karpenter")
	for _, pod := range list {
		if pod.DeletionTimestamp == nil {
			out = append(out, pod)
		}
	}
	return out, err
}

// leader is the name of the pod that leads, by its own metrics: processes on one
// machine have one host name, so that the lease does not tell them apart.
func (p *play) leader(ctx context.Context) (string, error) {
	var leading []string
	for name, process := range p.Lab.Pods.Processes() {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, process.MetricsURL, nil)
		if err != nil {
			return "", err
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			continue // it is starting or ending
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err == nil && leads.Match(text) {
			leading = append(leading, name)
		}
	}
	if len(leading) != 1 {
		return "", fmt.Errorf("%d pods lead: %v", len(leading), leading)
	}
	return leading[0], nil
}

var leads = regexp.MustCompile(`(?m)^leader_election_master_status\{name="karpenter-leader-election"\} 1$`)

// contains checks what the last block printed.
func (p *play) contains(words ...string) error {
	for _, w := range words {
		if !strings.Contains(p.output, w) {
			return fmt.Errorf("%q was not printed", w)
		}
	}
	return nil
}
