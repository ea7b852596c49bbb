package cases

import (
	"strings"
	"testing"
)

func TestNamesOfCallsAtWhichAProcessDies(t *testing.T) {
	for name, ok := range map[string]bool{"create": true, "evict": true, "create NodeClaim": true, "describeInstances": true, "createFleet": true, "": false, "creat": false, "CreateFleet!": false, "destroy": false} {
		s := Step{Do: "provision", Crash: &Crash{Call: name, When: "before"}}
		if err := s.check(); (err == nil || !strings.Contains(err.Error(), "crash.call")) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}
