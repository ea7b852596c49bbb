package lab_test

import (
	"os"
	"path/filepath"
	"testing"

	"karpenter/lab/demo"
)

// The demo checks itself; here it plays in the shared lab.
func TestDemo(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	d := demo.Demo{Root: root, State: shared.Cluster.State, Screen: demo.NewScreen(os.Stdout)}
	if err := d.Play(t.Context()); err != nil {
		t.Fatal(err)
	}
}
