// Package charttest holds the charts against the real helm commands and a real
// API server: linted, every value set, validated by the server, and upgraded
// from every value set to the defaults and back.
//
// How the chart behaves with a controller in it is the workshop's part.
package charttest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"karpenter/lab"
)

// Options of a run; all are required.
type Options struct {
	Root, State string
	Lab         *lab.Lab // without a controller
	// Helms are the folders of the helm commands to try.
	Helms []string
	Out   *os.File
}

type run struct {
	Options
	helm string // the command
}

const (
	chart = "charts/karpenter"
	crds  = "charts/karpenter-crd"
	all   = "charts/testdata/all-values.yaml"
	some  = "charts/testdata/workshop-values.yaml"
)

// Run tries every helm command. Each check is a line with its time.
func Run(ctx context.Context, opt Options) error {
	// The Prometheus operator is not here; its kind must be known to be accepted.
	if _, err := opt.Lab.Cluster.Kubectl(ctx, "apply", "-f", filepath.Join(opt.Root, "lab", "charttest", "servicemonitor.yaml")); err != nil {
		return err
	}
	for _, folder := range opt.Helms {
		r := &run{Options: opt, helm: filepath.Join(folder, "helm")}
		version, err := r.call(ctx, "version", "--short")
		if err != nil {
			return err
		}
		fmt.Fprintf(opt.Out, "helm %s\n", strings.TrimSpace(version))
		for _, check := range []struct {
			title string
			do    func(context.Context) error
		}{
			{"both charts are linted", r.lint},
			{"the API server accepts what is rendered", r.render},
			{"a typo is refused by its name", r.typo},
			{"CRDs are installed and upgraded by karpenter-crd", r.upgradeCRDs},
			{"all values, defaults, all values: each as if new", r.upgrade},
		} {
			began := time.Now()
			err := check.do(ctx)
			mark := "✓"
			if err != nil {
				mark = "✗"
			}
			fmt.Fprintf(opt.Out, "%s %-58s %6.1f s\n", mark, check.title, time.Since(began).Seconds())
			if err != nil {
				return fmt.Errorf("%s: %w", check.title, err)
			}
		}
	}
	return nil
}

// call runs helm and returns its output; an error holds what it said.
func (r *run) call(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, r.helm, args...)
	folder := filepath.Join(r.State, "helm")
	cmd.Dir, cmd.Env = r.Root, append(os.Environ(), "KUBECONFIG="+r.Lab.Cluster.Kubeconfig(),
		"HELM_CACHE_HOME="+folder, "HELM_CONFIG_HOME="+folder, "HELM_DATA_HOME="+folder)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("helm %s: %w: %s%s", strings.Join(args, " "), err, said.String(), out.String())
	}
	return out.String(), nil
}

func (r *run) lint(ctx context.Context) error {
	for _, args := range [][]string{{chart}, {chart, "-f", all}, {chart, "-f", some}, {crds}} {
		if _, err := r.call(ctx, append([]string{"lint", "--strict"}, args...)...); err != nil {
			return err
		}
	}
	return nil
}

// render lets the server judge, without keeping anything.
func (r *run) render(ctx context.Context) error {
	for i, values := range [][]string{{}, {"-f", all}, {"-f", some}} {
		text, err := r.call(ctx, append([]string{"template", "karpenter", chart, "--namespace", "karpenter", "--kube-version", r.Lab.Cluster.Version}, values...)...)
		if err != nil {
			return err
		}
		file := filepath.Join(r.State, fmt.Sprintf("rendered-%d.yaml", i))
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return err
		}
		if _, err := r.Lab.Cluster.Kubectl(ctx, "apply", "--dry-run=server", "--validate=strict", "-f", file); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) typo(ctx context.Context) error {
	_, err := r.call(ctx, "template", "karpenter", chart, "--set", "settings.aws.interuptionQueueName=x")
	if err == nil || !strings.Contains(err.Error(), "interuptionQueueName") {
		return fmt.Errorf("the error does not name the value: %v", err)
	}
	return nil
}

