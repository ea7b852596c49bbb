// Package build makes the programs that the lab runs: a Kubernetes control
// plane, kwok and our own binaries, all from the Go module proxy.
//
// It imports the standard library only, so that the launcher (cmd/lab) starts
// within seconds on a machine with empty caches and can show what the long
// builds are doing. A program that exists is never built again; programs of
// the control plane are kept outside the repository, in a folder named by
// their versions, and several labs may build at the same time.
package build

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// CacheEnv names the environment variable that moves the folder of built
// control-plane programs.
const CacheEnv = "KARPENTER_LAB_CACHE"

// Program is one binary to build.
type Program struct {
	Name    string // file name of the binary
	Package string // import path, or ./relative to Dir
	Dir     string // folder of the module to build in
	Out     string // folder of the binary
	LDFlags string
}

// Path of the binary.
func (p Program) Path() string { return filepath.Join(p.Out, p.Name) }

// Missing reports whether the binary is not there.
func (p Program) Missing() bool {
	_, err := os.Stat(p.Path())
	return err != nil
}

// ControlPlane lists the programs of the control plane, in the order in which
// they are built: small ones first, so that progress is seen early. labDir is
// the folder of the lab module, whose go.mod holds the versions.
func ControlPlane(labDir string) ([]Program, error) {
	versions, err := versions(labDir, "k8s.io/kubernetes", "sigs.k8s.io/kwok", "go.etcd.io/etcd/server/v3")
	if err != nil {
		return nil, err
	}
	kube := versions[0]
	cache, err := cacheDir()
	if err != nil {
		return nil, err
	}
	out := filepath.Join(cache, fmt.Sprintf("kubernetes-%s_kwok-%s_etcd-%s_%s-%s",
		kube, versions[1], versions[2], runtime.GOOS, runtime.GOARCH))
	stamp := versionFlags(kube)
	programs := []Program{
		{Name: "etcd", Package: "go.etcd.io/etcd/server/v3"},
		{Name: "kwokctl", Package: "sigs.k8s.io/kwok/cmd/kwokctl"},
		{Name: "kwok", Package: "sigs.k8s.io/kwok/cmd/kwok"},
		{Name: "kubectl", Package: "k8s.io/kubernetes/cmd/kubectl"},
		{Name: "kube-scheduler", Package: "k8s.io/kubernetes/cmd/kube-scheduler"},
		{Name: "kube-controller-manager", Package: "k8s.io/kubernetes/cmd/kube-controller-manager"},
		{Name: "kube-apiserver", Package: "k8s.io/kubernetes/cmd/kube-apiserver"},
	}
	for i := range programs {
		programs[i].Dir, programs[i].Out, programs[i].LDFlags = labDir, out, stamp
	}
	return programs, nil
}

// Helm lists the helm commands, the present line first; chartsDir is the folder
// of the module whose go.mod holds their versions. Each is called helm and is in
// a folder of its own.
func Helm(chartsDir string) ([]Program, error) {
	modules := []string{"helm.sh/helm/v4", "helm.sh/helm/v3"}
	found, err := versions(chartsDir, modules...)
	if err != nil {
		return nil, err
	}
	cache, err := cacheDir()
	if err != nil {
		return nil, err
	}
	var programs []Program
	for i, module := range modules {
		programs = append(programs, Program{Name: "helm", Package: module + "/cmd/helm", Dir: chartsDir, LDFlags: "-s -w",
			Out: filepath.Join(cache, fmt.Sprintf("helm-%s_%s-%s", found[i], runtime.GOOS, runtime.GOARCH))})
	}
	return programs, nil
}

// KubernetesVersion returns the version of the control plane, such as v1.37.2.
func KubernetesVersion(labDir string) (string, error) {
	found, err := versions(labDir, "k8s.io/kubernetes")
	if err != nil {
		return "", err
	}
	return found[0], nil
}

// Controller is our controller, for the lab whose files are in state.
func Controller(root, state string) Program {
	return Program{Name: "karpenter", Package: "./cmd/karpenter", Dir: root, Out: filepath.Join(state, "bin"), LDFlags: "-s -w"}
}

// Supervisor is the program that runs a lab and plays the demo.
func Supervisor(root, state string) Program {
	return Program{Name: "labd", Package: "./cmd/labd", Dir: filepath.Join(root, "lab"), Out: filepath.Join(state, "bin"), LDFlags: "-s -w"}
}

