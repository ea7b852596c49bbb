//go:build race

package schedule

func init() { raced = true }
