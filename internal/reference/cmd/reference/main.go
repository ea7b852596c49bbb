// Command reference writes the parts of docs/ that follow from the code. Its
// argument is the folder of the docs.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"karpenter/internal/reference"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: reference <docs folder>")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
}

func write(docs string) error {
	pages, err := reference.Pages()
	if err != nil {
		return err
	}
	for path, text := range pages {
		file := filepath.Join(docs, path)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
