package family

import (
	"strings"
	"testing"

	"karpenter/internal/core/label"
)

// boots returns the parameter of the image that a type with these labels boots.
func boots(t *testing.T, name, version string, labels map[string]string) string {
	t.Helper()
	f, ok := Named(name)
	if !ok {
		t.Fatalf("no family %s", name)
	}
	for _, i := range f.Images {
		if label.Matches(i.Requirements, labels) {
			return i.Parameter("1.31", version)
		}
	}
	return ""
}

func TestImagesOfTypes(t *testing.T) {
	plain := func(arch string) map[string]string {
		return map[string]string{label.Arch: arch, types: "m5"}
	}
	gpu := func(arch, maker string) map[string]string {
		return map[string]string{label.Arch: arch, types: "g5", gpuCount: "1", gpuMaker: maker}
	}
	inf := map[string]string{label.Arch: "amd64", types: "inf2", chips: "1"}
	a1 := map[string]string{label.Arch: "arm64", types: "a1"}
	const eks, bottle = "/aws/service/eks/optimized-ami/1.31/", "/aws/service/bottlerocket/aws-k8s-1.31"
	for _, tt := range []struct {
		family, version string
		labels          map[string]string
		want            string
	}{
		{"", Latest, plain("amd64"), eks + "amazon-linux-2/recommended/image_id"},
		{AL2, Latest, plain("arm64"), eks + "amazon-linux-2-arm64/recommended/image_id"},
		{AL2, Latest, gpu("amd64", "nvidia"), eks + "amazon-linux-2-gpu/recommended/image_id"},
		{AL2, Latest, gpu("amd64", "amd"), eks + "amazon-linux-2/recommended/image_id"},
		{AL2, Latest, inf, eks + "amazon-linux-2-gpu/recommended/image_id"},
		{AL2, Latest, gpu("arm64", "nvidia"), ""}, // the accelerated image is for x86
		{AL2, "v20240807", plain("arm64"), eks + "amazon-linux-2-arm64/amazon-eks-arm64-node-1.31-v20240807/image_id"},
		{AL2023, Latest, plain("arm64"), eks + "amazon-linux-2023/arm64/standard/recommended/image_id"},
		{AL2023, Latest, a1, ""},
		{AL2023, Latest, gpu("arm64", "nvidia"), eks + "amazon-linux-2023/arm64/nvidia/recommended/image_id"},
		{AL2023, Latest, inf, eks + "amazon-linux-2023/x86_64/neuron/recommended/image_id"},
		{AL2023, "v20240807", plain("amd64"), eks + "amazon-linux-2023/x86_64/standard/amazon-eks-node-al2023-x86_64-standard-1.31-v20240807/image_id"},
		{Bottlerocket, Latest, plain("amd64"), bottle + "/x86_64/latest/image_id"},
		{Bottlerocket, Latest, gpu("arm64", "nvidia"), bottle + "-nvidia/arm64/latest/image_id"},
		{Bottlerocket, "v1.20.5", inf, bottle + "/x86_64/1.20.5/image_id"},
		{Ubuntu, Latest, plain("arm64"), "/aws/service/canonical/ubuntu/eks/20.04/1.31/stable/current/arm64/hvm/ebs-gp2/ami-id"},
		{Ubuntu, "v1", plain("arm64"), ""},
		{Custom, Latest, plain("amd64"), ""},
	} {
		if got := boots(t, tt.family, tt.version, tt.labels); got != tt.want {
			t.Errorf("%s %s %v boots\n%q, want\n%q", tt.family, tt.version, tt.labels, got, tt.want)
		}
	}
}

func TestNamesOfPinnedImages(t *testing.T) {
	f, _ := Aliased("bottlerocket")
	if got := strings.Join(f.Images[1].Patterns("1.31", "v1.20.5"), " "); got != "bottlerocket-aws-k8s-1.31-aarch64-v1.20.5 bottlerocket-aws-k8s-1.31-aarch64-v1.20.5-*" {
		t.Errorf("patterns %s", got)
	}
	if got := f.Images[0].Patterns("1.31", Latest); got != nil {
		t.Errorf("the latest image has patterns %v", got)
	}
	if _, ok := Aliased(""); ok {
		t.Error("no alias is an alias")
	}
}
