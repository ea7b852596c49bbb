// Package chart draws what a world has cost, and whom it has disturbed, over
// time: as one SVG, or as a page that holds it beside a table.
//
// It imports the records only. What always holds: the drawing needs nothing from
// elsewhere and runs no script; text keeps its size while the drawing takes the
// width that there is; the same records give the same bytes.
package chart

import (
	"fmt"
	"html"
	"slices"
	"strings"
	"time"

	"karpenter/sim/rig/record"
)

// Run is one line of the drawing: a record under a name.
type Run struct {
	Name string
	*record.Report
}

// Sizes in pixels.
const (
	head      = 64  // above the first panel
	panelHigh = 190 // with its title and labels
	plotHigh  = 120
	plotTop   = 30
	plotLeft  = 56
)

// mostPoints is how many points a line has at most.
const mostPoints = 480

// style of the drawing; what is here is the light and the dark one, and what is
// left out where it is narrow.
const style = `
.chart{--paper:#fff;--ink:#1f2937;--faint:#6b7280;--grid:#e5e7eb;--r0:#1d4ed8;--r1:#c2410c;--ideal:#6b7280;
--consolidation:#1d4ed8;--emptiness:#0891b2;--expiration:#7c3aed;--drift:#047857;--interruption:#dc2626;--other:#6b7280;
font-family:system-ui,-apple-system,"Segoe UI",sans-serif;font-size:12px;color-scheme:light dark}
@media (prefers-color-scheme:dark){.chart{--paper:#111827;--ink:#e5e7eb;--faint:#9ca3af;--grid:#374151;--r0:#60a5fa;--r1:#fb923c;--ideal:#9ca3af;
--consolidation:#60a5fa;--emptiness:#22d3ee;--expiration:#a78bfa;--drift:#34d399;--interruption:#f87171;--other:#9ca3af}}
.chart text{fill:var(--ink)}.chart .faint{fill:var(--faint)}.chart .title{font-size:13px;font-weight:600}.chart .name{font-size:15px;font-weight:600}
.chart .paper{fill:var(--paper)}.chart .grid{stroke:var(--grid)}.chart .plot{width:calc(100% - 76px)}
.chart path{stroke-width:1.75;vector-effect:non-scaling-stroke;stroke-linejoin:round}
.chart .r0{stroke:var(--r0)}.chart .r1{stroke:var(--r1)}.chart .f0{fill:var(--r0)}.chart .f1{fill:var(--r1)}
.chart .dash{stroke-dasharray:5 4}.chart .ideal{stroke:var(--ideal);stroke-dasharray:2 3}
@media (max-width:700px){.chart .fine{display:none}}
`

// SVG draws one run, or two beside each other.
func SVG(title string, runs ...Run) string {
	d := &drawing{runs: runs}
	panels := []func(){d.cost, d.machines, d.pending, d.disruptions}
	fmt.Fprintf(&d.out, `<svg xmlns="http://www.w3.org/2000/svg" class="chart" width="100%%" height="%d" role="img" aria-labelledby="chart-title chart-desc">`, head+len(panels)*panelHigh)
	fmt.Fprintf(&d.out, "<title id=\"chart-title\">%s</title>\n<desc id=\"chart-desc\">%s</desc>\n", html.EscapeString(title), html.EscapeString(describe(runs)))
	fmt.Fprintf(&d.out, "<style>%s</style>\n<rect class=\"paper\" width=\"100%%\" height=\"100%%\"/>\n", style)
	fmt.Fprintf(&d.out, "<text class=\"name\" x=\"8\" y=\"22\">%s</text>\n", html.EscapeString(title))
	d.legend()
	for i, panel := range panels {
		fmt.Fprintf(&d.out, "<svg y=\"%d\" width=\"100%%\" height=\"%d\">\n", head+i*panelHigh, panelHigh)
		panel()
		d.out.WriteString("</svg>\n")
	}
	d.out.WriteString("</svg>\n")
	return d.out.String()
}

