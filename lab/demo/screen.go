package demo

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

const width = 80

// Screen writes the demo for people: 80 columns, coloured on a terminal, plain
// elsewhere.
type Screen struct {
	out   io.Writer
	color bool

	mu    sync.Mutex
	start time.Time
}

// NewScreen writes to out; times count from now.
func NewScreen(out *os.File) *Screen {
	info, err := out.Stat()
	tty := err == nil && info.Mode()&os.ModeCharDevice != 0
	return &Screen{out: out, color: tty && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb", start: time.Now()}
}

// Colours of the parts of the screen.
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	blue   = "36"
)

func (s *Screen) paint(code, text string) string {
	if !s.color {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s *Screen) print(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintln(s.out, text)
}

// Title opens a chapter.
func (s *Screen) Title(text string) {
	s.print("\n" + s.paint(bold, text) + "\n" + s.paint(dim, strings.Repeat("─", width)))
}

// Say writes a paragraph.
func (s *Screen) Say(format string, args ...any) {
	for _, line := range wrap(fmt.Sprintf(format, args...), width) {
		s.print(line)
	}
}

// Command shows a command that is about to be run, on several lines if it is
// long. Its words are quoted as a shell needs it.
func (s *Screen) Command(words ...string) {
	line, indent := "$", ""
	for _, word := range words {
		if strings.ContainsAny(word, "{}[]()*? \"") {
			word = "'" + word + "'"
		}
		if len(line)+1+len(word) > width-2 && line != indent {
			s.print(s.paint(blue, line+" \\"))
			indent = "   "
			line = indent
		}
		line += " " + word
	}
	s.print(s.paint(blue, line))
}

// Output shows what a command printed.
func (s *Screen) Output(text string) {
	for line := range strings.Lines(strings.TrimRight(text, "\n")) {
		s.print(s.paint(dim, "  "+strings.TrimRight(line, "\n")))
	}
}

// At writes a line of the timeline: when, who, what.
func (s *Screen) At(t time.Time, who, what string) {
	lines := wrap(what, width-21)
	for i, line := range lines {
		when, name := fmt.Sprintf("%6.1f s", t.Sub(s.start).Seconds()), who
		if i > 0 {
			when, name = strings.Repeat(" ", 8), ""
		}
		s.print(s.paint(dim, when) + "  " + s.paint(yellow, fmt.Sprintf("%-9s", name)) + "  " + line)
	}
}

// Good reports something that is as it should be, Bad the opposite.
func (s *Screen) Good(format string, args ...any) { s.mark(green, "ok", format, args...) }

// Bad reports something that is not as it should be.
func (s *Screen) Bad(format string, args ...any) { s.mark(red, "BAD", format, args...) }

// Missed reports a goal that was not reached though everything worked; word
// has four letters.
func (s *Screen) Missed(word, format string, args ...any) { s.mark(yellow, word, format, args...) }

func (s *Screen) mark(color, mark, format string, args ...any) {
	for i, line := range wrap(fmt.Sprintf(format, args...), width-7) {
		if i > 0 {
			mark = ""
		}
		s.print("  " + s.paint(color, fmt.Sprintf("%-5s", mark)) + line)
	}
}

// wrap breaks text at spaces so that lines have at most n characters, where
// words allow it.
func wrap(text string, n int) []string {
	var lines []string
	for paragraph := range strings.Lines(text) {
		line := ""
		for _, word := range strings.Fields(paragraph) {
			if line != "" && len([]rune(line))+1+len([]rune(word)) > n {
				lines = append(lines, line)
				line = ""
			}
			if line != "" {
				line += " "
			}
			line += word
		}
		lines = append(lines, line)
	}
	return lines
}
