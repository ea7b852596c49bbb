package play

import (
	"path/filepath"
	"testing"

	"karpenter/internal/scenario/cases"
)

// TestStories plays what no public report asked for: see testdata.
func TestStories(t *testing.T) {
	dirs, err := filepath.Glob("testdata/*")
	if err != nil || len(dirs) == 0 {
		t.Fatal("no stories", err)
	}
	for _, dir := range dirs {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			c, err := cases.Read(dir)
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
		})
	}
}
