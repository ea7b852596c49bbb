package awsapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"karpenter/internal/aws/launch"
)

// Cluster returns what EKS knows about the cluster, or
// *launch.UnknownClusterError.
func (a *API) Cluster(ctx context.Context, name string) (launch.EKSCluster, error) {
	out, err := a.eks.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: aws.String(name)})
	var unknown *types.ResourceNotFoundException
	if errors.As(err, &unknown) {
		return launch.EKSCluster{}, &launch.UnknownClusterError{Name: name}
	}
	if err != nil {
		return launch.EKSCluster{}, kind("asking EKS about cluster "+name, err)
	}
	c := launch.EKSCluster{Endpoint: aws.ToString(out.Cluster.Endpoint), Version: aws.ToString(out.Cluster.Version)}
	if ca := out.Cluster.CertificateAuthority; ca != nil {
		c.CABundle = aws.ToString(ca.Data)
	}
	if n := out.Cluster.KubernetesNetworkConfig; n != nil {
		cidr := cmp.Or(aws.ToString(n.ServiceIpv6Cidr), aws.ToString(n.ServiceIpv4Cidr))
		if c.ServiceCIDR, err = netip.ParsePrefix(cidr); err != nil && cidr != "" {
			return launch.EKSCluster{}, fmt.Errorf("asking EKS about cluster %s: the addresses of its Services: %w", name, err)
		}
	}
	return c, nil
}
