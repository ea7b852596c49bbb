package aws

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"karpenter/internal/aws/catalog"
)

// priceTable holds the prices of the region. It starts with the embedded ones.
type priceTable struct {
	mu       sync.Mutex
	prices   catalog.Prices
	version  uint64
	onDemand time.Time // when the live ones were asked for last, with success
	spot     time.Time
}

func newPriceTable(region string) *priceTable {
	return &priceTable{prices: catalog.EmbeddedPrices(region)}
}

func (t *priceTable) get() (catalog.Prices, uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.prices, t.version
}

// refresh asks for the prices that are due. What arrived is merged, also when
// the rest did not; the error names the age of what serves on.
func (t *priceTable) refresh(ctx context.Context, api priceAPI, now time.Time, isolated bool) error {
	if isolated {
		return nil
	}
	return errors.Join(t.refreshOnDemand(ctx, api, now), t.refreshSpot(ctx, api, now))
}

func (t *priceTable) refreshOnDemand(ctx context.Context, api priceAPI, now time.Time) error {
	if since := t.since(&t.onDemand); now.Sub(since) < pricesLast {
		return nil
	}
	live, err := api.OnDemandPrices(ctx)
	if err == nil && len(live) == 0 {
		err = errors.New("the price list is empty")
	}
	t.merge(func() {
		if len(live) > 0 {
			t.prices = t.prices.WithOnDemand(live, now)
			t.version++
		}
		if err == nil {
			t.onDemand = now
		}
	})
	return t.old("on-demand", t.since(&t.onDemand), now, err)
}

func (t *priceTable) refreshSpot(ctx context.Context, api priceAPI, now time.Time) error {
	if since := t.since(&t.spot); now.Sub(since) < pricesLast {
		return nil
	}
	live, err := api.SpotPrices(ctx, now)
	if err == nil && len(live) == 0 {
		err = errors.New("EC2 named no spot price")
	}
	t.merge(func() {
		if err == nil {
			t.prices, t.spot = t.prices.WithSpot(live, now), now
			t.version++
		}
	})
	return t.old("spot", t.since(&t.spot), now, err)
}

func (t *priceTable) since(at *time.Time) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return *at
}

func (t *priceTable) merge(change func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change()
}

// old says what serves on after an error.
func (t *priceTable) old(market string, since, now time.Time, err error) error {
	switch {
	case err == nil:
		return nil
	case since.IsZero():
		return fmt.Errorf("%s prices: the embedded ones are used: %w", market, err)
	default:
		return fmt.Errorf("%s prices: those of %s ago are used: %w", market, now.Sub(since).Round(time.Second), err)
	}
}

// Prices returns what is known about prices now.
func (p *Provider) Prices() catalog.Prices {
	prices, _ := p.prices.get()
	return prices
}
