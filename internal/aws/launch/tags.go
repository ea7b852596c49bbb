package launch

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"strconv"

	"karpenter/internal/aws/class"
	"karpenter/internal/cloud"
)

// Tags by which we find our own.
const (
	ClaimTag = "karpenter.sh/nodeclaim"
	TokenTag = "karpenter.sh/launch-token"
	// TogetherTag is the token of a fleet for several launches; its machines
	// carry it instead of the two above.
	TogetherTag = "karpenter.sh/launch-batch"
	// ClassTag and ClusterNameTag are on what an EC2NodeClass makes.
	ClassTag       = "karpenter.k8s.aws/ec2nodeclass"
	ClusterNameTag = "eks:eks-cluster-name"
)

// mostTags is how many EC2 takes on one thing.
const mostTags = 50

// OwnedTag is the tag key, with the value "owned", of everything that belongs
// to the cluster.
func OwnedTag(cluster string) string { return "kubernetes.io/cluster/" + cluster }

// BaseTags are the tags that do not depend on the machine; the later wins:
// pool, settings, class. Those by which we find our own are not among them. A
// machine of an EC2NodeClass gets its Name when it has joined.
func BaseTags(c *class.Class, cl *Cluster, req *cloud.LaunchRequest) map[string]string {
	tags := map[string]string{"Name": req.Claim} // a stand-alone claim has no pool
	if req.Pool != "" {
		tags = map[string]string{req.PoolLabel: req.Pool, "Name": req.PoolLabel + "/" + req.Pool}
	}
	if c.Newer() {
		delete(tags, "Name")
	}
	maps.Copy(tags, cl.Tags)
	maps.Copy(tags, c.Tags)
	for _, ours := range []string{OwnedTag(cl.Name), ClaimTag, TokenTag} {
		delete(tags, ours)
	}
	if c.Newer() {
		tags[ClassTag], tags[ClusterNameTag] = c.Ref.Name, cl.Name
	}
	return tags
}

// MachineTags are the tags of one machine. Ownership, claim and token cannot
// be overridden by settings or class.
func MachineTags(base map[string]string, cl *Cluster, req *cloud.LaunchRequest) []Tag {
	tags := maps.Clone(base)
	tags[OwnedTag(cl.Name)] = "owned"
	tags[ClaimTag] = req.Claim
	tags[TokenTag] = req.Token
	return Tags(tags)
}

// ProfilePath is the path of all instance profiles that we make for a cluster.
func ProfilePath(region, cluster string) string { return "/karpenter/" + region + "/" + cluster + "/" }

// ClassProfilePath is the path of those of one class.
func ClassProfilePath(region, cluster string, c *class.Class) string {
	return ProfilePath(region, cluster) + cmp.Or(c.UID, c.Ref.Name) + "/"
}

// ManagedProfile is the instance profile for the role of a class. Its name
// follows from where it is, the class and the role.
func ManagedProfile(region string, cl *Cluster, c *class.Class) Profile {
	path := ClassProfilePath(region, cl.Name, c)
	sum := sha256.Sum256([]byte(path + c.Ref.Name + "/" + c.Role))
	return Profile{
		// A name may have 128 characters; that of a cluster 100.
		Name: cl.Name + "_" + strconv.FormatUint(binary.BigEndian.Uint64(sum[:]), 10), Path: path, Roles: []string{c.Role},
		Tags: Tags(map[string]string{
			OwnedTag(cl.Name): "owned", ClusterNameTag: cl.Name, ClassTag: c.Ref.Name, "topology.kubernetes.io/region": region,
		}),
	}
}