// versionFlags stamp the version of Kubernetes into a binary. Without them
// every client that parses the server's version fails.
func versionFlags(version string) string {
	major, rest, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	const pkg = "k8s.io/component-base/version."
	flags := "-s -w"
	for _, kv := range [][2]string{
		{"gitVersion", version}, {"gitMajor", major}, {"gitMinor", minor},
		{"gitCommit", "local"}, {"gitTreeState", "clean"},
	} {
		flags += " -X " + pkg + kv[0] + "=" + kv[1]
	}
	return flags
}

// versions reads the required versions of modules from the go.mod in dir.
func versions(dir string, modules ...string) ([]string, error) {
	cmd := exec.Command("go", "mod", "edit", "-json")
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", filepath.Join(dir, "go.mod"), err)
	}
	var mod struct {
		Require []struct{ Path, Version string }
	}
	if err := json.Unmarshal(out, &mod); err != nil {
		return nil, fmt.Errorf("reading %s: %w", filepath.Join(dir, "go.mod"), err)
	}
	found := make([]string, len(modules))
	for i, m := range modules {
		for _, r := range mod.Require {
			if r.Path == m {
				found[i] = r.Version
			}
		}
		if found[i] == "" {
			return nil, fmt.Errorf("%s does not require %s", filepath.Join(dir, "go.mod"), m)
		}
	}
	return found, nil
}

func cacheDir() (string, error) {
	if dir := os.Getenv(CacheEnv); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no folder for built programs: %w; set %s", err, CacheEnv)
	}
	return filepath.Join(dir, "karpenter", "lab"), nil
}

// Missing returns the programs whose binaries are not there.
func Missing(programs []Program) []Program {
	var missing []Program
	for _, p := range programs {
		if p.Missing() {
			missing = append(missing, p)
		}
	}
	return missing
}

// Ensure builds the programs that are missing and reports to progress. Another
// process that builds into the same folder is waited for.
func Ensure(ctx context.Context, programs []Program, progress *Progress) error {
	missing := Missing(programs)
	if len(missing) == 0 {
		return nil
	}
	unlock, err := lock(ctx, missing[0].Out, progress)
	if err != nil {
		return err
	}
	defer unlock()
	missing = Missing(missing)
	progress.begin(missing, len(programs))
	for i, p := range missing {
		err := progress.program(ctx, i, p, func(ctx context.Context, line func(string)) error { return create(ctx, p, line) })
		if err != nil {
			return err
		}
	}
	progress.end()
	return nil
}

// Refresh builds a program whether or not its binary is there; unchanged
// sources cost about a second. It says nothing unless it takes long; progress
// may be nil.
func Refresh(ctx context.Context, p Program, progress *Progress) error {
	refresh := func(ctx context.Context, line func(string)) error { return create(ctx, p, line) }
	if progress == nil {
		return refresh(ctx, func(string) {})
	}
	progress.total, progress.quiet = 1, time.Now().Add(patience)
	return progress.program(ctx, 0, p, refresh)
}

// create builds a program under a temporary name and renames it, so that a
// binary is either complete or not there.
func create(ctx context.Context, p Program, line func(string)) error {
	tmp := filepath.Join(p.Out, fmt.Sprintf(".%s.%d", p.Name, os.Getpid()))
	defer os.Remove(tmp)
	if err := os.MkdirAll(p.Out, 0o755); err != nil {
		return err
	}
	// Where go finds the old binary it does not link what has not changed. It
	// replaces files and never writes into them, so that a link will do; where
	// there is none go only takes longer.
	_ = os.Link(p.Path(), tmp)
	if err := compile(ctx, p, tmp, line); err != nil {
		return err
	}
	return os.Rename(tmp, p.Path())
}

// compile builds a program into a file. line gets each line that go prints.
func compile(ctx context.Context, p Program, file string, line func(string)) error {
	// Without the commit, which would have it linked anew after each.
	args := []string{"build", "-v", "-buildvcs=false", "-o", file}
	if p.LDFlags != "" {
		args = append(args, "-ldflags", p.LDFlags)
	}
	output, err := stream(goCommand(ctx, p.Dir, append(args, p.Package)...), line)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("building %s (%s): %w\n%s", p.Name, p.Package, err, output)
	}
	return nil
}

// goCommand runs the go tool without cgo, so that no C compiler is needed and
// all binaries share one build cache.
func goCommand(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	// Its compilers are its children: a group of its own lets them all be
	// stopped together, and keeps Ctrl-C for us.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		err := syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		if errors.Is(err, syscall.ESRCH) {
			return os.ErrProcessDone
		}
		return err
	}
	return cmd
}
