package admission

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	admissiontest "karpenter/test/admission"
)

func TestObjects(t *testing.T) {
	objects, err := admissiontest.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		t.Run(o.Kind+"/"+o.Case, func(t *testing.T) {
			check(t, Check(o.YAML()), append(o.Reject, o.Condition...))
		})
	}
}

func TestExamples(t *testing.T) {
	for dir, least := range map[string]int{"v1": 10, "workshop": 2} {
		files, err := filepath.Glob("../../examples/" + dir + "/*.yaml")
		if err != nil {
			t.Fatal(err)
		}
		seen := 0
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, object := range strings.Split("\n"+string(text), "\n---") {
				if !strings.Contains(object, "apiVersion: karpenter.") {
					continue
				}
				seen++
				if err := Check([]byte(object)); err != nil {
					t.Errorf("%s: %v", file, err)
				}
			}
		}
		if seen < least {
			t.Errorf("%s: only %d objects", dir, seen)
		}
	}
}
