package launch

import (
	"maps"

	"karpenter/internal/aws/class"
	"karpenter/internal/cloud"
)

// Tags by which we find our own.
const (
	ClaimTag = "karpenter.sh/nodeclaim"
	TokenTag = "karpenter.sh/launch-token"
)

// mostTags is how many EC2 takes on one thing.
const mostTags = 50

// OwnedTag is the tag key, with the value "owned", of everything that belongs
// to the cluster.
func OwnedTag(cluster string) string { return "kubernetes.io/cluster/" + cluster }

// BaseTags are the tags that do not depend on the machine; the later wins:
// pool, settings, class. Those by which we find our own are not among them.
func BaseTags(c *class.Class, cl *Cluster, req *cloud.LaunchRequest) map[string]string {
	tags := map[string]string{
		req.PoolLabel: req.Pool,
		"Name":        req.PoolLabel + "/" + req.Pool,
	}
	if req.Pool == "" { // a stand-alone claim has no pool
		tags = map[string]string{"Name": req.Claim}
	}
	maps.Copy(tags, cl.Tags)
	maps.Copy(tags, c.Tags)
	for _, ours := range []string{OwnedTag(cl.Name), ClaimTag, TokenTag} {
		delete(tags, ours)
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
	return sortedTags(tags)
}
