package lab_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karpenter/lab"
)

// shared is the lab that the tests of this package use, one after the other.
var shared *lab.Lab

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	root, err := filepath.Abs("..")
	if err != nil {
		return 1, err
	}
	state := filepath.Join(root, ".lab", "test")
	if err := os.MkdirAll(state, 0o755); err != nil {
		return 1, err
	}
	log, err := os.Create(filepath.Join(state, "lab.log"))
	if err != nil {
		return 1, err
	}
	defer log.Close()
	began := time.Now()
	// With a leader election, so that the rights for it are needed too.
	shared, err = lab.Start(context.Background(), lab.Options{Root: root, State: state, Log: log, Env: []string{"LEADER_ELECT=true"}})
	if err != nil {
		return 1, err
	}
	fmt.Printf("the lab took %.1f s to start; its logs: %s\n", time.Since(began).Seconds(), filepath.Join(state, "logs"))
	defer func() { err = errors.Join(err, shared.Stop()) }()
	if code = m.Run(); code == 0 {
		err = checkRights(root)
	}
	return code, err
}

// applyTo creates objects from YAML in a lab, or changes them, and returns the file
// that they are in.
func applyTo(t *testing.T, l *lab.Lab, yaml string) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "objects.yaml")
	if err := os.WriteFile(file, []byte(yaml), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Cluster.Kubectl(t.Context(), "apply", "-f", file); err != nil {
		t.Fatal(err)
	}
	return file
}

// apply creates objects from YAML and deletes them after the test.
func apply(t *testing.T, yaml string) {
	t.Helper()
	file := applyTo(t, shared, yaml)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		if _, err := shared.Cluster.Kubectl(ctx, "delete", "--ignore-not-found", "-f", file); err != nil {
			t.Error(err)
		}
	})
}

var names atomic.Int64

// unique makes a name that no earlier test used, so that machines which are
// still on their way out are not taken for this test's.
func unique(prefix string) string { return fmt.Sprintf("%s-%d", prefix, names.Add(1)) }

// within waits until the condition returns nil.
func within(t *testing.T, limit time.Duration, condition func() error) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for {
		err := condition()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %s still: %v", limit, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// namespace makes a namespace for the test's pods.
func namespace(t *testing.T, name string) {
	t.Helper()
	apply(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: "+name+"}\n")
}

// pods lists the pods of a namespace.
func pods(t *testing.T, namespace string) []corev1.Pod {
	t.Helper()
	list, err := shared.Client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// allRun holds when n pods of a namespace run.
func allRun(t *testing.T, namespace string, n int) func() error {
	return func() error {
		running := 0
		for _, p := range pods(t, namespace) {
			if p.Status.Phase == corev1.PodRunning {
				running++
			}
		}
		if running != n {
			return fmt.Errorf("%d of %d pods run", running, n)
		}
		return nil
	}
}

// pool is a Provisioner and an AWSNodeTemplate of the same name.
func pool(name string, requirements ...string) string {
	text := `
apiVersion: karpenter.k8s.aws/v1alpha1
kind: AWSNodeTemplate
metadata: {name: NAME}
spec:
  subnetSelector: {Name: "birenchong-eks-vpc-stack-PrivateSubnet*"}
  securityGroupSelector: {aws-ids: sg-0xxxxxxxxxxxxxxxxx6}
---
apiVersion: karpenter.sh/v1alpha5
kind: Provisioner
metadata: {name: NAME}
spec:
  ttlSecondsAfterEmpty: 2
  providerRef: {name: NAME}
  requirements:
`
	for _, r := range requirements {
		key, values, _ := strings.Cut(r, "=")
		text += fmt.Sprintf("    - {key: %s, operator: In, values: [%s]}\n", key, values)
	}
	return strings.ReplaceAll(text, "NAME", name) + "---\n"
}

// pod is a pod of one container for a provisioner's machines.
func pod(namespace, name, provisioner, cpu, memory string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: %s}
spec:
  terminationGracePeriodSeconds: 0
  nodeSelector: {karpenter.sh/provisioner-name: %s}
  containers:
    - name: main
      image: public.ecr.aws/eks-distro/kubernetes/pause:3.2
      resources: {requests: {cpu: %q, memory: %s}}
---
`, name, namespace, provisioner, cpu, memory)
}
