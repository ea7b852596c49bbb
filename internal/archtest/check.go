package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

const module = "karpenter/"

// check reads every Go file of the tree and returns the breaches of the rules.
// Test files may import what they like, except that they too leave the AWS SDK
// to awsapi and stay free of the wall clock in pure packages.
func check(tree fs.FS) ([]string, error) {
	var breaches []string
	err := fs.WalkDir(tree, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if skipDir(tree, p) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(p, ".go") {
			return nil
		}
		src, err := fs.ReadFile(tree, p)
		if err != nil {
			return err
		}
		found, err := checkFile(p, src)
		breaches = append(breaches, found...)
		return err
	})
	return breaches, err
}

// skipDir leaves out nested modules, fixtures and hidden folders.
func skipDir(tree fs.FS, dir string) bool {
	if dir == "." {
		return false
	}
	if base := path.Base(dir); base == "testdata" || strings.HasPrefix(base, ".") {
		return true
	}
	_, err := fs.Stat(tree, path.Join(dir, "go.mod"))
	return err == nil
}

func checkFile(file string, src []byte) ([]string, error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, file, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	dir := path.Dir(file)
	test := strings.HasSuffix(file, "_test.go")
	var breaches []string
	for _, spec := range f.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if why := refused(dir, imported, test); why != "" {
			breaches = append(breaches, fmt.Sprintf("%s imports %s: %s", file, imported, why))
		}
	}
	if isPure(dir) && !test {
		breaches = append(breaches, impurities(fset, f)...)
	}
	return breaches, nil
}

// refused says why a file in dir may not import the package; empty if it may.
func refused(dir, imported string, test bool) string {
	if strings.HasPrefix(imported, sdk) && !strings.HasPrefix(dir+"/", "internal/aws/awsapi/") {
		return "only internal/aws/awsapi speaks to the AWS SDK"
	}
	if test {
		return ""
	}
	if why, ok := forbiddenInPure[imported]; ok && isPure(dir) {
		return "the core is made of functions: " + why
	}
	if standard(imported) {
		return ""
	}
	r, ok := ruleFor(dir)
	if !ok {
		return "no rule for " + dir + " in internal/archtest/rules.go; add one with its reason"
	}
	if inner, ours := strings.CutPrefix(imported, module); ours {
		if matchesAny(inner, r.ours) {
			return ""
		}
	} else if hasPrefixAny(imported, r.theirs) {
		return ""
	}
	return r.why
}

func standard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".") && first != strings.TrimSuffix(module, "/")
}

// ruleFor returns the rule for just this folder, or else the one with the
// longest path that takes it in.
func ruleFor(dir string) (rule, bool) {
	best, found := rule{}, false
	for _, r := range rules {
		if r.path == dir {
			return r, true
		}
		if matches(dir, r.path) && (!found || len(r.path) > len(best.path)) {
			best, found = r, true
		}
	}
	return best, found
}

func matches(dir, pattern string) bool {
	if pattern == "..." {
		return true
	}
	if root, below := strings.CutSuffix(pattern, "/..."); below {
		return dir == root || strings.HasPrefix(dir, root+"/")
	}
	return dir == pattern
}

func matchesAny(dir string, patterns []string) bool {
	for _, p := range patterns {
		if matches(dir, p) {
			return true
		}
	}
	return false
}

func hasPrefixAny(s string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}

func isPure(dir string) bool { return hasPrefixAny(dir+"/", pure) }

// impurities finds goroutines and the wall clock.
func impurities(fset *token.FileSet, f *ast.File) []string {
	var out []string
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			out = append(out, fmt.Sprintf("%s: starts a goroutine; the core is made of functions", fset.Position(n.Pos())))
		case *ast.SelectorExpr:
			if pkg, ok := n.X.(*ast.Ident); ok && pkg.Name == "time" && clockCalls[n.Sel.Name] {
				out = append(out, fmt.Sprintf("%s: time.%s; in the core time is an argument", fset.Position(n.Pos()), n.Sel.Name))
			}
		}
		return true
	})
	return out
}
