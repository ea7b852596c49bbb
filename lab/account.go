package lab

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"karpenter/lab/identity"
)

// accountName is the controller's service account, that of the chart.
const accountName = "karpenter"

// tokenSeconds is how long a token holds: longer than any lab lives.
const tokenSeconds = 7 * 24 * 3600

// Rendered returns what the chart renders for the workshop.
func Rendered(root string) ([]byte, error) {
	return os.ReadFile(filepath.Join(root, "charts", "testdata", "workshop.yaml"))
}

// prepareAccount gives the controller the rights that the chart gives it, and
// no others. It returns the kubeconfig with which the controller uses them.
func (l *Lab) prepareAccount(ctx context.Context) (kubeconfig string, err error) {
	rendered, err := Rendered(l.opt.Root)
	if err != nil {
		return "", err
	}
	var wanted bytes.Buffer
	for document := range bytes.SplitSeq(rendered, []byte("\n---")) {
		var o struct{ Kind string }
		if err := yaml.Unmarshal(document, &o); err != nil {
			return "", fmt.Errorf("the rendered chart: %w", err)
		}
		if slices.Contains([]string{"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}, o.Kind) {
			wanted.WriteString("\n---\n")
			wanted.Write(document)
		}
	}
	file := filepath.Join(l.opt.State, "rights.yaml")
	if err := os.WriteFile(file, wanted.Bytes(), 0o644); err != nil {
		return "", err
	}
	if _, err := l.Cluster.Kubectl(ctx, "apply", "--server-side", "-f", file); err != nil {
		return "", err
	}
	token, err := identity.Token(ctx, l.Client, identity.Request{Namespace: systemNamespace, Account: accountName, Seconds: tokenSeconds})
	if err != nil {
		return "", err
	}
	kubeconfig = filepath.Join(l.opt.State, "controller.kubeconfig")
	return kubeconfig, identity.WriteKubeconfig(kubeconfig, l.Config, clientcmdapi.AuthInfo{Token: token})
}
