package aws

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"karpenter/internal/aws/catalog"
	"karpenter/internal/aws/class"
	"karpenter/internal/aws/launch"
	"karpenter/internal/cloud"
	"karpenter/internal/core/label"
	"karpenter/internal/core/world"
)

// everything is the key of caches that hold one answer.
const everything = ""

// Catalog returns what a pool with this class and these kubelet settings can
// buy, without the offerings that were refused lately. With an error, the
// catalogue holds it as its Trouble, so that either may be looked at. As long
// as nothing changes the same value is returned again; it must not be changed.
func (p *Provider) Catalog(ctx context.Context, ref world.ClassRef, kubelet world.Kubelet) (world.Catalog, error) {
	s, c, err := p.look(ctx, ref)
	if err == nil {
		var out world.Catalog
		if out, err = p.catalog(ctx, s, &c, kubelet); err == nil {
			return out, nil
		}
	}
	return world.Catalog{Region: p.Region(), Trouble: err.Error()}, err
}

func (p *Provider) catalog(ctx context.Context, s Settings, c *class.Class, kubelet world.Kubelet) (world.Catalog, error) {
	rows, err := p.types.get(ctx, everything, p.loadTypes)
	if err != nil {
		return world.Catalog{}, fmt.Errorf("the instance types are not known yet: %w", err)
	}
	offered, err := p.offered.get(ctx, everything, p.loadOffered)
	if err != nil {
		return world.Catalog{}, fmt.Errorf("the zones of instance types are not known yet: %w", err)
	}
	subnets, err := p.openSubnets(ctx, c)
	if err != nil {
		return world.Catalog{}, err
	}
	images, err := p.images(ctx, s, c)
	if err != nil {
		return world.Catalog{}, err
	}
	key, err := shelfKey(c.Ref, kubelet)
	if err != nil {
		return world.Catalog{}, err
	}
	prices, priceVersion := p.prices.get()
	refused := p.unavailable.All()
	seen, seenVersion := p.observed.of(key, images)
	in := input(s, c, kubelet)
	in.Observed = func(name string) (catalog.Seen, bool) { o, ok := seen[name]; return o, ok }
	in.Region, in.Offered, in.Zones, in.Prices = p.Region(), offered.value, zonesOf(subnets), prices
	_, noSpot := refused[allSpot]
	in.Unavailable = func(k cloud.OfferingKey) bool {
		_, ok := refused[k]
		return ok || noSpot && k.CapacityType == label.Spot
	}

	state := fmt.Sprint(rows.version, offered.version, priceVersion, seenVersion, in.Zones, in.Family.Name, in.BlockDevices, in.RAID0, in.Rules,
		in.VMMemoryOverheadPercent, in.PodENI, in.ENILimitedPodDensity, in.ReservedENIs, images.list, images.failed, cloud.SortedKeys(refused))
	return p.shelf.take(key, state, func() (world.Catalog, error) {
		types, err := catalog.Build(rows.value, in)
		if err != nil {
			return world.Catalog{}, fmt.Errorf("the kubelet settings cannot be used: %w", err)
		}
		maskUnbootable(images, c, types)
		return world.Catalog{Region: in.Region, Types: types}, nil
	})
}

// input fills in what settings, class and kubelet say.
func input(s Settings, c *class.Class, kubelet world.Kubelet) catalog.Input {
	in := c.Shape()
	in.Kubelet = c.KubeletOf(kubelet)
	in.VMMemoryOverheadPercent = s.VMMemoryOverheadPercent
	in.PodENI = s.PodENI
	in.ENILimitedPodDensity = s.Cluster.ENILimitedPodDensity
	in.ReservedENIs = s.ReservedENIs
	return in
}

func (p *Provider) loadTypes(ctx context.Context) ([]catalog.Row, error) {
	rows, err := p.api.InstanceTypes(ctx)
	if err == nil && len(rows) == 0 {
		err = errors.New("EC2 named no instance type at all")
	}
	return rows, err
}

func (p *Provider) loadOffered(ctx context.Context) (map[string][]string, error) {
	return p.api.Offerings(ctx)
}

// Refresh asks anew for types and zones, and for prices when they are due.
// What was known before serves on where the answer is an error.
func (p *Provider) Refresh(ctx context.Context) error {
	_, typesErr := p.types.reload(ctx, everything, p.loadTypes)
	_, zonesErr := p.offered.reload(ctx, everything, p.loadOffered)
	s, err := p.settings(ctx)
	if err != nil {
		return errors.Join(typesErr, zonesErr, err)
	}
	return errors.Join(typesErr, zonesErr, p.prices.refresh(ctx, p.api, p.now(), s.IsolatedVPC))
}

func zonesOf(subnets []launch.Subnet) []string {
	zones := make([]string, 0, len(subnets))
	for _, s := range subnets {
		zones = append(zones, s.Zone)
	}
	slices.Sort(zones)
	return slices.Compact(zones)
}

// shelf keeps the catalogue that was built last for each class and kubelet.
type shelf struct {
	mu       sync.Mutex
	catalogs map[string]shelved
}

type shelved struct {
	state string
	cat   world.Catalog
}

// shelfRoom is how many catalogues are kept; each is a few megabytes.
const shelfRoom = 32

// take returns the catalogue on the shelf if its state is still the same.
func (s *shelf) take(key, state string, build func() (world.Catalog, error)) (world.Catalog, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if have, ok := s.catalogs[key]; ok && have.state == state {
		return have.cat, nil
	}
	cat, err := build()
	if err != nil {
		return world.Catalog{}, err
	}
	if len(s.catalogs) >= shelfRoom {
		clear(s.catalogs)
	}
	s.catalogs[key] = shelved{state, cat}
	return cat, nil
}
