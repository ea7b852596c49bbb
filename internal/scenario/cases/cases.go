// Package cases reads cases: a cluster, a cloud and the steps to take in
// input.yaml, and what must be true afterwards in expect.md. The format is
// described in test/cases/README.md.
//
// It may import scenario, api, core and the pure parts of kube and aws. What
// always holds: every field and every check of a case is understood, or reading
// it is an error that names it; nothing is skipped silently.
package cases

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"karpenter/internal/scenario"
)

// Case is one case.
type Case struct {
	// Name is that of its directory.
	Name string
	Context
	// Objects are what is in the cluster at the start, in the order of the file.
	Objects []Object
	Checks  Checks
}

// Object is one Kubernetes object as it was written.
type Object struct {
	APIVersion, Kind, Namespace, Name string
	// JSON is the object, and Where its file and line.
	JSON  []byte
	Where string
}

// Read reads the case in a directory.
func Read(dir string) (*Case, error) {
	name := filepath.Base(filepath.Clean(dir))
	docs, err := scenario.Documents([]string{filepath.Join(dir, "input.yaml")}, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	expect, err := os.ReadFile(filepath.Join(dir, "expect.md"))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	c, err := Parse(docs, expect)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	c.Name = name
	return c, nil
}

// Parse makes a case of the documents of its input and the text of its
// expectation.
func Parse(docs []scenario.Document, expect []byte) (*Case, error) {
	if len(docs) == 0 {
		return nil, errors.New("input.yaml: holds no document; the first must be a CaseContext")
	}
	c := &Case{}
	if err := decodeYAML(docs[0].Data, &c.Context); err != nil {
		return nil, fmt.Errorf("%s: CaseContext: %w", docs[0].At(), err)
	}
	if err := c.Context.check(); err != nil {
		return nil, fmt.Errorf("%s: CaseContext: %w", docs[0].At(), err)
	}
	for _, d := range docs[1:] {
		o, err := object(d)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.At(), err)
		}
		c.Objects = append(c.Objects, o)
	}
	var err error
	if c.Checks, err = parseChecks(expect, c.Now); err != nil {
		return nil, fmt.Errorf("expect.md: %w", err)
	}
	return c, nil
}

func object(d scenario.Document) (Object, error) {
	text, err := toJSON(d.Data)
	if err != nil {
		return Object{}, err
	}
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct{ Namespace, Name string }
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return Object{}, err
	}
	if head.APIVersion == "" || head.Kind == "" || head.Metadata.Name == "" {
		return Object{}, errors.New("apiVersion, kind and metadata.name: all three are needed to know what the object is")
	}
	return Object{head.APIVersion, head.Kind, head.Metadata.Namespace, head.Metadata.Name, text, d.At()}, nil
}

// parseChecks finds the block of checks in an expectation.
func parseChecks(expect []byte, now time.Time) (Checks, error) {
	var file struct {
		Checks *Checks `json:"checks"`
	}
	text := string(expect)
	if i := strings.LastIndex(text, "\n## Checks"); i >= 0 {
		text = text[i:]
	}
	_, text, found := strings.Cut(text, "```yaml\n")
	text, _, closed := strings.Cut(text, "\n```")
	if !found || !closed {
		return Checks{}, errors.New("has no block ```yaml … ``` with the checks")
	}
	if err := decodeYAML([]byte(text), &file); err != nil {
		return Checks{}, err
	}
	if file.Checks == nil {
		return Checks{}, errors.New("checks: is missing")
	}
	return *file.Checks, file.Checks.settle(now)
}

// decodeYAML refuses fields that it does not know.
func decodeYAML(data []byte, into any) error {
	text, err := toJSON(data)
	if err != nil {
		return err
	}
	return decode(text, into)
}

// toJSON takes words such as y and on for what they are, words, as YAML 1.2 does.
func toJSON(data []byte) ([]byte, error) {
	var value any
	if err := yaml.Unmarshal(data, &value); err != nil {
		return nil, fmt.Errorf("not readable as YAML: %w", err)
	}
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("not readable as YAML: %w", err)
	}
	return text, nil
}

func decode(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// Moment is a time since the start of a case; in a file it may also be written
// as a date.
type Moment struct {
	time.Duration
	date time.Time
}

// UnmarshalJSON reads "90s" or a date.
func (m *Moment) UnmarshalJSON(text []byte) error {
	var s string
	if err := json.Unmarshal(text, &s); err != nil {
		return fmt.Errorf("%s: a time is written as 90s, or as a date", text)
	}
	return m.parse(s)
}

func (m *Moment) parse(s string) (err error) {
	if m.date, err = time.Parse(time.RFC3339, s); err == nil {
		return nil
	}
	if m.Duration, err = time.ParseDuration(s); err != nil {
		return fmt.Errorf("%q: a time is written as 90s, or as a date", s)
	}
	return nil
}

// settle turns a date into a time since the start.
func (m *Moment) settle(now time.Time) {
	if !m.date.IsZero() {
		m.Duration, m.date = m.date.Sub(now), time.Time{}
	}
}
