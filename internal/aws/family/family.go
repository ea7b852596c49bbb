// Package family holds the facts about the kinds of operating system that
// machines boot: which images AWS publishes for them, how their user data is
// written, which volumes they have and what their kubelet understands.
//
// It may import core/label. It is one table and the look-ups into it.
package family

import (
	"slices"
	"strings"

	"karpenter/internal/core/label"
)

// Names of families.
const (
	AL2          = "AL2"
	AL2023       = "AL2023"
	Bottlerocket = "Bottlerocket"
	Ubuntu       = "Ubuntu"
	Custom       = "Custom"
)

// Format says how the user data of a family is written.
type Format string

// The formats.
const (
	// Bootstrap is a MIME document whose last part is a script that calls the
	// bootstrap program of the image.
	Bootstrap Format = "bootstrap"
	// NodeConfig is a MIME document whose last part configures nodeadm.
	NodeConfig Format = "nodeconfig"
	// Settings are those of Bottlerocket, in TOML.
	Settings Format = "settings"
	// Verbatim is what the user wrote, and nothing else.
	Verbatim Format = "verbatim"
)

// Family is one kind of operating system.
type Family struct {
	Name   string
	Format Format
	// Alias is its name in alias@version; empty if there is none.
	Alias string
	// Images are those that AWS publishes. A type boots the first whose
	// requirements it meets.
	Images []Image

	// Volumes of a machine whose class names none, all gp3 and encrypted; none
	// leaves it to the image.
	Volumes []Volume
	// Storage is the volume that holds pods' files; empty: the last one of the
	// class.
	Storage string

	// PodsPerCore and EvictionSoft tell whether the family's kubelet is given
	// these settings.
	PodsPerCore  bool
	EvictionSoft bool
	// ENIMemory: the memory that its bootstrap program reserves for kubelet
	// counts the pods that the network interfaces allow, even where fewer or
	// more pods may run.
	ENIMemory bool
	// ContainerRuntime: the bootstrap program takes --container-runtime (below
	// Kubernetes 1.27).
	ContainerRuntime bool
}

// Volume is a volume of every machine of a family.
type Volume struct {
	Device string
	GiB    int64
}

var families = []Family{
	{
		Name: AL2, Alias: "al2", Format: Bootstrap, Images: al2Images,
		Volumes: []Volume{{"/dev/xvda", 20}}, Storage: "/dev/xvda",
		PodsPerCore: true, EvictionSoft: true, ENIMemory: true, ContainerRuntime: true,
	},
	{
		Name: AL2023, Alias: "al2023", Format: NodeConfig, Images: al2023Images,
		Volumes: []Volume{{"/dev/xvda", 20}}, Storage: "/dev/xvda",
		PodsPerCore: true, EvictionSoft: true,
	},
	{
		Name: Bottlerocket, Alias: "bottlerocket", Format: Settings, Images: bottlerocketImages,
		Volumes: []Volume{{"/dev/xvda", 4}, {"/dev/xvdb", 20}}, Storage: "/dev/xvdb",
	},
	{
		Name: Ubuntu, Format: Bootstrap, Images: ubuntuImages,
		Volumes: []Volume{{"/dev/sda1", 20}}, Storage: "/dev/sda1",
		PodsPerCore: true, EvictionSoft: true, ENIMemory: true,
	},
	{Name: Custom, Format: Verbatim, PodsPerCore: true, EvictionSoft: true, ENIMemory: true},
}

// Names lists the families.
func Names() []string {
	out := make([]string, 0, len(families))
	for _, f := range families {
		out = append(out, f.Name)
	}
	return out
}

// Named returns the family of that name; the empty name means AL2.
func Named(name string) (Family, bool) {
	if name == "" {
		name = AL2
	}
	return find(func(f Family) bool { return f.Name == name })
}

// Aliased returns the family of an alias, such as al2023.
func Aliased(alias string) (Family, bool) {
	return find(func(f Family) bool { return f.Alias == alias && alias != "" })
}

// Aliases lists the names of families in aliases.
func Aliases() []string {
	var out []string
	for _, f := range families {
		if f.Alias != "" {
			out = append(out, f.Alias)
		}
	}
	return out
}

func find(is func(Family) bool) (Family, bool) {
	if i := slices.IndexFunc(families, is); i >= 0 {
		return families[i], true
	}
	return Family{}, false
}

// Latest is the version that follows what AWS recommends.
const Latest = "latest"

// Image is an image that AWS publishes anew from time to time, for each version
// of Kubernetes.
type Image struct {
	// Requirements of the instance types that boot it, the architecture among
	// them.
	Requirements []label.Requirement

	// Names of SSM parameters and of the image itself; {k8s} stands for the
	// version of Kubernetes, {version} for that of the image.
	latest, pinned string
	name           string
}

// Parameter is the SSM parameter that holds the id of the image in a version:
// empty if this image is only published as the latest.
func (i *Image) Parameter(kubernetes, version string) string {
	if version == Latest {
		return fill(i.latest, kubernetes, version)
	}
	return fill(i.pinned, kubernetes, version)
}

