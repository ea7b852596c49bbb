// Package workshop plays docs/getting-started.md in a lab: every command as it
// is printed there, with the observable result of each step checked, and then
// scenes that go further.
//
// The controller comes from the chart. Its pods are real processes (lab/runner);
// AWS is moto together with the simulated EC2 (lab/front).
package workshop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/dynamic"

	"karpenter/lab"
)

// Page is the page that is played, from the root of the repository.
const Page = "docs/getting-started.md"

// Options of a play; all are required.
type Options struct {
	Root, State string
	Lab         *lab.Lab
	// Env are variables for the commands; they point to the lab.
	Env []string
	// Helm and OlderHelm are the folders of the two lines of the helm command.
	Helm, OlderHelm string
	Out             *os.File
}

// play is one play of the page.
type play struct {
	Options
	shell   *shell
	objects dynamic.Interface
	steps   []Step
	// output is what the last block printed.
	output string
	began  time.Time
}

// Play plays the page and then the scenes. Each step is a line with its time; the
// first that does not do what it should ends it with an error.
func Play(ctx context.Context, opt Options) error {
	text, err := os.ReadFile(filepath.Join(opt.Root, Page))
	if err != nil {
		return err
	}
	p := &play{Options: opt}
	if p.steps, err = Parse(string(text)); err != nil {
		return fmt.Errorf("%s: %w", Page, err)
	}
	if p.objects, err = dynamic.NewForConfig(opt.Lab.Config); err != nil {
		return err
	}
	folder := filepath.Join(opt.State, "shell")
	if err := errors.Join(os.RemoveAll(folder), os.MkdirAll(folder, 0o755)); err != nil {
		return err
	}
	p.shell = &shell{dir: opt.Root, state: folder, env: append(opt.Env,
		"PATH="+strings.Join([]string{opt.Helm, opt.Lab.Cluster.Programs, os.Getenv("PATH")}, string(os.PathListSeparator)),
		"HELM_CACHE_HOME="+folder, "HELM_CONFIG_HOME="+folder, "HELM_DATA_HOME="+folder, "AWS_PAGER=")}
	if err := p.prepare(ctx); err != nil {
		return fmt.Errorf("preparing: %w", err)
	}
	began := time.Now()
	for _, s := range p.steps {
		if err := p.step(ctx, s); err != nil {
			return err
		}
	}
	for _, s := range scenes {
		if err := p.timed(s.title, func() (string, error) { return s.play(p, ctx) }); err != nil {
			return err
		}
	}
	fmt.Fprintf(p.Out, "All of it happened, in %s.\n", time.Since(began).Round(time.Second))
	return nil
}

// prepare makes what is there before the page begins: the cluster.
func (p *play) prepare(ctx context.Context) error {
	_, err := p.shell.run(ctx, "aws eks create-cluster --name "+lab.ClusterName+
		" --role-arn arn:aws:iam::123456789012:role/eks --resources-vpc-config subnetIds=subnet-1,subnet-2 >/dev/null")
	return err
}

// step plays one step: its blocks, each followed by its check.
func (p *play) step(ctx context.Context, s Step) error {
	return p.timed(fmt.Sprintf("%2d. %s", s.Number, s.Title), func() (string, error) {
		left := 0
		for i, b := range s.Blocks {
			if _, err := exec.LookPath("eksctl"); err != nil && b.Program == "eksctl" {
				left++
				continue
			}
			if err := p.block(ctx, b); err != nil {
				return "", err
			}
			if check := checks[at{s.Number, i + 1}]; check != nil {
				if err := check(p, ctx); err != nil {
					return "", fmt.Errorf("%w\nthe last command said:\n%s", err, p.output)
				}
			}
		}
		if left > 0 {
			return "eksctl is not installed: its commands are left out", nil
		}
		return "", nil
	})
}

func (p *play) block(ctx context.Context, b Block) (err error) {
	if b.Follow {
		p.output, err = p.shell.follow(ctx, b.Text, 8*time.Second)
	} else {
		limit, cancel := context.WithTimeout(ctx, 5*time.Minute)
		defer cancel()
		p.output, err = p.shell.run(limit, b.Text)
	}
	if err != nil {
		return fmt.Errorf("%s\n%w", strings.TrimSpace(b.Text), err)
	}
	return nil
}

// timed runs something and prints how it went, how long it took and what it
// remarks.
func (p *play) timed(title string, what func() (remark string, err error)) error {
	p.began = time.Now()
	remark, err := what()
	mark := "✓"
	if err != nil {
		mark = "✗"
	}
	line := fmt.Sprintf("%s %-58s %6.1f s", mark, title, time.Since(p.began).Seconds())
	if remark != "" {
		line += "  " + remark
	}
	fmt.Fprintln(p.Out, line)
	if err != nil {
		return fmt.Errorf("%s: %w", strings.TrimSpace(title), err)
	}
	return nil
}

// until waits until the condition holds; it says in its error what is missing.
func until(ctx context.Context, limit time.Duration, condition func() error) error {
	deadline := time.Now().Add(limit)
	for {
		err := condition()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case time.Now().After(deadline):
			return fmt.Errorf("after %s still: %w", limit, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}
