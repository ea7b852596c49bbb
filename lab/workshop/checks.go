package workshop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"karpenter/internal/core/label"
	"karpenter/lab"
	"karpenter/sim/ec2"
)

// at is a block of the page: the number of its step, and which of its blocks.
type at struct{ step, block int }

// checks are what must be seen after a block. They are listed in the order of
// the page.
var checks = map[at]func(*play, context.Context) error{
	{0, 1}: func(p *play, _ context.Context) error { return p.contains(lab.ClusterName, "123456789012") },
	{1, 1}: (*play).stack,
	{5, 1}: (*play).spotRole,
	{6, 1}: (*play).installed,
	{7, 1}: (*play).twoReplicas,
	{7, 2}: (*play).scaledBack,
	{8, 1}: (*play).stored,
	{10, 1}: func(p *play, _ context.Context) error {
		return p.contains("zap-logger-config", "loglevel.webhook", "error")
	},
	{11, 1}: (*play).debugs,
	{12, 1}: (*play).nothingBought,
	{13, 1}: (*play).refused,
	{13, 2}: func(p *play, _ context.Context) error { return p.contains("intent", "test") },
	{13, 3}: (*play).firstMachine,
	{13, 4}: (*play).secondMachine,
	{14, 1}: (*play).emptyMachinesGo,
	{15, 1}: func(p *play, _ context.Context) error { return p.contains("No resources found") },
	{16, 1}: (*play).uninstalled,
}

// stack holds when everything of the template is there. The queue is then made
// in the simulated EC2, which has the events that go into it.
func (p *play) stack(ctx context.Context) error {
	out, err := p.shell.run(ctx, `aws cloudformation describe-stacks --stack-name Karpenter-${CLUSTER_NAME} --query 'Stacks[0].StackStatus' --output text
aws iam get-instance-profile --instance-profile-name KarpenterNodeInstanceProfile-${CLUSTER_NAME} --query 'InstanceProfile.Roles[0].RoleName' --output text
aws iam get-policy --policy-arn arn:aws:iam::${ACCOUNT_ID}:policy/KarpenterControllerPolicy-${CLUSTER_NAME} --query Policy.PolicyName --output text
aws cloudformation list-stack-resources --stack-name Karpenter-${CLUSTER_NAME} --query 'StackResourceSummaries[].LogicalResourceId' --output text
aws events list-rules --query 'Rules[].EventPattern' --output text`)
	if err != nil {
		return err
	}
	p.output = out
	p.Lab.Cloud.AddQueue(lab.ClusterName)
	return p.contains("CREATE_COMPLETE", "KarpenterNodeRole-"+lab.ClusterName,
		"KarpenterControllerPolicy-"+lab.ClusterName, "KarpenterInterruptionQueue", "ScheduledChangeRule", "SpotInterruptionRule", "RebalanceRule",
		"InstanceStateChangeRule", "EC2 Spot Instance Interruption Warning", "AWS Health Event", "EC2 Instance Rebalance Recommendation",
		"EC2 Instance State-change Notification")
}

// spotRole holds when the second time is harmless.
func (p *play) spotRole(ctx context.Context) error {
	if err := p.contains("AWSServiceRoleFor"); err != nil {
		return err
	}
	again := p.steps[5].Blocks[0]
	if err := p.block(ctx, again); err != nil {
		return err
	}
	return p.contains("Already exist")
}

