package workshop

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

func steps(t *testing.T) []Step {
	t.Helper()
	text, err := os.ReadFile("../../" + Page)
	if err != nil {
		t.Fatal(err)
	}
	steps, err := Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return steps
}

// TestEveryCheckHasItsBlock, and every block that is played is a command that
// bash can read.
func TestEveryCheckHasItsBlock(t *testing.T) {
	all := steps(t)
	if len(all) != 17 {
		t.Errorf("%d steps, the workshop has 16", len(all)-1)
	}
	for where := range checks {
		if where.step >= len(all) || where.block > len(all[where.step].Blocks) {
			t.Errorf("there is no block %d in step %d", where.block, where.step)
		}
	}
	for _, s := range all {
		for i, b := range s.Blocks {
			if checks[at{s.Number, i + 1}] == nil && !b.Follow && b.Program != "eksctl" && !strings.HasPrefix(b.Text, "export ") {
				t.Errorf("step %d: nobody looks at what comes of block %d", s.Number, i+1)
			}
			cmd := exec.Command("bash", "-n")
			cmd.Stdin = strings.NewReader(b.Text)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("step %d, block %d: %s", s.Number, i+1, out)
			}
		}
	}
}

func TestParse(t *testing.T) {
	for page, want := range map[string]string{
		"## 1. a\n## 3. b":    "step 3 follows step 1",
		"```\nls\n```":        "not called bash",
		"## 1. a\n```bash\nx": "does not end",
	} {
		if _, err := Parse(page); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", page, err, want)
		}
	}
}

func TestShellRemembersWhatIsExported(t *testing.T) {
	s := &shell{dir: t.TempDir(), state: t.TempDir()}
	if _, err := s.run(t.Context(), "export A=1 B='x y'; C=2"); err != nil {
		t.Fatal(err)
	}
	out, err := s.run(t.Context(), `echo "$A-$B-${C:-none}"`)
	if err != nil || out != "1-x y-none\n" {
		t.Errorf("%q, %v", out, err)
	}
	if _, err := s.run(t.Context(), "false\ntrue"); err == nil {
		t.Error("a command that failed was passed over")
	}
}

func TestFollow(t *testing.T) {
	s := &shell{dir: t.TempDir(), state: t.TempDir()}
	if out, err := s.follow(t.Context(), "echo line; sleep 60", 1e9); err != nil || out != "line\n" {
		t.Errorf("%q, %v", out, err)
	}
	if _, err := s.follow(t.Context(), "sleep 60", 1e9); err == nil {
		t.Error("silence was taken for output")
	}
	if _, err := s.follow(t.Context(), "echo over", 60e9); err == nil {
		t.Error("it ended, and was said to go on")
	}
}