// describe says in words what the drawing shows.
func describe(runs []Run) string {
	var b strings.Builder
	b.WriteString("Four panels over time: cost in dollars per hour, machines by market, pods that wait, and disruptions of pods per hour.")
	for _, r := range runs {
		w, t := r.Waited(), &r.Total
		fmt.Fprintf(&b, " %s, %s: $%.2f, %.0f machine hours (%.0f of them spot), %d pods that waited %.0f s on average and %.0f s at most, %d disruptions.",
			r.Name, span(r.Length()), t.USD(), (t.OnDemand + t.Spot).Hours(), t.Spot.Hours(), w.Pods, w.Mean, w.Most, t.Disruptions())
	}
	return b.String()
}

func span(d time.Duration) string {
	if d >= 48*time.Hour && d%(24*time.Hour) == 0 {
		return fmt.Sprintf("%d days", d/(24*time.Hour))
	}
	return fmt.Sprintf("%.4g hours", d.Hours())
}

type drawing struct {
	runs []Run
	out  strings.Builder
}

// legend names the runs, one beside the other.
func (d *drawing) legend() {
	if len(d.runs) == 1 {
		return
	}
	for i, r := range d.runs {
		fmt.Fprintf(&d.out, "<rect class=\"f%d\" x=\"%d%%\" y=\"38\" width=\"12\" height=\"12\"/><text x=\"%d%%\" dx=\"18\" y=\"48\">%s</text>\n", i, 2+50*i, 2+50*i, html.EscapeString(r.Name))
	}
}

// length is that of the longest run.
func (d *drawing) length() (most time.Duration) {
	for _, r := range d.runs {
		most = max(most, r.Length())
	}
	return most
}

// line is a number per slot, in the order of time.
type line struct {
	class  string
	label  string
	values []float64
}

// lineOf takes a number of every slot, or of every few, so that there are no
// more than can be seen.
func lineOf(class, label string, r Run, value func(*record.Slot, time.Duration) float64) line {
	l := line{class: class, label: label}
	several := (len(r.Slots) + mostPoints - 1) / mostPoints
	for group := range slices.Chunk(r.Slots, max(several, 1)) {
		sum, width := record.Slot{Start: group[0].Start}, r.End.Sub(group[0].Start)
		for i := range group {
			sum.Add(&group[i])
		}
		l.values = append(l.values, value(&sum, min(width, time.Duration(len(group))*record.Width)))
	}
	return l
}

func (d *drawing) cost() {
	var lines []line
	for i, r := range d.runs {
		lines = append(lines, lineOf(fmt.Sprintf("r%d", i), r.Name, r, func(s *record.Slot, w time.Duration) float64 { return s.USD() / w.Hours() }))
	}
	ideal, known := d.ideal(d.runs[0])
	note := ""
	if known {
		lines, note = append(lines, ideal), "; dotted: on an empty cluster"
	}
	d.lines("Cost, $ per hour"+note, "$%.4g", lines)
}

// ideal is drawn where it is known, and as it was last where it is not.
func (d *drawing) ideal(r Run) (l line, known bool) {
	last := 0.0
	l = lineOf("ideal", "on an empty cluster", r, func(s *record.Slot, _ time.Duration) float64 {
		if usd, ok := s.Ideal(); ok {
			last, known = usd, true
		}
		return last
	})
	for i := 0; known && i < len(l.values) && l.values[i] == 0; i++ { // before the first sample
		l.values[i] = l.values[slices.IndexFunc(l.values, func(v float64) bool { return v != 0 })]
	}
	return l, known && last > 0
}

func (d *drawing) machines() {
	var lines []line
	spot := false
	for i, r := range d.runs {
		class := fmt.Sprintf("r%d", i)
		if r.Total.OnDemand > 0 || r.Total.Spot == 0 {
			lines = append(lines, lineOf(class, r.Name+", on demand", r, func(s *record.Slot, w time.Duration) float64 { return float64(s.OnDemand) / float64(w) }))
		}
		if r.Total.Spot > 0 {
			spot = true
			lines = append(lines, lineOf(class+" dash", r.Name+", spot", r, func(s *record.Slot, w time.Duration) float64 { return float64(s.Spot) / float64(w) }))
		}
	}
	title := "Machines, all on demand"
	if spot {
		title = "Machines; solid: on demand, dashed: spot"
	}
	d.lines(title, "%.4g", lines)
}

