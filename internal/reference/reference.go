// Package reference writes the parts of docs/ that follow from the code: settings,
// metrics, and the fields of the API.
//
// It may import everything of ours; nothing that runs imports it. What always
// holds: the same code gives the same text, and a test fails while docs/ has
// another one. `make gen` writes it.
package reference

import (
	"fmt"
	"strings"

	"karpenter/internal/settings"
)

// Pages returns the text of each page by its path below docs/.
func Pages() (map[string]string, error) {
	pages := map[string]string{"settings.md": settingsPage()}
	var err error
	if pages["metrics.md"], err = metricsPage(); err != nil {
		return nil, err
	}
	return pages, fieldPages(pages)
}

const generated = "<!-- Written by `make gen` from the code; do not edit. -->\n\n"

// table writes a Markdown table. Cells must not have line breaks.
func table(b *strings.Builder, head []string, rows [][]string) {
	line := func(cells []string) {
		for i, c := range cells {
			cells[i] = strings.ReplaceAll(c, "|", `\|`)
		}
		fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
	}
	line(head)
	b.WriteString(strings.Repeat("|---", len(head)) + "|\n")
	for _, r := range rows {
		line(r)
	}
	b.WriteString("\n")
}

func code(texts ...string) string {
	var out []string
	for _, t := range texts {
		if t != "" {
			out = append(out, "`"+t+"`")
		}
	}
	return strings.Join(out, ", ")
}

func settingsPage() string {
	controller, process := settings.Reference()
	var b strings.Builder
	b.WriteString(generated + `# Settings

A flag beats its environment variable. The ConfigMap ` + "`karpenter-global-settings`" + ` in the namespace of the process beats
both and is followed live, within ten seconds and by every replica. A wrong value stops the start and is named. A wrong
value that appears later changes nothing: the last good values go on, and it is reported by a line in the log, an event
` + "`InvalidSettings`" + ` of the ConfigMap, and the metric ` + "`karpenter_settings_valid`" + `. What is accepted and has no effect here is
named once, at the start.

## What the controller does

Keys of the ConfigMap may be written with and without the prefix ` + "`aws.`" + `.

`)
	var rows [][]string
	for _, e := range controller {
		rows = append(rows, []string{code(e.Key), code(e.Env...), code(e.Flag), code(e.Default), e.Help})
	}
	table(&b, []string{"ConfigMap key", "environment", "flag", "default", "meaning"}, rows)
	b.WriteString("## The process\n\n")
	rows = nil
	for _, e := range process {
		rows = append(rows, []string{code(e.Env...), code(e.Flag), code(e.Default), e.Help})
	}
	table(&b, []string{"environment", "flag", "default", "meaning"}, rows)
	b.WriteString(`The clients of AWS honour what the AWS SDK does, such as ` + "`AWS_ENDPOINT_URL`" + `.

## The log

The ConfigMap ` + "`config-logging`" + ` is followed live as well:

| key | meaning |
|---|---|
| ` + "`loglevel.controller`" + ` | debug, info, warn or error; beats the level below |
| ` + "`zap-logger-config`" + ` | JSON, of which ` + "`level` and `encoding`" + ` (console or json) are used |

A line of the console is time, level, logger, message and the rest as JSON, separated by tabs. With json each line is an
object with ` + "`level`, `time`, `logger`, `message`" + ` and the rest. What stays as it was is not said again.
`)
	return b.String()
}