// installed holds when both replicas are ready and one leads.
func (p *play) installed(ctx context.Context) error {
	if err := p.contains("defaultProvisioner.create does nothing"); err != nil {
		return err
	}
	d, err := p.Lab.Client.AppsV1().Deployments(namespace).Get(ctx, "karpenter", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if d.Status.ReadyReplicas != 2 {
		return fmt.Errorf("helm --wait returned with %d of 2 replicas ready", d.Status.ReadyReplicas)
	}
	// It holds its role's rights, as on EKS.
	account, err := p.Lab.Client.CoreV1().ServiceAccounts(namespace).Get(ctx, "karpenter", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if role := account.Annotations["eks.amazonaws.com/role-arn"]; role != "arn:aws:iam::123456789012:role/"+lab.ClusterName+"-karpenter" {
		return fmt.Errorf("the service account has the role %q", role)
	}
	return until(ctx, 30*time.Second, func() error { _, err := p.leader(ctx); return err })
}

func (p *play) twoReplicas(ctx context.Context) error {
	pods, err := p.replicas(ctx)
	if err != nil {
		return err
	}
	service, err := p.Lab.Client.CoreV1().Services(namespace).Get(ctx, "karpenter", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if len(service.Spec.Ports) != 1 || service.Spec.Ports[0].Port != 8080 {
		return fmt.Errorf("the Service has the ports %v, want that of the metrics only", service.Spec.Ports)
	}
	nodes := map[string]bool{}
	for _, pod := range pods {
		nodes[pod.Spec.NodeName] = true
		if name := pod.Spec.Containers[0].Name; name != "controller" {
			return fmt.Errorf("the container is called %q", name)
		}
	}
	if len(pods) != 2 || len(nodes) != 2 {
		return fmt.Errorf("%d pods on %d nodes, want 2 on 2", len(pods), len(nodes))
	}
	return p.contains("deployment.apps/karpenter", "2/2", "service/karpenter", "8080/TCP")
}

func (p *play) scaledBack(ctx context.Context) error {
	if err := p.contains("successfully rolled out"); err != nil {
		return err
	}
	return until(ctx, time.Minute, func() error {
		if n := len(p.Lab.Pods.Processes()); n != 2 {
			return fmt.Errorf("%d processes run for 2 replicas", n)
		}
		_, err := p.leader(ctx)
		return err
	})
}

// stored holds when the API server keeps what was applied, unchanged, and
// nothing starts.
func (p *play) stored(ctx context.Context) error {
	for file, where := range map[string]struct {
		resource schema.GroupVersionResource
		name     string
	}{"provisioner.yaml": {provisioners, "test"}, "awsnodetemplate.yaml": {templates, "default"}} {
		text, err := os.ReadFile(filepath.Join(p.Root, "examples", "workshop", file))
		if err != nil {
			return err
		}
		var applied unstructured.Unstructured
		if err := yaml.Unmarshal(text, &applied.Object); err != nil {
			return err
		}
		kept, err := p.objects.Resource(where.resource).Get(ctx, where.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if a, b := canonical(applied.Object["spec"]), canonical(kept.Object["spec"]); a != b {
			return fmt.Errorf("%s was stored as %s, applied as %s", where.name, b, a)
		}
	}
	return p.nothingBought(ctx)
}

func canonical(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
}

// levelChanged is the line in which a controller says that it logs more now.
var levelChanged = regexp.MustCompile(`(?i)log level.*debug`)

func (p *play) debugs(ctx context.Context) error {
	return until(ctx, 30*time.Second, func() error {
		files, err := filepath.Glob(filepath.Join(p.Lab.Cluster.State, "pods", "*", "log"))
		if err != nil {
			return err
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			if levelChanged.Match(text) {
				return nil
			}
		}
		return errors.New("no controller says that its level has changed to debug")
	})
}

func (p *play) nothingBought(context.Context) error {
	if all := p.Lab.Cloud.Instances(); len(all) > 0 {
		return fmt.Errorf("%d machines were bought", len(all))
	}
	return nil
}

// refused holds when the event on the pod says why nothing is bought.
func (p *play) refused(ctx context.Context) error {
	if err := p.contains("0/1"); err != nil {
		return err
	}
	err := until(ctx, 30*time.Second, func() error {
		said, err := p.event(ctx, "FailedScheduling", "app=inflate")
		if err != nil {
			return err
		}
		if !strings.Contains(said, "test") || !strings.Contains(said, "intent") {
			return fmt.Errorf("the event does not name the Provisioner and the label: %s", said)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return p.nothingBought(ctx)
}

// firstMachine holds the machine and its node against the specification.
func (p *play) firstMachine(ctx context.Context) error {
	found := p.machines("")
	if len(found) != 1 || found[0].Type != "m6a.xlarge" || found[0].Market != ec2.OnDemand {
		return fmt.Errorf("bought %v, want one on-demand m6a.xlarge", found)
	}
	for key, value := range map[string]string{
		label.Provisioner: "test", "KarpenerProvisionerName": "default", "NodeType": "karpenter-workshop", "IntentLabel": "apps",
		"Name": "karpenter.sh/provisioner-name/test", "kubernetes.io/cluster/" + lab.ClusterName: "owned",
	} {
		if got := found[0].Tags[key]; got != value {
			return fmt.Errorf("the machine's tag %s is %q, want %q", key, got, value)
		}
	}
	want := map[string]string{
		"env": "prod", "env-test": "true", "eks.amazonaws.com/nodegroup": "test", label.Provisioner: "test", label.CapacityType: label.OnDemand,
		"karpenter.k8s.aws/instance-family": "m6a", "karpenter.k8s.aws/instance-size": "xlarge", label.Initialized: "true",
	}
	err := until(ctx, 30*time.Second, func() error {
		nodes, err := p.Lab.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: label.Provisioner + "=test"})
		if err != nil || len(nodes.Items) != 1 {
			return errors.Join(fmt.Errorf("%d nodes, want one", len(nodes.Items)), err)
		}
		n := nodes.Items[0]
		for _, key := range slices.Sorted(maps.Keys(want)) {
			if n.Labels[key] != want[key] {
				return fmt.Errorf("label %s of the node is %q, want %q", key, n.Labels[key], want[key])
			}
		}
		if !slices.Contains(n.Finalizers, "karpenter.sh/termination") {
			return errors.New("the node has no finalizer")
		}
		pool, err := p.objects.Resource(provisioners).Get(ctx, "test", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if cpu, _, _ := unstructured.NestedString(pool.Object, "status", "resources", "cpu"); cpu != "4" {
			return fmt.Errorf("status.resources.cpu of the Provisioner is %q, want 4", cpu)
		}
		return nil
	})
	if err != nil {
		return err
	}
	_, err = p.event(ctx, "Nominated", "app=inflate")
	return err
}

func (p *play) secondMachine(context.Context) error {
	if n := len(p.machines("test")); n != 2 {
		return fmt.Errorf("%d machines for four pods, want 2", n)
	}
	return nil
}

// emptyMachinesGo holds when all are gone, and not before their time.
func (p *play) emptyMachinesGo(ctx context.Context) error {
	began := time.Now()
	if err := until(ctx, 3*time.Minute, func() error { return p.noMachines(ctx) }); err != nil {
		return err
	}
	if d := time.Since(began); d < 29*time.Second { // the stamp has whole seconds
		return fmt.Errorf("the machines went after %s, before the 30 s of ttlSecondsAfterEmpty", d)
	}
	return nil
}

// uninstalled holds when nothing is left but what the page names.
func (p *play) uninstalled(ctx context.Context) error {
	gone := func() error {
		out, err := p.shell.run(ctx, `kubectl get deployment,replicaset,pod,service,serviceaccount,configmap,secret,poddisruptionbudget,role,rolebinding -A -l app.kubernetes.io/instance=karpenter -o name
kubectl get clusterrole,clusterrolebinding -l app.kubernetes.io/instance=karpenter -o name
kubectl get secret -n karpenter -o name`)
		if err != nil {
			return err
		}
		if out = strings.ReplaceAll(out, "No resources found", ""); strings.Contains(out, "/") {
			return fmt.Errorf("left over: %s", strings.Join(strings.Fields(out), ", "))
		}
		if n := len(p.Lab.Pods.Processes()); n > 0 {
			return fmt.Errorf("%d processes run", n)
		}
		return nil
	}
	if err := until(ctx, time.Minute, gone); err != nil {
		return err
	}
	for resource, name := range map[schema.GroupVersionResource]string{provisioners: "test", templates: "default"} {
		if _, err := p.objects.Resource(resource).Get(ctx, name, metav1.GetOptions{}); apierrors.IsNotFound(err) {
			return fmt.Errorf("%s %s is gone, too", resource.Resource, name)
		} else if err != nil {
			return err
		}
	}
	return nil
}