func (d *drawing) pending() {
	var lines []line
	for i, r := range d.runs {
		lines = append(lines, lineOf(fmt.Sprintf("r%d", i), r.Name, r, func(s *record.Slot, w time.Duration) float64 { return float64(s.Pending) / float64(w) }))
	}
	d.lines("Pods pending", "%.4g", lines)
}

// lines draws a panel of steps.
func (d *drawing) lines(title, format string, lines []line) {
	most := 0.0
	for _, l := range lines {
		most = max(most, slices.Max(append(l.values, 0)))
	}
	top, step := scale(most)
	d.frame(title, format, top, step)
	fmt.Fprintf(&d.out, "<svg viewBox=\"0 0 1000 %d\" preserveAspectRatio=\"none\" width=\"100%%\" height=\"%d\">\n", plotHigh, plotHigh)
	for _, l := range lines {
		n := max(len(l.values), 1)
		fmt.Fprintf(&d.out, "<path fill=\"none\" class=\"%s\" d=\"", l.class)
		for i, v := range l.values {
			y := number(plotHigh * (1 - v/top))
			if i == 0 {
				d.out.WriteString("M0 " + y)
			} else if v != l.values[i-1] {
				d.out.WriteString("V" + y)
			}
			if i+1 == n || l.values[i+1] != v {
				d.out.WriteString("H" + number(1000*float64(i+1)/float64(n)))
			}
		}
		fmt.Fprintf(&d.out, "\"><title>%s</title></path>\n", html.EscapeString(l.label))
	}
	d.out.WriteString("</svg>\n</svg>\n")
}

// number writes a place in the drawing, to a tenth.
func number(v float64) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0")
}

// frame draws title, grid and labels of a panel, and leaves its plot open.
func (d *drawing) frame(title, format string, top, step float64) {
	fmt.Fprintf(&d.out, "<text class=\"title\" x=\"8\" y=\"18\">%s</text>\n", html.EscapeString(title))
	for v := 0.0; v <= top*1.001; v += step {
		fmt.Fprintf(&d.out, "<text class=\"faint\" x=\"%d\" y=\"%s\" text-anchor=\"end\">%s</text>\n", plotLeft-6, number(plotTop+plotHigh*(1-v/top)+4), fmt.Sprintf(format, v))
	}
	fmt.Fprintf(&d.out, "<svg class=\"plot\" x=\"%d\" y=\"%d\" width=\"80%%\" height=\"%d\" overflow=\"visible\">\n", plotLeft, plotTop, panelHigh-plotTop)
	for v := 0.0; v <= top*1.001; v += step {
		y := number(plotHigh * (1 - v/top))
		fmt.Fprintf(&d.out, "<line class=\"grid\" x2=\"100%%\" y1=\"%s\" y2=\"%s\"/>\n", y, y)
	}
	d.clock()
}

// scale is the top of an axis that holds the value, and the distance of its
// lines.
func scale(most float64) (top, step float64) {
	if most <= 0 {
		return 1, 1
	}
	step = 1e-6
	for i := 0; step*4 < most; i++ {
		step *= []float64{2, 2.5, 2}[i%3]
	}
	for top = step; top < most; top += step {
	}
	return top, step
}

// clock labels the axis of time: few labels where it is narrow.
func (d *drawing) clock() {
	length, start := d.length(), d.runs[0].Total.Start.UTC()
	every, format := time.Duration(0), "15:04"
	for _, every = range []time.Duration{15 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour, 48 * time.Hour, 96 * time.Hour, 168 * time.Hour} {
		if length/every <= 9 {
			break
		}
	}
	if every >= 12*time.Hour {
		format = "Mon 02"
	}
	n := 0
	for at := start.Truncate(every); at.Sub(start) <= length; at = at.Add(every) {
		share := float64(at.Sub(start)) / float64(length)
		if share < 0 {
			continue
		}
		class := "faint"
		if n%2 == 1 {
			class += " fine"
		}
		anchor := "middle"
		if share > 0.97 {
			anchor = "end"
		}
		fmt.Fprintf(&d.out, "<text class=\"%s\" x=\"%s%%\" y=\"%d\" text-anchor=\"%s\">%s</text>\n", class, number(100*share), plotHigh+18, anchor, at.Format(format))
		n++
	}
}
