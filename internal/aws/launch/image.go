package launch

import (
	"cmp"
	"slices"
	"strings"

	"karpenter/internal/core/label"
	"karpenter/internal/core/world"
)

// Image is a machine image, as EC2 tells it.
type Image struct {
	ID   string
	Name string
	// Arch is the EC2 name: x86_64 or arm64.
	Arch string
	// Created is the creation date in ISO 8601, which sorts as text.
	Created string
	// DeprecatedAt is when it is, or was, no longer to be used, in ISO 8601;
	// empty if never.
	DeprecatedAt string
	Tags         map[string]string
}

// AL2Parameter returns the name of the SSM parameter that holds the id of the
// Amazon Linux 2 image for the Kubernetes version (major.minor) and the type.
// There is none for accelerators on arm64: the accelerated image is for x86.
func AL2Parameter(version string, t *world.InstanceType) (string, bool) {
	arm := t.Labels[label.Arch] == "arm64"
	accelerated := t.Capacity.Get(nvidiaGPU) > 0 || t.Capacity.Get(neuron) > 0
	suffix := ""
	switch {
	case arm && accelerated:
		return "", false
	case accelerated:
		suffix = "-gpu"
	case arm:
		suffix = "-arm64"
	}
	return AL2ParameterPrefix(version) + suffix + "/recommended/image_id", true
}

// AL2ParameterPrefix is the part of AL2Parameter before the suffix.
func AL2ParameterPrefix(version string) string {
	return "/aws/service/eks/optimized-ami/" + version + "/amazon-linux-2"
}

// NewestFirst sorts images by creation date, newest first, then by id.
func NewestFirst(images []Image) {
	slices.SortFunc(images, func(a, b Image) int {
		return cmp.Or(strings.Compare(b.Created, a.Created), strings.Compare(a.ID, b.ID))
	})
}

// MatchImage returns the first image that the type can boot: of its
// architecture, and with no tag of a well-known label that contradicts it.
func MatchImage(images []Image, t *world.InstanceType) (string, bool) {
	i := slices.IndexFunc(images, func(im Image) bool { return boots(im, t) })
	if i < 0 {
		return "", false
	}
	return images[i].ID, true
}

func boots(im Image, t *world.InstanceType) bool {
	if KubernetesArch(im.Arch) != t.Labels[label.Arch] {
		return false
	}
	for key, value := range im.Tags {
		key = label.Normalize(key)
		if key == label.Zone || key == label.CapacityType || !label.WellKnown(key) {
			continue
		}
		if have, ok := t.Labels[key]; !ok || have != value {
			return false
		}
	}
	return true
}

// KubernetesArch turns the EC2 name of an architecture into that of Kubernetes.
func KubernetesArch(arch string) string {
	if arch == "x86_64" {
		return "amd64"
	}
	return arch
}
