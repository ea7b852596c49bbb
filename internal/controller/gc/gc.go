// Package gc removes what belongs to nobody: instances that carry our tags but
// have no NodeClaim, NodeClaims whose instance is gone, and Nodes of ours that
// have neither.
//
// It may import api, core, cloud and kube. What is garbage is decided by
// lifecycle.Garbage.
package gc

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "karpenter/api/v1"
	"karpenter/internal/cloud"
	"karpenter/internal/core/label"
	"karpenter/internal/core/lifecycle"
	"karpenter/internal/core/world"
	"karpenter/internal/kube/convert"
	"karpenter/internal/kube/dialect"
	"karpenter/internal/kube/event"
	"karpenter/internal/kube/ledger"
)

// Interval between two passes.
const Interval = 2 * time.Minute

// Cloud lists and ends machines.
type Cloud interface {
	// List returns the instances that carry this cluster's tag.
	List(ctx context.Context) ([]cloud.Instance, error)
	Terminate(ctx context.Context, id string) error
}

// Controller collects garbage.
type Controller struct {
	Ledger *ledger.Ledger
	// Live reads from the API server, not from a cache: before an instance is
	// terminated the records must be newer than the list of instances.
	Live   client.Reader
	Cloud  Cloud
	Events event.Recorder
	// Disrupted counts a machine that is given up; nil: nobody counts.
	Disrupted func(reason, pool string)
	// Sweep deletes what was made in the cloud besides machines and is not used
	// any more; nil: nothing is.
	Sweep func(context.Context) error
	Now   func() time.Time
}

// Pass looks once and removes what it finds. What fails does not keep the rest.
func (c *Controller) Pass(ctx context.Context) error {
	err := c.collect(ctx)
	if c.Sweep != nil {
		err = errors.Join(err, c.Sweep(ctx))
	}
	return err
}

// collect removes instances, NodeClaims and Nodes.
func (c *Controller) collect(ctx context.Context) error {
	instances, err := c.instances(ctx)
	if err != nil {
		return fmt.Errorf("listing instances: %w", err)
	}
	var nodes corev1.NodeList // of the cache, as the claims: they are not changed
	if err := c.Ledger.Client.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing Nodes: %w", err)
	}
	diff, claims, err := c.compare(ctx, c.Ledger.Client, instances, nodes.Items)
	if err == nil && len(diff.Terminate) > 0 {
		diff, claims, err = c.compare(ctx, c.Live, instances, nodes.Items)
	}
	if err != nil {
		return err
	}
	logger := log.FromContext(ctx)
	var errs []error
	for _, i := range diff.Terminate {
		logger.Info("terminating an instance that no NodeClaim has", "instance", i.ID, "nodeclaim", i.Claim)
		var gone *cloud.NotFoundError
		if err := c.Cloud.Terminate(ctx, i.ID); err != nil && !errors.As(err, &gone) {
			errs = append(errs, fmt.Errorf("terminating instance %s: %w", i.ID, err))
		}
	}
	for _, name := range diff.Delete {
		claim := claims[name]
		logger.Info("deleting a NodeClaim whose machine is gone", "nodeclaim", name, "providerID", claim.Status.ProviderID, "reason", lifecycle.GarbageCollected)
		c.Events.Event(claim, corev1.EventTypeWarning, "GarbageCollected", fmt.Sprintf("instance %s or its node is gone", claim.Status.ProviderID))
		if err := c.Ledger.Delete(ctx, claim); err != nil {
			errs = append(errs, fmt.Errorf("deleting NodeClaim %q: %w", name, err))
		} else if c.Disrupted != nil {
			_, pool := dialect.Owner(claim.Labels)
			c.Disrupted(lifecycle.GarbageCollected, pool)
		}
	}
	for i := range nodes.Items {
		for _, name := range diff.DeleteNodes {
			if n := &nodes.Items[i]; n.Name == name {
				logger.Info("deleting a Node that has neither NodeClaim nor instance", "node", name, "providerID", n.Spec.ProviderID)
				errs = append(errs, c.Ledger.DeleteNode(ctx, n))
			}
		}
	}
	return errors.Join(errs...)
}

// compare reads the records and asks what is garbage.
func (c *Controller) compare(ctx context.Context, from client.Reader, instances []lifecycle.Instance, nodes []corev1.Node) (lifecycle.Diff, map[string]*v1.NodeClaim, error) {
	var list v1.NodeClaimList
	if err := from.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return lifecycle.Diff{}, nil, fmt.Errorf("listing NodeClaims: %w", err)
	}
	claims := map[string]*v1.NodeClaim{}
	records := make([]world.Record, 0, len(list.Items))
	for i := range list.Items {
		claims[list.Items[i].Name] = &list.Items[i]
		records = append(records, convert.Record(&list.Items[i]))
	}
	facts := make([]lifecycle.Node, 0, len(nodes))
	for i := range nodes {
		facts = append(facts, ledger.Facts(&nodes[i], nil, nil))
	}
	return lifecycle.Garbage(instances, records, facts, c.Now()), claims, nil
}

// instances lists those that we made. The cluster's tag alone does not tell:
// people put it on their own machines too.
func (c *Controller) instances(ctx context.Context) ([]lifecycle.Instance, error) {
	list, err := c.Cloud.List(ctx)
	if err != nil {
		return nil, err
	}
	var out []lifecycle.Instance
	for _, i := range list {
		if i.Token == "" && i.Claim == "" && i.Tags[label.Provisioner] == "" && i.Tags[label.NodePool] == "" {
			continue
		}
		one := lifecycle.Instance{ID: i.ID, ProviderID: i.ProviderID, Claim: i.Claim, Token: i.Token, Launched: i.Launched, State: lifecycle.Alive}
		switch i.State {
		case cloud.ShuttingDown:
			one.State = lifecycle.Ending
		case cloud.Terminated:
			one.State = lifecycle.Ended
		}
		out = append(out, one)
	}
	return out, nil
}

// Run makes a pass every [Interval] until the context ends.
func (c *Controller) Run(ctx context.Context) error {
	tick := time.NewTicker(Interval)
	defer tick.Stop()
	for {
		if err := c.Pass(ctx); err != nil {
			log.FromContext(ctx).Error(err, "garbage collection", "next", Interval.String())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