// upgradeCRDs takes over the CRDs that are there, as one who has installed the
// main chart does.
func (r *run) upgradeCRDs(ctx context.Context) error {
	take := []string{"upgrade", "--install", "karpenter-crd", crds, "--namespace", "karpenter", "--take-ownership"}
	if _, err := r.call(ctx, take...); err != nil {
		return err
	}
	if _, err := r.call(ctx, append(take, "--set", `additionalAnnotations.example\.com/x=y`)...); err != nil {
		return err
	}
	out, err := r.Lab.Cluster.Kubectl(ctx, "get", "crd", "-o", `jsonpath={range .items[*]}{.metadata.name}={.metadata.annotations.example\.com/x} {end}`)
	if err != nil {
		return err
	}
	for _, name := range []string{"provisioners.karpenter.sh", "awsnodetemplates.karpenter.k8s.aws", "nodepools.karpenter.sh", "nodeclaims.karpenter.sh", "ec2nodeclasses.karpenter.k8s.aws"} {
		if !strings.Contains(out, name+"=y ") {
			return fmt.Errorf("CRD %s was not upgraded: %s", name, out)
		}
	}
	// Forgotten rather than deleted: the CRDs are the lab's.
	_, err = r.Lab.Cluster.Kubectl(ctx, "delete", "secret", "-n", "karpenter", "-l", "owner=helm,name=karpenter-crd")
	return err
}

// upgrade goes from every value to the defaults and back, and each time finds
// what a new installation would make.
func (r *run) upgrade(ctx context.Context) error {
	defaults := []string{"--set", "settings.clusterName=x", "--set", "replicas=0"}
	// With the same names and selectors, which cannot change.
	every := []string{"-f", all, "--set", "fullnameOverride=", "--set", "nameOverride=", "--set", "replicas=0", "--set", "podDisruptionBudget.name=karpenter"}
	var fresh [2]string
	for i, values := range [][]string{defaults, every} {
		if err := r.install(ctx, values); err != nil {
			return err
		}
		var err error
		if fresh[i], err = r.installed(ctx); err != nil {
			return err
		}
		if err := r.uninstall(ctx); err != nil {
			return err
		}
	}
	for i, step := range []struct {
		values []string
		want   string
	}{{every, fresh[1]}, {defaults, fresh[0]}, {every, fresh[1]}} {
		if err := r.install(ctx, step.values); err != nil {
			return err
		}
		got, err := r.installed(ctx)
		if err != nil {
			return err
		}
		if got != step.want {
			return fmt.Errorf("after upgrade %d other objects are there than after an installation with the same values:\n%s", i, difference(step.want, got))
		}
	}
	return r.uninstall(ctx)
}

func (r *run) install(ctx context.Context, values []string) error {
	_, err := r.call(ctx, append([]string{"upgrade", "--install", "karpenter", chart, "--namespace", "karpenter"}, values...)...)
	return err
}

func (r *run) uninstall(ctx context.Context) error {
	if _, err := r.call(ctx, "uninstall", "karpenter", "--namespace", "karpenter", "--wait"); err != nil {
		return err
	}
	left, err := r.installed(ctx)
	if err == nil && left != "" {
		err = errors.New("left over after uninstall:\n" + left)
	}
	return err
}

// installed writes the objects of the release as they are in the server, without
// what differs from one creation to the next.
func (r *run) installed(ctx context.Context) (string, error) {
	out, err := r.Lab.Cluster.Kubectl(ctx, "get", "-A", "-l", "app.kubernetes.io/instance=karpenter", "-o", "json",
		"deployment,service,serviceaccount,configmap,poddisruptionbudget,role,rolebinding,clusterrole,clusterrolebinding,servicemonitor")
	if err != nil {
		return "", err
	}
	var list unstructured.UnstructuredList
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		return "", err
	}
	var texts []string
	for _, o := range list.Items {
		for _, field := range [][]string{
			{"status"}, {"metadata", "uid"}, {"metadata", "resourceVersion"}, {"metadata", "creationTimestamp"}, {"metadata", "generation"},
			{"metadata", "managedFields"}, {"metadata", "annotations", "deployment.kubernetes.io/revision"},
			{"spec", "clusterIP"}, {"spec", "clusterIPs"},
		} {
			unstructured.RemoveNestedField(o.Object, field...)
		}
		if len(o.GetAnnotations()) == 0 {
			unstructured.RemoveNestedField(o.Object, "metadata", "annotations")
		}
		text, err := json.MarshalIndent(o.Object, "", " ")
		if err != nil {
			return "", err
		}
		texts = append(texts, string(text))
	}
	slices.Sort(texts)
	return strings.Join(texts, "\n"), nil
}

// difference shows the lines that only one of two texts has.
func difference(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	var out []string
	for _, line := range a {
		if !slices.Contains(b, line) {
			out = append(out, "- "+line)
		}
	}
	for _, line := range b {
		if !slices.Contains(a, line) {
			out = append(out, "+ "+line)
		}
	}
	return strings.Join(out, "\n")
}
