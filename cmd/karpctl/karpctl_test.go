package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"karpenter/internal/core/schedule"
	"karpenter/internal/dump"
)

var update = flag.Bool("update", false, "write the golden answers anew")

const (
	examples = "../../examples/"
	workshop = examples + "workshop/"
)

// TestGolden runs the files of testdata: the first line of the comment is the
// command line, "stdin" its input, the other files lie in its working
// directory; "want" is everything printed, and the exit code.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no testdata", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			golden(t, file)
		})
	}
}

func golden(t *testing.T, file string) {
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var stdin []byte
	want := -1
	for i, f := range archive.Files {
		switch f.Name {
		case "stdin":
			stdin = f.Data
		case "want":
			want = i
		default:
			if err := os.WriteFile(filepath.Join(dir, f.Name), f.Data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	command, _, _ := strings.Cut(string(archive.Comment), "\n")
	args := strings.Fields(strings.NewReplacer("BASE/", "testdata/base/", "EXAMPLES/", examples, "WORKSHOP/", workshop, "DIR", dir).Replace(command))
	var out, errOut bytes.Buffer
	code := run(context.Background(), args, bytes.NewReader(stdin), &out, &errOut)
	got := strings.ReplaceAll(out.String()+errOut.String(), dir, "DIR") + "exit code " + string(rune('0'+code)) + "\n"
	if *update {
		archive.Files[want].Data = []byte(got)
		if err := os.WriteFile(file, txtar.Format(archive), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(archive.Files[want].Data), got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestJSON: what programs read has the same content as what people read.
func TestJSON(t *testing.T) {
	pod := `{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, resources: {requests: {cpu: "1"}}}]}}`
	for _, format := range []string{"json", "yaml"} {
		var out, errOut bytes.Buffer
		code := run(context.Background(), []string{"plan", "-f", workshop, "-f", "-", "-o", format}, strings.NewReader(pod), &out, &errOut)
		if code != exitOK {
			t.Fatalf("%s: exit code %d: %s", format, code, errOut.String())
		}
		if format == "yaml" {
			if !strings.Contains(out.String(), "type: m6a.xlarge") {
				t.Errorf("yaml names no machine:\n%s", out.String())
			}
			continue
		}
		var plan schedule.Plan
		if err := json.Unmarshal(out.Bytes(), &plan); err != nil {
			t.Fatal(err)
		}
		if len(plan.Machines) != 1 || plan.Machines[0].Options[0].Type != "m6a.xlarge" || plan.Machines[0].Price != 172800 {
			t.Errorf("want one m6a.xlarge at $0.1728/h, got %+v", plan.Machines)
		}
	}
}

// TestPlugin: called by kubectl, the program has the name by which people know it.
func TestPlugin(t *testing.T) {
	var out, errOut bytes.Buffer
	if code := runAs(context.Background(), "kubectl karpenter", []string{"plan", "--help"}, nil, &out, &errOut); code != exitOK {
		t.Fatal(code, errOut.String())
	}
	if !strings.Contains(out.String(), "Usage:\n  kubectl karpenter plan -f FILE…") {
		t.Error(out.String())
	}
}

// TestCompletion: a shell gets commands, and the values of flags.
func TestCompletion(t *testing.T) {
	for words, want := range map[string]string{"__complete pl": "plan\t", "__complete plan -o ": "yaml\n", "__complete convert --to ": "v1alpha5\n"} {
		var out, errOut bytes.Buffer
		run(context.Background(), strings.Split(words, " "), nil, &out, &errOut)
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q: no %q in\n%s", words, want, out.String())
		}
	}
}

// TestEveryCommandSaysHow: each command has examples and says what its exit codes
// mean.
func TestEveryCommandSaysHow(t *testing.T) {
	var out bytes.Buffer
	run(context.Background(), []string{"--help"}, nil, &out, &out)
	_, list, _ := strings.Cut(out.String(), "Available Commands:\n")
	list, _, _ = strings.Cut(list, "\n\n")
	for line := range strings.Lines(list) {
		name := strings.Fields(line)[0]
		if name == "help" || name == "completion" {
			continue
		}
		var help bytes.Buffer
		run(context.Background(), []string{name, "--help"}, nil, &help, &help)
		for _, word := range []string{"Examples:\n", "Exit code 0:"} {
			if !strings.Contains(help.String(), word) {
				t.Errorf("%s --help has no %q", name, word)
			}
		}
	}
}

// karpctl runs a command line and wants the exit code.
func karpctl(t *testing.T, want int, args ...string) (out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	if code := run(context.Background(), args, strings.NewReader(""), &o, &e); code != want {
		t.Fatalf("karpctl %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), code, want, o.String(), e.String())
	}
	return o.String(), e.String()
}

// TestDumpAndReplay: the file says the same as the manifests, and is compared.
func TestDumpAndReplay(t *testing.T) {
	file := filepath.Join(t.TempDir(), "dump.json.gz")
	karpctl(t, exitOK, "dump", "-f", workshop, "-f", examples+"plan", file)
	planned, _ := karpctl(t, exitOK, "plan", "-f", workshop, "-f", examples+"plan")
	replayed, _ := karpctl(t, exitOK, "replay", file)
	if diff := cmp.Diff(planned, replayed); diff != "" {
		t.Errorf("-plan +replay:\n%s", diff)
	}
	other, _ := karpctl(t, exitOK, "replay", "--kind", "disrupt", file)
	if !strings.HasPrefix(other, "0 commands") {
		t.Error(other)
	}
	hashed := filepath.Join(t.TempDir(), "hashed.json.gz")
	karpctl(t, exitOK, "dump", "--dump", file, "--hash-names", hashed)
	if out, _ := karpctl(t, exitOK, "replay", hashed); strings.Contains(out, "default/") {
		t.Errorf("names are left:\n%s", out)
	}

	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	d, err := dump.Read(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	d.Decision.Answer = []byte(`{}`)
	var changed bytes.Buffer
	if err := d.Write(&changed); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, changed.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, text := karpctl(t, exitDiffers, "replay", file); !strings.Contains(text, "not the decision that the dump holds") {
		t.Error(text)
	}
	karpctl(t, exitFailed, "replay", "--no-such-flag") // never the code that says "differs"
}
