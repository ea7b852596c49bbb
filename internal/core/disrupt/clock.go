package disrupt

import "time"

// clock is the time of a round. It remembers from when on one of the questions
// that it was asked has another answer: until then the same snapshot gives the
// same decision. Rules ask it, and do not compare with now themselves.
type clock struct{ now, next time.Time }

// before reports whether the time has not come yet.
func (c *clock) before(t time.Time) bool {
	if !c.now.Before(t) {
		return false
	}
	c.changes(t)
	return true
}

// changes notes that an answer may be another one at a time.
func (c *clock) changes(t time.Time) {
	if c.next.IsZero() || t.Before(c.next) {
		c.next = t
	}
}
