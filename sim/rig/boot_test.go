package rig

import (
	"path/filepath"
	"testing"

	"golang.org/x/tools/txtar"

	"karpenter/internal/kube/dialect"
)

// Whatever the family, a machine that reads its user data keeps pods off until
// it is registered, and has the labels of its pool.
func TestUserDataOfEveryFamilyIsUnderstood(t *testing.T) {
	files, err := filepath.Glob("../../internal/aws/launch/testdata/userdata-*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no user data", err)
	}
	for _, file := range files {
		if family := filepath.Base(file); family == "userdata-Custom.txtar" {
			continue // what its owner writes
		}
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range archive.Files {
			if f.Name == "labels and taints" {
				continue // has an apostrophe, which no API server lets into a taint
			}
			b := ReadUserData(string(f.Data))
			closed := 0
			for _, taint := range b.Taints {
				if taint.MatchTaint(&dialect.TaintUnregistered) {
					closed++
				}
			}
			if closed != 1 || len(b.Labels) == 0 {
				t.Errorf("%s, %s: taints %v, labels %v; want the taint of machines that are not registered once, and labels", filepath.Base(file), f.Name, b.Taints, b.Labels)
			}
		}
	}
}
