package workshop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// shell runs pieces of bash one after the other, as typed into one shell: what
// is exported stays.
type shell struct {
	dir   string   // where it runs
	state string   // folder for its own files
	env   []string // at the start
}

func (s *shell) run(ctx context.Context, text string) (string, error) {
	memory := filepath.Join(s.state, "exported.sh")
	script := fmt.Sprintf("set -eu -o pipefail\n[ ! -f %[1]q ] || . %[1]q\ntrap 'export -p >%[1]q' EXIT\n%s", memory, text)
	cmd := exec.CommandContext(ctx, "bash", "-c", script)
	cmd.Dir, cmd.Env = s.dir, append(os.Environ(), s.env...)
	// Its children are ended with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("%w:\n%s", err, strings.TrimSpace(out.String()))
	}
	return out.String(), err
}

// follow runs what does not end by itself for a while. It must have said
// something by then.
func (s *shell) follow(ctx context.Context, text string, length time.Duration) (string, error) {
	short, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	out, err := s.run(short, text)
	switch {
	case ctx.Err() != nil:
		return out, ctx.Err()
	case short.Err() == nil:
		return out, errors.Join(errors.New("it ended by itself"), err)
	case strings.TrimSpace(out) == "":
		return out, fmt.Errorf("nothing was said in %s", length)
	}
	return out, nil
}
