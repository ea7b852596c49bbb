// Package scenario reads manifests and scenario files into the hub model, so
// that the functions of the controller can be asked without a cluster.
//
// It imports api, admission, kube/convert and the pure parts of aws; it never
// talks to a cluster or to AWS. What always holds: a manifest that cannot be
// read is an error that names file, line, object and field, and nothing else
// is lost because of it.
package scenario

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Document is one YAML document and where it was found.
type Document struct {
	File string
	Line int // of the document's first line, from 1
	Data []byte
}

// At says where the document is, as "file:line".
func (d Document) At() string {
	return fmt.Sprintf("%s:%d", shown(d.File), d.Line)
}

// shown is the name of a file in messages.
func shown(file string) string {
	if file == "-" {
		return "stdin"
	}
	return file
}

// Documents reads the YAML documents of files and directories (their .yaml,
// .yml and .json files, in order of name); "-" is stdin. All that can be read
// is returned beside the errors.
func Documents(paths []string, stdin io.Reader) ([]Document, error) {
	var docs []Document
	var errs []error
	for _, p := range paths {
		files, err := expand(p)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, f := range files {
			data, err := readFile(f, stdin)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			found := Split(f, data)
			if len(found) == 0 {
				errs = append(errs, fmt.Errorf("%s: holds no object", shown(f)))
			}
			docs = append(docs, found...)
		}
	}
	return docs, errors.Join(errs...)
}

func readFile(file string, stdin io.Reader) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(stdin)
	}
	return os.ReadFile(file)
}

func expand(p string) ([]string, error) {
	if p == "-" {
		return []string{p}, nil
	}
	info, err := os.Stat(p)
	if err != nil {
		return nil, fmt.Errorf("%s: cannot be read: %w", p, unwrapPath(err))
	}
	if !info.IsDir() {
		return []string{p}, nil
	}
	entries, err := os.ReadDir(p)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		if !e.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(e.Name())) {
			files = append(files, filepath.Join(p, e.Name()))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: has no .yaml, .yml or .json file", p)
	}
	return files, nil
}

// unwrapPath drops the path from a file error, since the caller names it.
func unwrapPath(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// Split cuts a file at its document separators and leaves out documents that
// hold nothing but comments.
func Split(file string, data []byte) []Document {
	var docs []Document
	start, first := 1, 0
	add := func(end int) {
		d := Document{File: file, Line: start, Data: data[first:end]}
		if !blank(d.Data) {
			docs = append(docs, d)
		}
	}
	line, at := 1, 0
	for at < len(data) {
		next := len(data)
		if i := bytes.IndexByte(data[at:], '\n'); i >= 0 {
			next = at + i + 1
		}
		if text := strings.TrimRight(string(data[at:next]), " \t\r\n"); text == "---" || strings.HasPrefix(text, "--- ") {
			add(at)
			start, first = line+1, next
		}
		line, at = line+1, next
	}
	add(len(data))
	return docs
}

func blank(data []byte) bool {
	for l := range strings.Lines(string(data)) {
		if s := strings.TrimSpace(l); s != "" && !strings.HasPrefix(s, "#") {
			return false
		}
	}
	return true
}

// items returns the objects of a List document, each as a document of its own,
// or the document itself.
func items(d Document) ([]Document, error) {
	var list struct {
		Kind  string           `json:"kind"`
		Items []map[string]any `json:"items"`
	}
	if err := yaml.Unmarshal(d.Data, &list); err != nil {
		return nil, fmt.Errorf("%s: not readable as YAML: %w", d.At(), err)
	}
	if !strings.HasSuffix(list.Kind, "List") || list.Items == nil {
		return []Document{d}, nil
	}
	out := make([]Document, 0, len(list.Items))
	for _, item := range list.Items {
		data, err := yaml.Marshal(item)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.At(), err)
		}
		out = append(out, Document{File: d.File, Line: d.Line, Data: data})
	}
	return out, nil
}
