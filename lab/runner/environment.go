package runner

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	podresource "k8s.io/kubernetes/pkg/api/v1/resource"
	"k8s.io/kubernetes/pkg/fieldpath"
	"k8s.io/kubernetes/third_party/forked/golang/expansion"

	"karpenter/lab/identity"
)

// roleAnnotation names the IAM role of a service account on EKS.
const roleAnnotation = "eks.amazonaws.com/role-arn"

const tokenSeconds = 24 * 3600

// variables resolves the environment of a container as a kubelet does: envFrom
// first, then env, in which earlier variables may be used.
func (r *Runner) variables(ctx context.Context, pod *corev1.Pod, c *corev1.Container) (map[string]string, error) {
	env := map[string]string{}
	for _, from := range c.EnvFrom {
		if from.ConfigMapRef == nil {
			return nil, fmt.Errorf("container %s: envFrom: only ConfigMaps are known here", c.Name)
		}
		data, err := r.configMap(ctx, pod.Namespace, from.ConfigMapRef.Name, from.ConfigMapRef.Optional)
		if err != nil {
			return nil, err
		}
		for k, v := range data {
			env[from.Prefix+k] = v
		}
	}
	mapping := expansion.MappingFuncFor(env)
	for _, e := range c.Env {
		switch from := e.ValueFrom; {
		case from == nil:
			env[e.Name] = expansion.Expand(e.Value, mapping)
		case from.FieldRef != nil:
			v, err := field(pod, from.FieldRef.FieldPath)
			if err != nil {
				return nil, fmt.Errorf("container %s: variable %s: %w", c.Name, e.Name, err)
			}
			env[e.Name] = v
		case from.ResourceFieldRef != nil:
			v, err := podresource.ExtractContainerResourceValue(from.ResourceFieldRef, c)
			if err != nil {
				return nil, fmt.Errorf("container %s: variable %s: %w", c.Name, e.Name, err)
			}
			env[e.Name] = v
		case from.ConfigMapKeyRef != nil:
			data, err := r.configMap(ctx, pod.Namespace, from.ConfigMapKeyRef.Name, from.ConfigMapKeyRef.Optional)
			if err != nil {
				return nil, err
			}
			if v, ok := data[from.ConfigMapKeyRef.Key]; ok {
				env[e.Name] = v
			}
		default:
			return nil, fmt.Errorf("container %s: variable %s: its source is not known here", c.Name, e.Name)
		}
	}
	return env, nil
}

// field reads a field of the pod, also those that only its node knows.
func field(pod *corev1.Pod, path string) (string, error) {
	switch path {
	case "spec.nodeName":
		return pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return pod.Spec.ServiceAccountName, nil
	case "status.hostIP":
		return loopback, nil
	}
	return fieldpath.ExtractFieldPathAsString(pod, path)
}

func (r *Runner) configMap(ctx context.Context, namespace, name string, optional *bool) (map[string]string, error) {
	m, err := r.client.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) && optional != nil && *optional {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("ConfigMap %s/%s: %w", namespace, name, err)
	}
	return m.Data, nil
}

const loopback = "127.0.0.1"

// Variables by which the program is told its ports and address.
const (
	addressVariable = "BIND_ADDRESS"
	metricsVariable = "METRICS_PORT"
	healthVariable  = "HEALTH_PROBE_PORT"
)

// environment is what the process of a pod gets, and where each port of the
// container really is.
func (r *Runner) environment(ctx context.Context, pod *corev1.Pod, folder string) (env []string, ports map[string]string, err error) {
	c := container(pod)
	vars, err := r.variables(ctx, pod, c)
	if err != nil {
		return nil, nil, err
	}
	env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + folder, "HOSTNAME=" + pod.Name}
	cloud, err := r.cloud(ctx, pod, folder)
	if err != nil {
		return nil, nil, err
	}
	env = append(env, cloud...)
	for k, v := range vars {
		env = append(env, k+"="+v)
	}
	ports = map[string]string{}
	for _, variable := range []string{metricsVariable, healthVariable} {
		free, err := freePort()
		if err != nil {
			return nil, nil, err
		}
		ports[vars[variable]] = free
		env = append(env, variable+"="+free)
	}
	for _, p := range c.Ports {
		if free, ok := ports[strconv.Itoa(int(p.ContainerPort))]; ok && p.Name != "" {
			ports[p.Name] = free
		}
	}
	kubeconfig, err := r.account(ctx, pod, folder)
	if err != nil {
		return nil, nil, err
	}
	return append(env, addressVariable+"="+loopback, "KUBECONFIG="+kubeconfig), ports, nil
}

// account writes the kubeconfig with the pod's own token.
func (r *Runner) account(ctx context.Context, pod *corev1.Pod, folder string) (string, error) {
	token, err := r.token(ctx, pod, "")
	if err != nil {
		return "", err
	}
	file := filepath.Join(folder, "kubeconfig")
	return file, identity.WriteKubeconfig(file, r.opt.Config, clientcmdapi.AuthInfo{Token: token})
}

func (r *Runner) token(ctx context.Context, pod *corev1.Pod, audience string) (string, error) {
	return identity.Token(ctx, r.client, identity.Request{
		Namespace: pod.Namespace, Account: pod.Spec.ServiceAccountName, Seconds: tokenSeconds, Audience: audience,
		Bound: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID},
	})
}

// cloud are the variables for AWS: those of the node, or, if the service account
// has a role, those that EKS gives its pods.
func (r *Runner) cloud(ctx context.Context, pod *corev1.Pod, folder string) ([]string, error) {
	account, err := r.client.CoreV1().ServiceAccounts(pod.Namespace).Get(ctx, pod.Spec.ServiceAccountName, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("service account %s/%s: %w", pod.Namespace, pod.Spec.ServiceAccountName, err)
	}
	role := account.Annotations[roleAnnotation]
	if role == "" || !r.opt.Federated {
		return r.opt.Cloud, nil
	}
	token, err := r.token(ctx, pod, "sts.amazonaws.com")
	if err != nil {
		return nil, err
	}
	file := filepath.Join(folder, "aws-token")
	if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
		return nil, err
	}
	var env []string
	for _, kv := range r.opt.Cloud {
		if !strings.HasPrefix(kv, "AWS_ACCESS_KEY_ID=") && !strings.HasPrefix(kv, "AWS_SECRET_ACCESS_KEY=") {
			env = append(env, kv)
		}
	}
	for _, kv := range r.opt.Cloud {
		// The SDK asks for credentials before it has read where everything is.
		if url, ok := strings.CutPrefix(kv, "AWS_ENDPOINT_URL="); ok {
			env = append(env, "AWS_ENDPOINT_URL_STS="+url)
		}
	}
	return append(env, "AWS_ROLE_ARN="+role, "AWS_WEB_IDENTITY_TOKEN_FILE="+file), nil
}

func freePort() (string, error) {
	l, err := net.Listen("tcp", loopback+":0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port), nil
}
