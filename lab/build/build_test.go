package build

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// module makes a module with one program and returns how to build it.
func module(t *testing.T, source string) Program {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module example\n\ngo 1.26\n", "main.go": source} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return Program{Name: "example", Package: ".", Dir: dir, Out: filepath.Join(dir, "out")}
}

// output is a file for progress, and what was written to it so far.
func output(t *testing.T) (*Progress, func() string) {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "progress"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return NewProgress(f), func() string {
		text, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
}

func TestTwoLabsBuildAProgramOnce(t *testing.T) {
	p := module(t, `package main; func main() { print("hello") }`)
	var work sync.WaitGroup
	var said [2]string
	for i := range said {
		progress, read := output(t)
		work.Go(func() {
			if err := Ensure(t.Context(), []Program{p}, progress); err != nil {
				t.Error(err)
			}
			said[i] = read()
		})
	}
	work.Wait()
	if built := strings.Count(said[0]+said[1], "1/1  example"); built != 1 {
		t.Errorf("built %d times, want once:\n%s\n---\n%s", built, said[0], said[1])
	}
	if out, err := exec.Command(p.Path()).CombinedOutput(); err != nil || string(out) != "hello" {
		t.Errorf("the program says %q, error %v", out, err)
	}
	left, _ := filepath.Glob(filepath.Join(p.Out, ".example.*"))
	if len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestFailedBuildLeavesNothingAndSaysWhy(t *testing.T) {
	p := module(t, `package main; func main() { undefined() }`)
	progress, _ := output(t)
	err := Ensure(t.Context(), []Program{p}, progress)
	if err == nil || !strings.Contains(err.Error(), "undefined: undefined") {
		t.Errorf("got error %v, want the compiler's", err)
	}
	if !p.Missing() {
		t.Error("a binary is there")
	}
}

func TestRefreshFollowsTheSource(t *testing.T) {
	p := module(t, `package main; func main() { print("old") }`)
	progress, _ := output(t)
	for _, word := range []string{"old", "new"} {
		source := `package main; func main() { print("` + word + `") }`
		if err := os.WriteFile(filepath.Join(p.Dir, "main.go"), []byte(source), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := Refresh(t.Context(), p, nil); err != nil {
			t.Fatal(err)
		}
		if out, _ := exec.Command(p.Path()).CombinedOutput(); string(out) != word {
			t.Errorf("the program says %q, want %q", out, word)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Refresh(ctx, p, progress); err == nil {
		t.Error("a cancelled build succeeded")
	}
}

func TestControlPlaneVersionsComeFromGoMod(t *testing.T) {
	t.Setenv(CacheEnv, "/cache")
	programs, err := ControlPlane("..")
	if err != nil {
		t.Fatal(err)
	}
	version, err := KubernetesVersion("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range programs {
		if !strings.HasPrefix(p.Out, "/cache/kubernetes-"+version+"_kwok-v") {
			t.Errorf("%s goes to %s", p.Name, p.Out)
		}
		if !strings.Contains(p.LDFlags, "version.gitVersion="+version) || !strings.Contains(p.LDFlags, "version.gitMajor=1 ") {
			t.Errorf("%s is stamped %s", p.Name, p.LDFlags)
		}
	}
}

// Linking takes most of the time of a build.
func TestRefreshDoesNotLinkWhatHasNotChanged(t *testing.T) {
	p := module(t, `package main; func main() {}`)
	var built [2]os.FileInfo
	for i := range built {
		if err := Refresh(t.Context(), p, nil); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(p.Path())
		if err != nil {
			t.Fatal(err)
		}
		built[i] = info
	}
	if !os.SameFile(built[0], built[1]) {
		t.Error("the second build made another file")
	}
}
