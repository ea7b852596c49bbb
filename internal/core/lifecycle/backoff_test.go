package lifecycle

import (
	"testing"
	"time"
)

func TestBackoffGrowsAndSpreads(t *testing.T) {
	waits := map[time.Duration]bool{}
	for _, who := range []string{"a", "b", "c", "d"} {
		tries := 0
		for failing := time.Duration(0); failing < 5*time.Minute; tries++ {
			wait := Backoff(who, failing)
			if wait < 750*time.Millisecond || wait > 75*time.Second {
				t.Fatalf("after %s: wait %s", failing, wait)
			}
			waits[wait] = true
			failing += wait
		}
		if tries > 14 {
			t.Errorf("%s: %d tries in five minutes", who, tries)
		}
	}
	if len(waits) < 20 {
		t.Errorf("only %d different waits: those who fail together come back together", len(waits))
	}
}
