// Package identity gets tokens of service accounts and writes kubeconfigs that
// use them.
package identity

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Request says which token is wanted.
type Request struct {
	Namespace, Account string
	// Seconds is how long it holds.
	Seconds int64
	// Audience is for whom it is; empty = the API server.
	Audience string
	// Bound is the object with which it ends; nil = with none.
	Bound *authenticationv1.BoundObjectReference
}

// Token asks for a token.
func Token(ctx context.Context, client kubernetes.Interface, r Request) (string, error) {
	ask := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &r.Seconds, BoundObjectRef: r.Bound}}
	if r.Audience != "" {
		ask.Spec.Audiences = []string{r.Audience}
	}
	answer, err := client.CoreV1().ServiceAccounts(r.Namespace).CreateToken(ctx, r.Account, ask, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("asking for a token of service account %s/%s: %w", r.Namespace, r.Account, err)
	}
	return answer.Status.Token, nil
}

// WriteKubeconfig writes how to reach a server as a user.
func WriteKubeconfig(file string, server *rest.Config, user clientcmdapi.AuthInfo) error {
	const name = "lab"
	return clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{name: {
			Server: server.Host, CertificateAuthority: server.CAFile, CertificateAuthorityData: server.CAData,
		}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: &user},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	}, file)
}
