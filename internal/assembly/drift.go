package assembly

import (
	"context"

	"karpenter/internal/aws"
	"karpenter/internal/core/world"
)

// drifter asks the provider how machines differ from what would be bought now.
type drifter struct{ to *aws.Provider }

func (d drifter) Drifted(ctx context.Context, class world.ClassRef, instance, image string, labels map[string]string) (reason, detail string, err error) {
	return d.to.Drifted(ctx, class, aws.Running{ID: instance, ImageID: image, Labels: labels})
}

func (d drifter) Types(ctx context.Context, pool world.Pool) []world.InstanceType {
	c, _ := d.to.Catalog(ctx, pool.Class, pool.Kubelet) // without a catalogue there are none
	return c.Types
}
