package aws

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"karpenter/internal/aws/class"
	"karpenter/internal/aws/launch"
	"karpenter/internal/cloud"
	"karpenter/internal/core/world"
)

// filterValues is how many values EC2 takes in one filter, mostTerminated how
// many machines are ended in one call.
const (
	filterValues   = 200
	mostTerminated = 500
)

// Find returns the machine of a launch token, or *cloud.NotFoundError. A
// machine that was launched a moment ago may not be found yet.
func (p *Provider) Find(ctx context.Context, token string) (cloud.Instance, error) {
	found, ok, err := p.byToken.get(ctx, token)
	if err == nil && !ok {
		err = &cloud.NotFoundError{ID: "token " + token}
	}
	return found, err
}

// findTokens finds the machines of tokens. A token has one machine; should there
// be more, one that lives is taken.
func (p *Provider) findTokens(ctx context.Context, tokens []string) (map[string]cloud.Instance, error) {
	found, err := p.owned(ctx, class.Filter{Name: "tag:" + launch.TokenTag, Values: tokens})
	out := map[string]cloud.Instance{}
	for _, i := range found {
		if have, ok := out[i.Token]; !ok || have.State.Gone() && !i.State.Gone() {
			out[i.Token] = i
		}
	}
	return out, err
}

// Describe returns the machine with this id, or *cloud.NotFoundError. It does
// not ask whose it is: a machine of ours whose tags were taken away is not gone.
// Labels hold what follows from the instance; capacity is not known here.
func (p *Provider) Describe(ctx context.Context, id string) (cloud.Instance, error) {
	found, ok, err := p.byID.get(ctx, id)
	if err == nil && !ok {
		err = &cloud.NotFoundError{ID: id}
	}
	return found, err
}

// describeIDs asks with a filter, in which ids that EC2 does not know do no
// harm to the others.
func (p *Provider) describeIDs(ctx context.Context, ids []string) (map[string]cloud.Instance, error) {
	found, err := p.api.Instances(ctx, nil, []class.Filter{{Name: "instance-id", Values: ids}})
	out := make(map[string]cloud.Instance, len(found))
	for _, i := range found {
		out[i.ID] = p.complete(i)
	}
	return out, err
}

// List returns all our machines that are not terminated, by id. A machine that
// was launched a moment ago may be missing.
func (p *Provider) List(ctx context.Context) ([]cloud.Instance, error) {
	return p.owned(ctx, class.Filter{Name: "instance-state-name", Values: []string{
		string(cloud.Pending), string(cloud.Running), string(cloud.Stopping), string(cloud.Stopped), string(cloud.ShuttingDown),
	}})
}

// owned returns the instances that carry our cluster tag, by id.
func (p *Provider) owned(ctx context.Context, match ...class.Filter) ([]cloud.Instance, error) {
	s, err := p.settings(ctx)
	if err != nil {
		return nil, err
	}
	match = append(match, class.Filter{Name: "tag:" + launch.OwnedTag(s.Cluster.Name), Values: []string{"owned"}})
	found, err := p.api.Instances(ctx, nil, match)
	if err != nil {
		return nil, err
	}
	for i := range found {
		found[i] = p.complete(found[i])
	}
	slices.SortFunc(found, func(a, b cloud.Instance) int { return cmp.Compare(a.ID, b.ID) })
	return found, nil
}

// Terminate ends one of our machines. It is no error if it is gone, or if EC2
// does not know it. An instance without our cluster tag is refused.
func (p *Provider) Terminate(ctx context.Context, id string) error {
	found, known, err := p.ours(ctx, id, "terminated")
	if err != nil || known && found.State.Gone() {
		return err
	}
	if !known {
		// Terminated long ago, or too new to be shown: then it may still be
		// terminated. Alone, as an id that EC2 does not know fails the call.
		return ignoreMissing(p.api.Terminate(ctx, id))
	}
	refusal, _, err := p.ending.get(ctx, id)
	return cmp.Or(err, refusal)
}

// terminateAll ends machines. Where one of them makes EC2 refuse all, each is
// ended by itself.
func (p *Provider) terminateAll(ctx context.Context, ids []string) (map[string]error, error) {
	err := p.api.Terminate(ctx, ids...)
	var slow *cloud.ThrottledError
	if err == nil || errors.As(err, &slow) {
		return nil, err
	}
	refused := map[string]error{}
	for _, id := range ids {
		refused[id] = ignoreMissing(p.api.Terminate(ctx, id))
	}
	return refused, nil
}

// Tag sets tags of one of our machines and takes others off. It is
// *cloud.NotFoundError if EC2 does not know the machine. The tags by which we
// find our own stay as they are.
func (p *Provider) Tag(ctx context.Context, id string, set map[string]string, remove []string) error {
	_, known, err := p.ours(ctx, id, "tagged")
	if err == nil && !known {
		err = &cloud.NotFoundError{ID: id}
	}
	if err != nil {
		return err
	}
	s, err := p.settings(ctx)
	if err != nil {
		return err
	}
	for _, key := range append(slices.Sorted(maps.Keys(set)), remove...) {
		if key == launch.OwnedTag(s.Cluster.Name) || key == launch.TokenTag {
			return fmt.Errorf("tag %s of instance %s is not changed: by it we find our own", key, id)
		}
	}
	if len(set) > 0 {
		err = p.api.Tag(ctx, id, launch.Tags(set))
	}
	if err == nil && len(remove) > 0 {
		err = p.api.Untag(ctx, id, remove)
	}
	return err
}

// Name tags a machine of an EC2NodeClass with the names of its node, its NodeClaim
// and the cluster. A Name that the class gives wins. It is *cloud.ThrottledError,
// with the time to wait, if somebody else was tagged within the last second.
func (p *Provider) Name(ctx context.Context, ref world.ClassRef, id, node, claim string) error {
	s, c, err := p.look(ctx, ref)
	if err != nil {
		return err
	}
	if wait := p.naming.turn(id); wait > 0 {
		return &cloud.ThrottledError{Err: errors.New("one machine is tagged a second"), After: wait}
	}
	set := map[string]string{"Name": node, launch.ClaimTag: claim, launch.ClusterNameTag: s.Cluster.Name}
	if own, given := c.Tags["Name"]; given {
		set["Name"] = own
	} else if own, given := s.Cluster.Tags["Name"]; given {
		set["Name"] = own
	}
	return p.Tag(ctx, id, set, nil)
}

// ours looks a machine up before something is done to it, and refuses one
// without our cluster tag. EC2 may not know it.
func (p *Provider) ours(ctx context.Context, id, done string) (i cloud.Instance, known bool, err error) {
	s, err := p.settings(ctx)
	if err != nil {
		return i, false, err
	}
	i, known, err = p.byID.get(ctx, id)
	if tag := launch.OwnedTag(s.Cluster.Name); err == nil && known && !i.State.Gone() && i.Tags[tag] != "owned" {
		err = fmt.Errorf("instance %s is not %s: it does not carry the tag %s=owned, so it may be somebody else's; put the tag back, or do it by hand", id, done, tag)
	}
	return i, known, err
}

// ignoreMissing drops the error that there is no such machine.
func ignoreMissing(err error) error {
	var missing *cloud.NotFoundError
	if errors.As(err, &missing) {
		return nil
	}
	return err
}
