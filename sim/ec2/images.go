package ec2

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"time"
)

// imageKinds are the images that exist for every Kubernetes version: the SSM
// parameter that names them and their own name. %v stands for the version,
// %d for the day of the build.
var imageKinds = []struct{ parameter, name, arch, alias, device string }{
	{"/aws/service/eks/optimized-ami/%v/amazon-linux-2/recommended/image_id", "amazon-eks-node-%v-v%d", "x86_64", "amazon", "/dev/xvda"},
	{"/aws/service/eks/optimized-ami/%v/amazon-linux-2-arm64/recommended/image_id", "amazon-eks-arm64-node-%v-v%d", "arm64", "amazon", "/dev/xvda"},
	{"/aws/service/eks/optimized-ami/%v/amazon-linux-2-gpu/recommended/image_id", "amazon-eks-gpu-node-%v-v%d", "x86_64", "amazon", "/dev/xvda"},
	{"/aws/service/eks/optimized-ami/%v/amazon-linux-2023/x86_64/standard/recommended/image_id", "amazon-eks-node-al2023-x86_64-standard-%v-v%d", "x86_64", "amazon", "/dev/xvda"},
	{"/aws/service/eks/optimized-ami/%v/amazon-linux-2023/arm64/standard/recommended/image_id", "amazon-eks-node-al2023-arm64-standard-%v-v%d", "arm64", "amazon", "/dev/xvda"},
	{"/aws/service/eks/optimized-ami/%v/amazon-linux-2023/x86_64/nvidia/recommended/image_id", "amazon-eks-node-al2023-x86_64-nvidia-%v-v%d", "x86_64", "amazon", "/dev/xvda"},
	{"/aws/service/eks/optimized-ami/%v/amazon-linux-2023/arm64/nvidia/recommended/image_id", "amazon-eks-node-al2023-arm64-nvidia-%v-v%d", "arm64", "amazon", "/dev/xvda"},
	{"/aws/service/eks/optimized-ami/%v/amazon-linux-2023/x86_64/neuron/recommended/image_id", "amazon-eks-node-al2023-x86_64-neuron-%v-v%d", "x86_64", "amazon", "/dev/xvda"},
	{"/aws/service/bottlerocket/aws-k8s-%v/x86_64/latest/image_id", "bottlerocket-aws-k8s-%v-x86_64-v%d", "x86_64", "amazon", "/dev/xvda"},
	{"/aws/service/bottlerocket/aws-k8s-%v/arm64/latest/image_id", "bottlerocket-aws-k8s-%v-aarch64-v%d", "arm64", "amazon", "/dev/xvda"},
	{"/aws/service/bottlerocket/aws-k8s-%v-nvidia/x86_64/latest/image_id", "bottlerocket-aws-k8s-%v-nvidia-x86_64-v%d", "x86_64", "amazon", "/dev/xvda"},
	{"/aws/service/bottlerocket/aws-k8s-%v-nvidia/arm64/latest/image_id", "bottlerocket-aws-k8s-%v-nvidia-aarch64-v%d", "arm64", "amazon", "/dev/xvda"},
	{"/aws/service/canonical/ubuntu/eks/20.04/%v/stable/current/amd64/hvm/ebs-gp2/ami-id", "ubuntu-eks/k8s_%v/images/hvm-ssd/ubuntu-focal-20.04-amd64-server-%d", "x86_64", "", "/dev/sda1"},
	{"/aws/service/canonical/ubuntu/eks/20.04/%v/stable/current/arm64/hvm/ebs-gp2/ami-id", "ubuntu-eks/k8s_%v/images/hvm-ssd/ubuntu-focal-20.04-arm64-server-%d", "arm64", "", "/dev/sda1"},
}

func (w *World) addImages() {
	w.Parameters = map[string]string{}
	for minor := 21; minor <= 39; minor++ {
		version := fmt.Sprintf("1.%d", minor)
		built := time.Date(2024, 1, 10, 0, 0, 0, 0, time.UTC).AddDate(0, 0, 45*(minor-21))
		for _, k := range imageKinds {
			h := fnv.New64a()
			fmt.Fprintf(h, k.parameter, version)
			id := fmt.Sprintf("ami-0%016x", h.Sum64())
			var day int
			fmt.Sscan(built.Format("20060102"), &day)
			owner := "602401143452"
			if k.alias == "" {
				owner = "099720109477"
			}
			w.Parameters[fmt.Sprintf(k.parameter, version)] = id
			w.Images = append(w.Images, Image{
				ID: id, Name: fmt.Sprintf(k.name, version, day), Description: "EKS worker node for Kubernetes " + version,
				Arch: k.arch, State: "available", Created: built.Format("2006-01-02T15:04:05.000Z"),
				Owner: owner, OwnerAlias: k.alias, RootDevice: k.device, RootGiB: 20,
			})
		}
	}
}

