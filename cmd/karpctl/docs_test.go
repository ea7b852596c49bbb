package main

import (
	"bytes"
	"context"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDocs runs the commands of docs/karpctl.md: those in console blocks print what
// the page says, and those in sh blocks, which need a cluster, have flags that
// exist. With -update the page gets what is printed.
func TestDocs(t *testing.T) {
	t.Chdir("../..")
	const page = "docs/karpctl.md"
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	ran, dir := 0, t.TempDir()
	block := regexp.MustCompile("(?s)```console\n(.*?)```\n")
	got := block.ReplaceAllStringFunc(string(data), func(b string) string {
		var out bytes.Buffer
		out.WriteString("```console\n")
		for line := range strings.Lines(b) {
			command, ok := strings.CutPrefix(strings.TrimSpace(line), "$ karpctl ")
			if !ok {
				continue
			}
			ran++
			out.WriteString(line)
			var errOut bytes.Buffer
			run(context.Background(), strings.Fields(strings.ReplaceAll(command, "/tmp/", dir+"/")), nil, &out, &errOut)
			if strings.Contains(errOut.String(), "karpctl:") {
				t.Errorf("%s: %s", command, errOut.String())
			}
		}
		out.WriteString("```\n")
		return out.String()
	})
	for _, b := range regexp.MustCompile("(?s)```sh\n(.*?)```\n").FindAllStringSubmatch(string(data), -1) {
		for line := range strings.Lines(b[1]) {
			if words := strings.Fields(line); words[0] == "karpctl" && words[1] != "completion" {
				ran++
				var help bytes.Buffer
				run(context.Background(), []string{words[1], "--help"}, nil, &help, &help)
				for _, w := range words[2:] {
					if strings.HasPrefix(w, "-") && !strings.Contains(help.String(), w) {
						t.Errorf("%s: there is no %s", strings.TrimSpace(line), w)
					}
				}
			}
		}
	}
	if ran < 15 {
		t.Errorf("only %d commands were found", ran)
	}
	if *update {
		if err := os.WriteFile(page, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(data), got); diff != "" {
		t.Errorf("the page says something else, -page +printed:\n%s", diff)
	}
}
