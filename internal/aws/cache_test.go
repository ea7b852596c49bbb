package aws

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"karpenter/internal/aws/catalog"
	"karpenter/internal/core/quantity"
)

func TestCacheKeepsAnswersAndServesOldOnesAfterErrors(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	c := newCache[string](time.Minute, func() time.Time { return now })
	calls := 0
	answer, failure := "first", error(nil)
	get := func() (cached[string], error) {
		return c.get(t.Context(), "key", func(context.Context) (string, error) { calls++; return answer, failure })
	}
	expect := func(step, want string, wantCalls int, version uint64) {
		t.Helper()
		got, err := get()
		if err != nil || got.value != want || calls != wantCalls || got.version != version {
			t.Errorf("%s: %q version %d after %d calls, %v; want %q version %d after %d", step, got.value, got.version, calls, err, want, version, wantCalls)
		}
	}
	failure = errors.New("down")
	if _, err := get(); err == nil {
		t.Error("there never was an answer, so the error must be told")
	}
	failure = nil
	expect("first answer", "first", 2, 1)
	expect("within its time", "first", 2, 1)
	now = now.Add(time.Minute)
	expect("the same again", "first", 3, 1)
	now = now.Add(time.Minute)
	failure = errors.New("down")
	expect("old answer after an error", "first", 4, 1)
	expect("not asked again at once", "first", 4, 1)
	now = now.Add(10 * time.Second)
	failure, answer = nil, "second"
	expect("asked again a little later", "second", 5, 2)
}

func TestCacheSharesACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache[string](time.Minute, time.Now)
		calls := 0
		load := func(context.Context) (string, error) { calls++; time.Sleep(time.Second); return "x", nil }
		impatient, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()

		var wait sync.WaitGroup
		wait.Go(func() {
			if _, err := c.get(impatient, "key", load); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("who gave up got %v", err)
			}
		})
		synctest.Wait()
		for range 5 {
			wait.Go(func() {
				if got, err := c.get(t.Context(), "key", load); err != nil || got.value != "x" {
					t.Errorf("got %q, %v", got.value, err)
				}
			})
		}
		wait.Wait()
		if calls != 1 {
			t.Errorf("%d calls for six who asked at the same time", calls)
		}
	})
}

// pricesStub answers as told.
type pricesStub struct {
	onDemand map[string]quantity.Price
	err      error
}

func (p pricesStub) OnDemandPrices(context.Context) (map[string]quantity.Price, error) {
	return p.onDemand, p.err
}
func (p pricesStub) SpotPrices(context.Context, time.Time) (map[catalog.TypeZone]quantity.Price, error) {
	return nil, p.err
}

func TestPartOfThePriceListIsBetterThanNone(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	table := newPriceTable("us-west-2")
	stub := pricesStub{onDemand: map[string]quantity.Price{"m5.large": 1}, err: errors.New("broke off")}
	if err := table.refresh(t.Context(), stub, now, false); err == nil {
		t.Error("the error must be told")
	}
	prices, _ := table.get()
	if q, _ := prices.Quote("m5.large", "us-west-2a", "on-demand"); q.Price != 1 {
		t.Errorf("m5.large costs %s, want what arrived", q.Price)
	}
	if q, ok := prices.Quote("m5.xlarge", "us-west-2a", "on-demand"); !ok || q.Source == catalog.Live {
		t.Errorf("m5.xlarge: %v, %v; want the embedded price", q, ok)
	}
	if _, ok := prices.Quote("m5.large", "us-west-2a", "spot"); !ok {
		t.Error("without spot prices the embedded ones must serve on")
	}
	_, before := table.get()
	if err := table.refresh(t.Context(), stub, now, true); err != nil {
		t.Errorf("an isolated VPC cannot reach the price list: %v", err)
	}
	if _, after := table.get(); after != before {
		t.Error("an isolated VPC asked for prices")
	}
}
