package build

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// heartbeat is the longest silence when the output is not a terminal.
const heartbeat = 20 * time.Second

// patience is how long a refresh may take before it is shown.
const patience = 3 * time.Second

// Progress shows which program is being built, how many of how many, how many
// of its packages are compiled, and the time taken. On a terminal one line is
// rewritten; elsewhere a line is printed at least every 20 seconds.
type Progress struct {
	out io.Writer
	tty bool

	mu       sync.Mutex
	start    time.Time // of the whole
	total    int       // programs
	index    int       // of the current program
	name     string
	phase    string
	begun    time.Time // of the current program
	compiled int
	stale    int // packages to compile, 0 = not known
	printed  time.Time
	quiet    time.Time // nothing is shown before
	shown    bool
}

// NewProgress writes to out, as to a terminal if it is one.
func NewProgress(out *os.File) *Progress {
	info, err := out.Stat()
	tty := err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
	return &Progress{out: out, tty: tty}
}

// begin announces the programs to build, out of so many that there are.
func (p *Progress) begin(programs []Program, of int) {
	p.start, p.total = time.Now(), len(programs)
	if p.total == 0 {
		return
	}
	names := make([]string, len(programs))
	for i, prog := range programs {
		names[i] = prog.Name
	}
	list := strings.Join(names, ", ")
	if p.total < of {
		fmt.Fprintf(p.out, "Building %d of the lab's %d programs, the others are there: %s.\n", p.total, of, list)
		return
	}
	fmt.Fprintf(p.out, "Building the lab's %d programs, once: %s.\n", p.total, list)
	if p.total > 2 {
		fmt.Fprintf(p.out, "From nothing this takes about 10 minutes on 2 cores. They are kept in\n%s.\n", programs[0].Out)
	}
}

func (p *Progress) end() {
	if p.total > 0 {
		fmt.Fprintf(p.out, "Built in %s.\n", clock(time.Since(p.start)))
	}
}

// program builds one program and shows how it goes.
func (p *Progress) program(ctx context.Context, index int, prog Program, build func(context.Context, func(string)) error) error {
	p.mu.Lock()
	p.index, p.name, p.phase, p.begun = index, prog.Name, "fetching modules", time.Now()
	p.compiled, p.stale, p.printed = 0, 0, time.Now()
	p.show(p.tty)
	p.mu.Unlock()

	tick, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.tick(tick)
	}()
	err := p.count(ctx, prog)
	if err == nil {
		err = build(ctx, func(string) {
			p.mu.Lock()
			p.compiled++
			p.mu.Unlock()
		})
	}
	stop()
	<-done

	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		p.phase = "done"
	} else {
		p.phase = "failed"
	}
	p.show(true)
	if p.tty && p.shown {
		fmt.Fprintln(p.out)
	}
	return err
}

// count finds how many packages have to be compiled, which also downloads the
// modules.
func (p *Progress) count(ctx context.Context, prog Program) error {
	args := []string{"list", "-deps", "-f", "{{if .Stale}}{{.ImportPath}}{{end}}"}
	if prog.LDFlags != "" {
		args = append(args, "-ldflags", prog.LDFlags)
	}
	cmd := goCommand(ctx, prog.Dir, append(args, prog.Package)...)
	var out bytes.Buffer
	cmd.Stdout = &out
	output, err := stream(cmd, func(line string) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if module, ok := strings.CutPrefix(line, "go: downloading "); ok {
			p.phase = "fetching " + path.Base(strings.Fields(module)[0])
		}
	})
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("listing the packages of %s: %w\n%s", prog.Name, err, output)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stale, p.phase = len(bytes.Fields(out.Bytes())), "compiling"
	return nil
}

func (p *Progress) tick(ctx context.Context) {
	ticker := time.NewTicker(500 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			p.mu.Lock()
			p.show(false)
			p.mu.Unlock()
		}
	}
}

// show prints the state; force prints it even if nothing is due.
func (p *Progress) show(force bool) {
	if !p.tty && !force && time.Since(p.printed) < heartbeat || !p.shown && time.Now().Before(p.quiet) {
		return
	}
	p.printed, p.shown = time.Now(), true
	what := p.phase
	if p.phase == "compiling" {
		what = fmt.Sprintf("%d of %d packages", min(p.compiled, p.stale), p.stale)
		if p.compiled >= p.stale-1 {
			what = "linking"
		}
	}
	line := fmt.Sprintf("  %d/%d  %-24s %-24s %6s", p.index+1, p.total, p.name, what, clock(time.Since(p.begun)))
	if p.index > 0 {
		line += "  total " + clock(time.Since(p.start))
	}
	if p.tty {
		fmt.Fprintf(p.out, "\r%s\x1b[K", line)
		return
	}
	fmt.Fprintln(p.out, line)
}

// clock writes a duration as minutes and seconds.
func clock(d time.Duration) string {
	return fmt.Sprintf("%d:%02d", int(d.Minutes()), int(d.Seconds())%60)
}

// stream runs a command, hands each line of its standard error to line, and
// returns the last of them.
func stream(cmd *exec.Cmd, line func(string)) (string, error) {
	pipe, err := cmd.StderrPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	var last []string
	scanner := bufio.NewScanner(pipe)
	for scanner.Scan() {
		line(scanner.Text())
		last = append(last, scanner.Text())
		if len(last) > 40 {
			last = last[1:]
		}
	}
	return strings.Join(last, "\n"), cmd.Wait()
}

// lock takes the lock of a folder and returns what gives it back.
func lock(ctx context.Context, dir string, progress *Progress) (func(), error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, ".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	told := false
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			f.Close()
			return nil, fmt.Errorf("locking %s: %w", dir, err)
		}
		if !told {
			fmt.Fprintf(progress.out, "Another lab is building into %s; waiting for it.\n", dir)
			told = true
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, ctx.Err()
		case <-time.After(time.Second):
		}
	}
}
