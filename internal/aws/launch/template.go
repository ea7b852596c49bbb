package launch

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"karpenter/internal/aws/class"
)

// ClusterTag is the tag key, with the cluster name as value, by which our
// launch templates are found.
const ClusterTag = "karpenter.k8s.aws/cluster"

// Cluster is what machines must know to join, and what all of them share.
type Cluster struct {
	Name     string
	Endpoint string
	// CABundle is the certificate of the API server, PEM in base64.
	CABundle string
	// DNS is the address of the cluster's DNS service; the zero value if it is
	// not known. An IPv6 address means an IPv6 cluster.
	DNS netip.Addr
	// Version is the Kubernetes version, major.minor.
	Version string

	DefaultInstanceProfile string
	// Tags go on everything.
	Tags map[string]string
	// ENILimitedPodDensity: the number of pods follows from the type's network
	// interfaces; otherwise it is 110.
	ENILimitedPodDensity bool
}

// Template is an EC2 launch template.
type Template struct {
	Name string       `json:"name"`
	Data TemplateData `json:"data"`
	// Tags go on the template itself, sorted by key.
	Tags []Tag `json:"tags"`
}

// TemplateInfo is a launch template as a list shows it.
type TemplateInfo struct {
	Name    string
	Created time.Time
}

// Profile is an IAM instance profile.
type Profile struct {
	Name string
	// Path begins and ends with a slash.
	Path    string
	Roles   []string
	Tags    []Tag // sorted by key
	Created time.Time
}

// EKSCluster is what EKS knows about a cluster.
type EKSCluster struct {
	Endpoint string
	// CABundle is PEM in base64.
	CABundle string
	// Version is major.minor.
	Version string
	// ServiceCIDR holds the addresses of Services: IPv6 in an IPv6 cluster.
	ServiceCIDR netip.Prefix
}

// TemplateData is what a launch template says about machines.
type TemplateData struct {
	ImageID         string              `json:"imageID"`
	InstanceProfile string              `json:"instanceProfile"`
	Monitoring      bool                `json:"monitoring"`
	SecurityGroups  []string            `json:"securityGroups"`
	UserData        string              `json:"userData"` // base64
	Devices         []class.BlockDevice `json:"devices,omitempty"`
	Metadata        Metadata            `json:"metadata"`
	// PublicIP gives the machine a public address, or none; nil leaves it to
	// the subnet. IPv6 gives it a primary IPv6 address.
	PublicIP *bool `json:"publicIP,omitempty"`
	IPv6     bool  `json:"ipv6,omitempty"`
	// InterfaceTags go on network interfaces, sorted by key.
	InterfaceTags []Tag `json:"interfaceTags"`
}

// Metadata are options of the instance metadata service; empty and zero leave
// EC2's default.
type Metadata struct {
	Endpoint string `json:"endpoint,omitempty"`
	IPv6     string `json:"ipv6,omitempty"`
	HopLimit int64  `json:"hopLimit,omitempty"`
	Tokens   string `json:"tokens,omitempty"`
}

// NewTemplate builds the launch template for one image.
func NewTemplate(c *class.Class, cl *Cluster, imageID string, groups []string, tags map[string]string, userData string) (Template, error) {
	profile := c.InstanceProfile
	if profile == "" {
		profile = cl.DefaultInstanceProfile
	}
	data := TemplateData{
		ImageID:         imageID,
		InstanceProfile: profile,
		Monitoring:      c.DetailedMonitoring,
		SecurityGroups:  slices.Sorted(slices.Values(groups)),
		UserData:        base64.StdEncoding.EncodeToString([]byte(userData)),
		Devices:         c.Devices(),
		Metadata:        metadata(c.Metadata, cl.DNS.Is6()),
		InterfaceTags:   sortedTags(tags),
	}
	own := maps.Clone(tags)
	own[ClusterTag] = cl.Name
	t := Template{Data: data, Tags: sortedTags(own)}
	content, err := json.Marshal(t)
	if err != nil {
		return Template{}, fmt.Errorf("hashing the launch template: %w", err)
	}
	sum := sha256.Sum256(content)
	// A name may have 128 characters; that of a cluster 100.
	t.Name = "Karpenter-" + cl.Name[:min(len(cl.Name), 97)] + "-" + strconv.FormatUint(binary.BigEndian.Uint64(sum[:]), 10)
	return t, nil
}

func metadata(m class.Metadata, ipv6 bool) Metadata {
	if !m.Default {
		return Metadata{Endpoint: m.Endpoint, IPv6: m.IPv6, HopLimit: m.HopLimit, Tokens: m.Tokens}
	}
	out := Metadata{Endpoint: "enabled", IPv6: "disabled", HopLimit: 2, Tokens: "required"}
	if ipv6 {
		out.IPv6 = "enabled"
	}
	return out
}

func sortedTags(tags map[string]string) []Tag {
	out := make([]Tag, 0, len(tags))
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		out = append(out, Tag{k, tags[k]})
	}
	return out
}
