package lifecycle

import (
	"hash/fnv"
	"time"
)

// Bounds of [Backoff].
const (
	backoffMin = time.Second
	backoffMax = time.Minute
)

// Backoff returns how long to wait before something that has been failing for
// the given time is tried again: about as long as it has been failing, which
// doubles the interval each time, between one second and one minute. It is
// spread by up to a quarter either way, by the name of who is waiting, so that
// those who failed together do not come back together.
func Backoff(who string, failing time.Duration) time.Duration {
	wait := min(max(failing, backoffMin), backoffMax)
	h := fnv.New32a()
	h.Write([]byte(who))
	h.Write([]byte(failing.String()))
	return wait*3/4 + wait*time.Duration(h.Sum32()%1000)/2000
}
