package front

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestFront: each request gets to the side that can answer it, whole.
func TestFront(t *testing.T) {
	side := func(name string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_ = r.ParseForm()
			fmt.Fprint(w, name, " ", r.URL.Path, " ", r.PostForm.Get("Action"))
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	f, err := New(side("sim"), side("moto"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ service, path, action, want string }{
		{"ec2", "/", "CreateFleet", "sim / CreateFleet"},
		{"cloudformation", "/", "DescribeStacks", "moto / DescribeStacks"},
		{"iam", "/", "GetRole", "moto / GetRole"},
		{"eks", "/clusters/c", "", "moto /clusters/c "},
		{"sqs", "/", "", "sim / "},
		{"", "/", "AssumeRoleWithWebIdentity", "moto / AssumeRoleWithWebIdentity"},
		{"", "/_sim/instances", "", "sim /_sim/instances "},
	} {
		r := httptest.NewRequest(http.MethodPost, c.path, strings.NewReader(url.Values{"Action": {c.action}}.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if c.service != "" {
			r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=KEY/20260101/us-west-2/"+c.service+"/aws4_request, SignedHeaders=host, Signature=x")
		}
		w := httptest.NewRecorder()
		f.ServeHTTP(w, r)
		if got := w.Body.String(); got != c.want {
			t.Errorf("%s %s%s: %q, want %q", c.service, c.path, c.action, got, c.want)
		}
	}
}

// TestTemplateForMoto: the policy becomes an object, and nothing else changes.
func TestTemplateForMoto(t *testing.T) {
	text, err := os.ReadFile("../../aws/cloudformation.yaml")
	if err != nil {
		t.Fatal(err)
	}
	out := forMoto(url.Values{"TemplateBody": {string(text)}, "Parameters.member.1.ParameterKey": {"ClusterName"}, "Parameters.member.1.ParameterValue": {"blue"}})
	var template struct {
		Resources map[string]struct {
			Properties struct {
				PolicyDocument struct{ Statement []map[string]any }
			}
		}
	}
	// Tags of CloudFormation are strange to YAML.
	plain := strings.NewReplacer("!Sub ", "", "!Ref ", "", "!GetAtt ", "").Replace(out)
	if err := yaml.Unmarshal([]byte(plain), &template); err != nil {
		t.Fatal(err)
	}
	if n := len(template.Resources["KarpenterControllerPolicy"].Properties.PolicyDocument.Statement); n < 5 {
		t.Errorf("%d statements", n)
	}
	if len(template.Resources) != 9 {
		t.Errorf("%d resources, want 9", len(template.Resources))
	}
	_, policy, _ := strings.Cut(out, "      PolicyDocument:\n")
	policy, _, _ = strings.Cut(policy, "KarpenterInterruptionQueue:")
	if strings.Contains(policy, "${") {
		t.Error("variables are left in the policy")
	}
}
