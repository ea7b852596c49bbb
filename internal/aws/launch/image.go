package launch

import (
	"cmp"
	"fmt"
	"maps"
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

	// Requirements of the instance types that boot it, and Deprecated, are
	// filled in by [Usable].
	Requirements []label.Requirement
	Deprecated   bool
}

// NewestFirst sorts images by creation date, newest first, then by id.
func NewestFirst(images []Image) {
	slices.SortFunc(images, func(a, b Image) int {
		return cmp.Or(strings.Compare(b.Created, a.Created), strings.Compare(a.ID, b.ID))
	})
}

// Usable keeps, of the images for the same instance types, the newest; one that
// is deprecated at the given time (ISO 8601) only if there is no other. The
// types are those of its architecture that agree with its tags of well-known
// labels.
func Usable(images []Image, now string) []Image {
	out := slices.Clone(images)
	for i := range out {
		im := &out[i]
		im.Requirements = requirements(im)
		im.Deprecated = im.DeprecatedAt != "" && im.DeprecatedAt <= now
	}
	NewestFirst(out)
	slices.SortStableFunc(out, func(a, b Image) int { return deprecation(a) - deprecation(b) })
	seen := map[string]bool{}
	return slices.DeleteFunc(out, func(im Image) bool {
		key := fmt.Sprint(im.Requirements)
		again := seen[key]
		seen[key] = true
		return again
	})
}

func deprecation(im Image) int {
	if im.Deprecated {
		return 1
	}
	return 0
}

func requirements(im *Image) []label.Requirement {
	out := []label.Requirement{{Key: label.Arch, Op: label.In, Values: []string{kubernetesArch(im.Arch)}}}
	for _, tag := range slices.Sorted(maps.Keys(im.Tags)) {
		key := label.Normalize(tag)
		// Place and market are not decided yet when an image is chosen.
		if key == label.Zone || key == label.CapacityType || key == label.Arch || !label.WellKnown(key) {
			continue
		}
		out = append(out, label.Requirement{Key: key, Op: label.In, Values: []string{im.Tags[tag]}})
	}
	return out
}

// MatchImage returns the first image that the type can boot.
func MatchImage(images []Image, t *world.InstanceType) (string, bool) {
	i := slices.IndexFunc(images, func(im Image) bool { return label.Matches(im.Requirements, t.Labels) })
	if i < 0 {
		return "", false
	}
	return images[i].ID, true
}

// kubernetesArch turns the EC2 name of an architecture into that of Kubernetes.
func kubernetesArch(arch string) string {
	if arch == "x86_64" {
		return "amd64"
	}
	return arch
}
