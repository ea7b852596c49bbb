package play

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/api/v1alpha5"
	"karpenter/internal/kube/dialect"
	"karpenter/internal/kube/migrate"
)

// convert moves a Provisioner to v1 in the documented way: a NodePool and an
// EC2NodeClass that mean the same are made, and the NodePool takes the machines
// over.
func (p *player) convert(id string) error {
	kube := p.rig.Kube.Client("world")
	o, err := p.find(id)
	if err != nil {
		return err
	}
	from := []migrate.Object{o}
	if old, ok := o.(*v1alpha5.Provisioner); ok && old.Spec.ProviderRef != nil {
		template := dialect.Provisioner.Class()
		err := kube.Get(ctx, client.ObjectKey{Name: old.Spec.ProviderRef.Name}, template)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err == nil {
			from = append(from, template)
		}
	}
	to, err := migrate.ToV1(from, migrate.Options{InstanceProfile: "nodes", Adopt: true})
	for _, n := range to.Objects {
		made := kube.Create(ctx, n)
		if apierrors.IsAlreadyExists(made) { // the class that every case has
			there := dialect.NodePool.Class()
			if made = kube.Get(ctx, client.ObjectKeyFromObject(n), there); made == nil {
				n.SetResourceVersion(there.GetResourceVersion())
				n.SetFinalizers(there.GetFinalizers())
				made = kube.Update(ctx, n)
			}
		}
		err = errors.Join(err, made)
	}
	return err
}
