package play

import (
	"testing"

	"karpenter/internal/scenario/cases"
)

// TestMovedToV1 plays the move of a Provisioner to v1, and half the way back.
func TestMovedToV1(t *testing.T) {
	c, err := cases.Read("testdata/moved-to-v1")
	if err != nil {
		t.Fatal(err)
	}
	report, err := Play(c, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range report.Results {
		if !r.OK {
			t.Errorf("%s %s: %s", r.At, r.Check, r.Why)
		}
	}
	if t.Failed() {
		for _, line := range report.Timeline {
			t.Log(line)
		}
	}
}
