package ec2

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Cluster is a Kubernetes cluster of EKS; its API server is elsewhere.
type Cluster struct {
	Name string
	// Version is major.minor; default 1.37.
	Version  string
	Endpoint string
	// CABundle is PEM in base64.
	CABundle string
	// ServiceCIDR is default 10.100.0.0/16; ServiceIPv6CIDR makes it an IPv6
	// cluster.
	ServiceCIDR, ServiceIPv6CIDR string
	Role                         string
	Subnets, SecurityGroups      []string
	// Status is default ACTIVE.
	Status string
	Tags   Tags
}

// eks makes a request one to EKS.
type eks struct{}

func (eks) service() string { return "eks" }

// DescribeClusterInput asks for a cluster.
type DescribeClusterInput struct {
	eks
	Name string
}

// ClusterOutput is a cluster.
type ClusterOutput struct {
	Cluster ClusterInfo `json:"cluster"`
}

// ClusterInfo is a cluster as EKS shows it.
type ClusterInfo struct {
	Name      string      `json:"name"`
	ARN       string      `json:"arn"`
	Created   float64     `json:"createdAt"`
	Version   string      `json:"version"`
	Endpoint  string      `json:"endpoint"`
	Role      string      `json:"roleArn"`
	VPC       VPCConfig   `json:"resourcesVpcConfig"`
	Network   ClusterCIDR `json:"kubernetesNetworkConfig"`
	Status    string      `json:"status"`
	Authority struct {
		Data string `json:"data"`
	} `json:"certificateAuthority"`
	Platform string            `json:"platformVersion"`
	Tags     map[string]string `json:"tags"`
}

// VPCConfig is the network in which a cluster reaches its machines.
type VPCConfig struct {
	Subnets        []string `json:"subnetIds"`
	SecurityGroups []string `json:"securityGroupIds"`
	ClusterGroup   string   `json:"clusterSecurityGroupId"`
	VPC            string   `json:"vpcId"`
	Public         bool     `json:"endpointPublicAccess"`
	Private        bool     `json:"endpointPrivateAccess"`
	PublicCIDRs    []string `json:"publicAccessCidrs"`
}

// ClusterCIDR are the addresses of Services.
type ClusterCIDR struct {
	IPv4   string `json:"serviceIpv4Cidr,omitempty"`
	IPv6   string `json:"serviceIpv6Cidr,omitempty"`
	Family string `json:"ipFamily"`
}

func (in *DescribeClusterInput) do(c *Cloud) (*ClusterOutput, error) {
	k := find(c.world.Clusters, func(k *Cluster) bool { return k.Name == in.Name })
	if k == nil {
		return nil, errorf("ResourceNotFoundException", "No cluster found for name: %s.", in.Name)
	}
	return c.clusterOutput(k), nil
}

func (c *Cloud) clusterOutput(k *Cluster) *ClusterOutput {
	info := ClusterInfo{
		Name: k.Name, ARN: fmt.Sprintf("arn:aws:eks:%s:%s:cluster/%s", c.opt.Region, c.opt.Account, k.Name), Created: 1704844800,
		Version: cmp.Or(k.Version, "1.37"), Endpoint: k.Endpoint, Role: k.Role, Status: cmp.Or(k.Status, "ACTIVE"), Platform: "eks.1",
		VPC:     VPCConfig{Subnets: k.Subnets, SecurityGroups: k.SecurityGroups, Public: true, PublicCIDRs: []string{"0.0.0.0/0"}},
		Network: ClusterCIDR{IPv4: cmp.Or(k.ServiceCIDR, "10.100.0.0/16"), Family: "ipv4"}, Tags: k.Tags,
	}
	info.Authority.Data = k.CABundle
	if k.ServiceIPv6CIDR != "" {
		info.Network = ClusterCIDR{IPv6: k.ServiceIPv6CIDR, Family: "ipv6"}
	}
	for _, id := range k.Subnets {
		if s := c.subnet(id); s != nil {
			info.VPC.VPC = s.VPC
		}
	}
	if len(k.SecurityGroups) > 0 {
		info.VPC.ClusterGroup = k.SecurityGroups[0]
	}
	return &ClusterOutput{info}
}

// CreateClusterInput makes a cluster: an entry without machines.
type CreateClusterInput struct {
	eks
	Name    string      `json:"name"`
	Role    string      `json:"roleArn"`
	Version string      `json:"version"`
	VPC     VPCConfig   `json:"resourcesVpcConfig"`
	Network ClusterCIDR `json:"kubernetesNetworkConfig"`
	Tags    Tags        `json:"tags"`
}

func (in *CreateClusterInput) do(c *Cloud) (*ClusterOutput, error) {
	if find(c.world.Clusters, func(k *Cluster) bool { return k.Name == in.Name }) != nil {
		return nil, errorf("ResourceInUseException", "Cluster already exists with name: %s", in.Name)
	}
	k := Cluster{Name: in.Name, Version: in.Version, Role: in.Role, Subnets: in.VPC.Subnets, SecurityGroups: in.VPC.SecurityGroups,
		ServiceCIDR: in.Network.IPv4, Tags: in.Tags}
	if in.Network.Family == "ipv6" {
		k.ServiceIPv6CIDR = "fd00:ec2::/108"
	}
	k.describe(c.opt.Region)
	c.world.Clusters = append(c.world.Clusters, k)
	return c.clusterOutput(&k), nil
}

// describe gives a cluster a made-up API server.
func (k *Cluster) describe(region string) {
	k.Endpoint = fmt.Sprintf("https://%032X.gr7.%s.eks.amazonaws.com", len(k.Name), region)
	k.CABundle = base64.StdEncoding.EncodeToString([]byte("-----BEGIN CERTIFICATE-----\nsimulated\n-----END CERTIFICATE-----\n"))
}

// serveEKS speaks the REST protocol of EKS.
func (c *Cloud) serveEKS(w http.ResponseWriter, r *http.Request) {
	id := c.newRequestID()
	answer := func(status int, v any) {
		b, _ := json.Marshal(v)
		write(w, "application/json", status, id, b)
	}
	var out *ClusterOutput
	var err error
	if r.Method == http.MethodGet {
		out, err = Call(c, &DescribeClusterInput{Name: r.PathValue("name")})
	} else {
		in := &CreateClusterInput{}
		body, _ := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyLimit))
		if err = json.Unmarshal(body, in); err != nil {
			err = errorf("SerializationException", "%v", err)
		} else {
			out, err = Call(c, in)
		}
	}
	if err != nil {
		e := asError(err)
		dropped(e)
		w.Header().Set("X-Amzn-ErrorType", e.Code)
		answer(e.restStatus(), map[string]string{"message": e.Message})
		return
	}
	answer(http.StatusOK, out)
}

// restStatus is the HTTP status of a code where the protocol is REST.
func (e *Error) restStatus() int {
	switch {
	case strings.HasPrefix(e.Code, "ResourceNotFound"):
		return http.StatusNotFound
	case strings.HasPrefix(e.Code, "ResourceInUse"):
		return http.StatusConflict
	case Throttled(e.Code):
		return http.StatusTooManyRequests
	case e.Code == "AccessDeniedException":
		return http.StatusForbidden
	}
	return e.status()
}