// Patterns are what the name of the image looks like; * stands for anything.
func (i *Image) Patterns(kubernetes, version string) []string {
	if version == Latest || i.name == "" {
		return nil
	}
	name := fill(i.name, kubernetes, version)
	return []string{name, name + "-*"} // some end in the commit they were built from
}

func fill(pattern, kubernetes, version string) string {
	return strings.NewReplacer("{k8s}", kubernetes, "{version}", strings.TrimPrefix(version, "v")).Replace(pattern)
}

// Keys of the labels by which images are told apart.
const (
	gpuCount = "karpenter.k8s.aws/instance-gpu-count"
	gpuMaker = "karpenter.k8s.aws/instance-gpu-manufacturer"
	chips    = "karpenter.k8s.aws/instance-accelerator-count"
	types    = "karpenter.k8s.aws/instance-family"
)

// Variants of images. Machines with GPUs of other makers than NVIDIA boot the
// plain image: the drivers of the other one would be in their way.
var (
	nvidia = []label.Requirement{
		{Key: gpuCount, Op: label.Exists},
		{Key: gpuMaker, Op: label.In, Values: []string{"nvidia"}},
	}
	noNVIDIA = label.Requirement{Key: gpuMaker, Op: label.NotIn, Values: []string{"nvidia"}}
	neuron   = label.Requirement{Key: chips, Op: label.Exists}
	noNeuron = label.Requirement{Key: chips, Op: label.DoesNotExist}
	// noA1: the first generation of Graviton cannot run Amazon Linux 2023.
	noA1 = label.Requirement{Key: types, Op: label.NotIn, Values: []string{"a1"}}
)

// eks is an image of Amazon Linux: its parameters are below a path, and its
// pinned ones have the name of the image in them.
func eks(path, name, arch string, more ...label.Requirement) Image {
	const root = "/aws/service/eks/optimized-ami/{k8s}/"
	name += "-{k8s}-v{version}"
	return Image{
		latest: root + path + "/recommended/image_id", pinned: root + path + "/" + name + "/image_id", name: name,
		Requirements: append([]label.Requirement{{Key: label.Arch, Op: label.In, Values: []string{arch}}}, more...),
	}
}

var al2Images = []Image{
	eks("amazon-linux-2-gpu", "amazon-eks-gpu-node", "amd64", nvidia...),
	eks("amazon-linux-2-gpu", "amazon-eks-gpu-node", "amd64", neuron),
	eks("amazon-linux-2", "amazon-eks-node", "amd64", noNVIDIA, noNeuron),
	eks("amazon-linux-2-arm64", "amazon-eks-arm64-node", "arm64", noNVIDIA, noNeuron),
}

var al2023Images = []Image{
	eks("amazon-linux-2023/x86_64/standard", "amazon-eks-node-al2023-x86_64-standard", "amd64", noNVIDIA, noNeuron),
	eks("amazon-linux-2023/arm64/standard", "amazon-eks-node-al2023-arm64-standard", "arm64", noNVIDIA, noNeuron, noA1),
	eks("amazon-linux-2023/x86_64/nvidia", "amazon-eks-node-al2023-x86_64-nvidia", "amd64", nvidia...),
	eks("amazon-linux-2023/arm64/nvidia", "amazon-eks-node-al2023-arm64-nvidia", "arm64", nvidia...),
	eks("amazon-linux-2023/x86_64/neuron", "amazon-eks-node-al2023-x86_64-neuron", "amd64", neuron),
}

func bottlerocket(variant, ec2Arch, nameArch, arch string, more ...label.Requirement) Image {
	root := "/aws/service/bottlerocket/aws-k8s-{k8s}" + variant + "/" + ec2Arch
	return Image{
		latest: root + "/latest/image_id", pinned: root + "/{version}/image_id",
		name:         "bottlerocket-aws-k8s-{k8s}" + variant + "-" + nameArch + "-v{version}",
		Requirements: append([]label.Requirement{{Key: label.Arch, Op: label.In, Values: []string{arch}}}, more...),
	}
}

// The drivers of Neuron are in the plain image of Bottlerocket.
var bottlerocketImages = []Image{
	bottlerocket("", "x86_64", "x86_64", "amd64", noNVIDIA),
	bottlerocket("", "arm64", "aarch64", "arm64", noNVIDIA),
	bottlerocket("-nvidia", "x86_64", "x86_64", "amd64", nvidia...),
	bottlerocket("-nvidia", "arm64", "aarch64", "arm64", nvidia...),
}

func ubuntu(arch string) Image {
	return Image{
		latest:       "/aws/service/canonical/ubuntu/eks/20.04/{k8s}/stable/current/" + arch + "/hvm/ebs-gp2/ami-id",
		Requirements: []label.Requirement{{Key: label.Arch, Op: label.In, Values: []string{arch}}},
	}
}

var ubuntuImages = []Image{ubuntu("amd64"), ubuntu("arm64")}
