// Package archtest holds the rules about who may import whom, and tests the
// tree against them. The rules are data (rules.go); a breach names the file,
// the import and the reason.
package archtest
