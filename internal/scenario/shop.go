package scenario

import (
	"fmt"
	"strings"

	awsv1 "karpenter/api/aws/v1"
	awsv1alpha1 "karpenter/api/aws/v1alpha1"
	"karpenter/internal/admission"
	"karpenter/internal/aws/catalog"
	"karpenter/internal/aws/class"
	"karpenter/internal/core/world"
	"karpenter/internal/kube/convert"
	"karpenter/internal/kube/dialect"
)

// Shop answers from the embedded facts what pools of a cluster can buy, for the
// classes that it has. A class whose status names no subnets is taken to have
// some in every zone.
func Shop(region string, objects []dialect.Object) (func(world.Pool) world.Catalog, error) {
	if len(catalog.RegionZones(region)) == 0 {
		return nil, fmt.Errorf("region %q is not in the embedded catalogue; it knows %s", region, strings.Join(catalog.Regions(), ", "))
	}
	known := classes{read: map[string]class.Class{}, broken: map[string]string{}}
	zones := map[string][]string{}
	for _, o := range objects {
		id := kindOf(o) + " " + o.GetName()
		c, err := classOf(o)
		if err != nil {
			known.broken[id] = admission.Reason(err)
			continue
		}
		known.read[id], zones[id] = c, foundZones(o)
	}
	facts := shops{rows: catalog.Embedded(), offered: catalog.ZoneOfferings(region), prices: catalog.EmbeddedPrices(region)}
	var s world.Snapshot
	s.Catalogs = map[world.CatalogKey]world.Catalog{}
	return func(p world.Pool) world.Catalog {
		facts.place = Place{Region: region, Zones: zones[p.Class.Kind+" "+p.Class.Name]}
		if err := known.stock(&s, &p, &facts); err != nil {
			return world.Catalog{Region: region, Trouble: err.Error()}
		}
		return s.Catalogs[p.Catalog]
	}, nil
}

// foundZones are the zones of the subnets in the status of a class.
func foundZones(o dialect.Object) (out []string) {
	switch o := o.(type) {
	case *awsv1alpha1.AWSNodeTemplate:
		for _, n := range o.Status.Subnets {
			out = append(out, n.Zone)
		}
	case *awsv1.EC2NodeClass:
		for _, n := range o.Status.Subnets {
			out = append(out, n.Zone)
		}
	}
	return out
}

// Records are the NodeClaims among the manifests.
func (m *Manifests) Records() (out []world.Record) {
	for _, c := range m.Claims {
		out = append(out, convert.Record(c))
	}
	return out
}
