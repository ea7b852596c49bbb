package archtest

import (
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func TestTreeKeepsTheRules(t *testing.T) {
	breaches, err := check(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range breaches {
		t.Error(b)
	}
}

// TestBreachesAreFound: the check can fail, once for each kind of breach.
func TestBreachesAreFound(t *testing.T) {
	tests := []struct{ name, file, src, want string }{
		{"upward import", "internal/core/world/x.go", `package world; import _ "karpenter/internal/core/schedule"`, "the hub model"},
		{"sibling", "internal/core/lifecycle/x.go", `package lifecycle; import _ "karpenter/internal/core/schedule"`, "does not depend on how it was chosen"},
		{"SDK outside awsapi", "internal/aws/launch/x.go", `package launch; import _ "github.com/aws/aws-sdk-go-v2/service/ec2"`, "only internal/aws/awsapi"},
		{"SDK in a test", "internal/aws/x_test.go", `package aws; import _ "github.com/aws/aws-sdk-go-v2/service/ec2"`, "only internal/aws/awsapi"},
		{"controller to controller", "internal/controller/gc/x.go", `package gc; import _ "karpenter/internal/controller/claim"`, "another controller"},
		{"controller to AWS", "internal/controller/gc/x.go", `package gc; import _ "karpenter/internal/aws"`, "knows neither AWS"},
		{"client in convert", "internal/kube/convert/x.go", `package convert; import _ "k8s.io/client-go/kubernetes"`, "no clients"},
		{"no rule", "internal/helpers/x.go", `package helpers; import _ "karpenter/internal/core/world"`, "no rule for internal/helpers"},
		{"goroutine", "internal/core/schedule/x.go", `package schedule; func f() { go f() }`, "starts a goroutine"},
		{"clock", "internal/core/schedule/x.go", `package schedule; import "time"; var _ = time.Now`, "time is an argument"},
		{"log", "internal/core/schedule/x.go", `package schedule; import _ "log"`, "only controllers log"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			breaches, err := check(fstest.MapFS{tt.file: {Data: []byte(tt.src)}})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(breaches, func(b string) bool { return strings.Contains(b, tt.want) && strings.Contains(b, tt.file) }) {
				t.Errorf("want a breach of %q, got %q", tt.want, breaches)
			}
		})
	}
}

// TestNestedModulesAndFixturesAreLeftOut: other modules have rules of their own.
func TestNestedModulesAndFixturesAreLeftOut(t *testing.T) {
	breach := []byte(`package x; import _ "github.com/aws/aws-sdk-go-v2/aws"`)
	breaches, err := check(fstest.MapFS{
		"lab/go.mod":        {Data: []byte("module karpenter/lab")},
		"lab/boot/x.go":     {Data: breach},
		"api/testdata/x.go": {Data: breach},
		".cache/x.go":       {Data: breach},
	})
	if err != nil || len(breaches) != 0 {
		t.Errorf("want no breach, got %q, %v", breaches, err)
	}
}
