//go:build never

package main

// The prices are read as a file. This import, which is never built, keeps the
// module in go.mod.
import _ "github.com/LeanerCloud/ec2-instances-info"
