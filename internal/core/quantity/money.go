package quantity

import (
	"fmt"
	"math"
)

// Price is money per time, in micro-dollars (US) per hour.
type Price int64

// PriceUnknown marks an offering whose price nobody could tell. It is greater
// than every real price.
const PriceUnknown Price = math.MaxInt64

// USDPerHour turns dollars per hour into a Price, rounded up.
func USDPerHour(usd float64) Price { return Price(math.Ceil(usd*1e6 - 1e-6)) }

// USD returns the price in dollars per hour, for output only.
func (p Price) USD() float64 { return float64(p) / 1e6 }

// String writes the price for people, e.g. "$0.1728/h".
func (p Price) String() string {
	if p == PriceUnknown {
		return "unknown price"
	}
	return fmt.Sprintf("$%.4f/h", p.USD())
}
