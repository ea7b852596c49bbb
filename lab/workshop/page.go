package workshop

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Step is a section of the page; that before the first heading with a number
// has number 0.
type Step struct {
	Number int
	Title  string
	Blocks []Block
}

// Block is what a reader copies into a shell.
type Block struct {
	Text string
	// Follow: the command does not end by itself.
	Follow bool
	// Program is the first word of the block.
	Program string
}

var stepTitle = regexp.MustCompile(`^## (\d+)\. (.+)$`)

// Parse reads a page in Markdown. Blocks are fenced and called bash.
func Parse(page string) ([]Step, error) {
	steps := []Step{{Title: "Variables"}}
	var block *Block
	for i, line := range strings.Split(page, "\n") {
		now := &steps[len(steps)-1]
		switch m := stepTitle.FindStringSubmatch(line); {
		case block != nil && line == "```":
			block.Program, _, _ = strings.Cut(block.Text, " ")
			now.Blocks = append(now.Blocks, *block)
			block = nil
		case block != nil:
			block.Text += line + "\n"
		case line == "```bash" || line == "```bash follow":
			block = &Block{Follow: strings.HasSuffix(line, " follow")}
		case strings.HasPrefix(line, "```"):
			return nil, fmt.Errorf("line %d: a block that is not called bash", i+1)
		case m != nil:
			n, err := strconv.Atoi(m[1])
			if err != nil || n != now.Number+1 {
				return nil, fmt.Errorf("line %d: step %s follows step %d", i+1, m[1], now.Number)
			}
			steps = append(steps, Step{Number: n, Title: m[2]})
		}
	}
	if block != nil {
		return nil, fmt.Errorf("the last block does not end")
	}
	return steps, nil
}
