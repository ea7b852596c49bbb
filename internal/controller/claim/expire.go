package claim

import (
	"context"
	"fmt"

	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/internal/core/disrupt"
	"karpenter/internal/core/world"
	"karpenter/internal/kube/convert"
)

// stuck looks, of a machine that has expired, for pods that can never leave it.
func (c *Controller) stuck(ctx context.Context, p *pass) error {
	at := p.in.Record.Expires
	if at == nil || p.in.Now.Before(*at) || len(p.in.Nodes) == 0 {
		return nil
	}
	var list policyv1.PodDisruptionBudgetList
	if err := c.Ledger.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing PodDisruptionBudgets: %w", err)
	}
	budgets := make([]world.PodBudget, 0, len(list.Items))
	for i := range list.Items {
		budgets = append(budgets, convert.Budget(&list.Items[i]))
	}
	if why := disrupt.Immovable(p.in.Nodes[0].Pods, budgets); why != nil {
		p.in.Stuck = why.String()
	}
	return nil
}