// DescribeImagesInput asks for machine images.
type DescribeImagesInput struct {
	Common
	Page
	IDs               []string `query:"ImageId"`
	Owners            []string `query:"Owner"`
	IncludeDeprecated bool
	IncludeDisabled   bool
	Filters           []Filter `query:"Filter"`
}

// ImageInfo is a machine image.
type ImageInfo struct {
	ID             string           `xml:"imageId"`
	Location       string           `xml:"imageLocation"`
	State          string           `xml:"imageState"`
	Owner          string           `xml:"imageOwnerId"`
	OwnerAlias     string           `xml:"imageOwnerAlias,omitempty"`
	Created        string           `xml:"creationDate"`
	Deprecation    string           `xml:"deprecationTime,omitempty"`
	Public         bool             `xml:"isPublic"`
	Arch           string           `xml:"architecture"`
	Type           string           `xml:"imageType"`
	Name           string           `xml:"name"`
	Description    string           `xml:"description"`
	RootDeviceType string           `xml:"rootDeviceType"`
	RootDevice     string           `xml:"rootDeviceName"`
	Devices        Set[BlockDevice] `xml:"blockDeviceMapping"`
	Virtualization string           `xml:"virtualizationType"`
	Hypervisor     string           `xml:"hypervisor"`
	ENA            bool             `xml:"enaSupport"`
	Platform       string           `xml:"platformDetails"`
	Tags           Tags             `xml:"tagSet"`
}

// DescribeImagesOutput lists machine images.
type DescribeImagesOutput struct {
	Response
	Images    Set[ImageInfo] `xml:"imagesSet"`
	NextToken string         `xml:"nextToken,omitempty"`
}

func (in *DescribeImagesInput) do(c *Cloud) (*DescribeImagesOutput, error) {
	owner := func(i *Image) string {
		if i.Owner == "" {
			return c.opt.Account
		}
		return i.Owner
	}
	wanted := slices.DeleteFunc(pointers(c.world.Images), func(i *Image) bool {
		if in.hides(i, c.now()) {
			return true
		}
		return len(in.Owners) > 0 && !slices.ContainsFunc(in.Owners, func(o string) bool {
			return o == owner(i) || o == i.OwnerAlias && o != "" || o == "self" && owner(i) == c.opt.Account
		})
	})
	part, next, err := listing[*Image]{
		items: wanted, key: (*Image).id, filters: in.Filters, bounds: paged,
		named: []named[*Image]{{in.IDs, (*Image).id, "InvalidAMIID.NotFound", "image id"}},
		attributes: attributes[*Image]{
			"image-id":            one((*Image).id),
			"name":                one(func(i *Image) string { return i.Name }),
			"description":         one(func(i *Image) string { return i.Description }),
			"architecture":        one(func(i *Image) string { return i.Arch }),
			"state":               one(func(i *Image) string { return i.State }),
			"owner-id":            one(owner),
			"owner-alias":         one(func(i *Image) string { return i.OwnerAlias }),
			"creation-date":       one(func(i *Image) string { return i.Created }),
			"root-device-name":    one(func(i *Image) string { return i.RootDevice }),
			"root-device-type":    one(func(*Image) string { return "ebs" }),
			"virtualization-type": one(func(*Image) string { return "hvm" }),
			"image-type":          one(func(*Image) string { return "machine" }),
			"is-public":           one(func(i *Image) string { return strconv.FormatBool(owner(i) != c.opt.Account) }),
		},
		tags: func(i *Image) Tags { return i.Tags },
	}.page(in.Page)
	return &DescribeImagesOutput{NextToken: next, Images: each(part, func(i *Image) ImageInfo {
		return ImageInfo{
			ID: i.ID, Location: owner(i) + "/" + i.Name, State: i.State, Owner: owner(i), OwnerAlias: i.OwnerAlias,
			Created: i.Created, Deprecation: i.Deprecated, Public: owner(i) != c.opt.Account, Arch: i.Arch, Type: "machine", Name: i.Name,
			Description: i.Description, RootDeviceType: "ebs", RootDevice: i.RootDevice, Devices: i.devices(),
			Virtualization: "hvm", Hypervisor: "xen", ENA: true, Platform: "Linux/UNIX", Tags: i.Tags,
		}
	})}, err
}

// hides reports whether an image is left out for being deprecated: it is, unless
// it is named, asked for, or one's own.
func (in *DescribeImagesInput) hides(i *Image, now time.Time) bool {
	if i.Deprecated == "" || in.IncludeDeprecated || i.Owner == "" || slices.Contains(in.IDs, i.ID) {
		return false
	}
	at, err := time.Parse(time.RFC3339, i.Deprecated)
	return err == nil && !at.After(now)
}

// devices of an image: its root volume.
func (i *Image) devices() []BlockDevice {
	if i.RootDevice == "" {
		return nil
	}
	size, yes := int64(i.RootGiB), true
	return []BlockDevice{{Device: i.RootDevice, EBS: &EBS{SizeGiB: &size, Type: "gp2", DeleteOnTermination: &yes}}}
}
