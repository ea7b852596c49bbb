package chart

import (
	"fmt"
	"html"
	"maps"
	"slices"
	"strings"
	"time"

	"karpenter/sim/rig/record"
)

// colours are the reasons that have one of their own.
var colours = []string{"consolidation", "emptiness", "expiration", "drift", record.Interruption}

func colour(reason string) string {
	if slices.Contains(colours, reason) {
		return reason
	}
	return "other"
}

// mostBars is how many bars are beside each other at most.
const mostBars = 170

// disruptions draws pods that had to leave their machine: a bar per hour, or per
// few hours; by reason, or by run if there are two.
func (d *drawing) disruptions() {
	several := max(1, (int(d.length().Hours())+mostBars-1)/mostBars)
	var bars [][]record.Slot
	most := 0
	reasons := map[string]bool{}
	for _, r := range d.runs {
		var list []record.Slot
		for group := range slices.Chunk(r.Hours, several) {
			sum := record.Slot{Start: group[0].Start}
			for i := range group {
				sum.Add(&group[i])
			}
			most = max(most, sum.Disruptions())
			list = append(list, sum)
			for why := range sum.Disrupted {
				reasons[why] = true
			}
		}
		bars = append(bars, list)
	}
	top, step := scale(float64(most))
	title := "Pods disrupted per hour"
	if several > 1 {
		title = fmt.Sprintf("Pods disrupted per %d hours", several)
	}
	if most == 0 {
		title += ": none"
	}
	d.frame(title, "%.4g", top, max(step, 1))
	width := 100 / (d.length().Hours() / float64(several))
	for i, list := range bars {
		for k := range list {
			d.bar(&list[k], i, float64(k)*width, width, top)
		}
	}
	d.out.WriteString("</svg>\n")
	if len(d.runs) == 1 {
		d.reasons(slices.Sorted(maps.Keys(reasons)))
	}
}

// bar draws one, at a place in hundredths of the width.
func (d *drawing) bar(s *record.Slot, run int, x, width, top float64) {
	if s.Disruptions() == 0 {
		return
	}
	thick := width * 0.8 / float64(len(d.runs))
	fmt.Fprintf(&d.out, "<g><title>%s</title>", html.EscapeString(d.runs[run].Name+", "+s.Start.UTC().Format("Mon 02 15:04")+": "+Reasons(s)))
	y := float64(plotHigh)
	for _, why := range slices.Sorted(maps.Keys(s.Disrupted)) {
		high := plotHigh * float64(s.Disrupted[why]) / top
		y -= high
		paint := fmt.Sprintf("fill=\"var(--%s)\"", colour(why))
		if len(d.runs) > 1 {
			paint = fmt.Sprintf("class=\"f%d\"", run)
		}
		fmt.Fprintf(&d.out, "<rect %s x=\"%.2f%%\" y=\"%s\" width=\"%.2f%%\" height=\"%s\"/>", paint, x+width*0.1+thick*float64(run), number(y), thick, number(high))
	}
	d.out.WriteString("</g>\n")
}

// reasons explains the colours of bars.
func (d *drawing) reasons(list []string) {
	for i, why := range list {
		x := 4 + i*92/max(len(list), 3)
		fmt.Fprintf(&d.out, "<rect fill=\"var(--%s)\" x=\"%d%%\" y=\"%d\" width=\"10\" height=\"10\"/><text class=\"faint\" x=\"%d%%\" dx=\"14\" y=\"%d\">%s</text>\n",
			colour(why), x, panelHigh-14, x, panelHigh-5, html.EscapeString(why))
	}
}

// Reasons lists why pods were disturbed, with numbers.
func Reasons(s *record.Slot) string {
	var parts []string
	for _, why := range slices.Sorted(maps.Keys(s.Disrupted)) {
		parts = append(parts, fmt.Sprintf("%d by %s", s.Disrupted[why], why))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// page around the drawing.
const pageStyle = `
:root{color-scheme:light dark}body{margin:0 auto;max-width:1600px;padding:8px;font:14px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif;background:Canvas;color:CanvasText}
.wide{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums}caption{text-align:left;font-weight:600;padding:8px 0}
th,td{padding:2px 10px;text-align:right;border-bottom:1px solid GrayText;white-space:nowrap}th:first-child{text-align:left}
`

// Page is an HTML page with the drawing and tables. Head and rows of them are
// what people read on a terminal as well.
func Page(title string, tables []Table, runs ...Run) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>%s</title><style>%s</style></head>\n<body>\n",
		html.EscapeString(title), pageStyle)
	b.WriteString("<main>\n" + SVG(title, runs...))
	for _, t := range tables {
		fmt.Fprintf(&b, "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=%q><table><caption>%s</caption>\n<thead><tr>", html.EscapeString(t.Caption), html.EscapeString(t.Caption))
		for _, h := range t.Head {
			fmt.Fprintf(&b, "<th scope=\"col\">%s</th>", html.EscapeString(h))
		}
		b.WriteString("</tr></thead>\n<tbody>\n")
		for _, row := range t.Rows {
			fmt.Fprintf(&b, "<tr><th scope=\"row\">%s</th>", html.EscapeString(row[0]))
			for _, cell := range row[1:] {
				fmt.Fprintf(&b, "<td>%s</td>", html.EscapeString(cell))
			}
			b.WriteString("</tr>\n")
		}
		b.WriteString("</tbody></table></div>\n")
	}
	b.WriteString("</main>\n</body></html>\n")
	return b.String()
}

// Table is one of a page or a terminal; the first cell of a row is its name.
type Table struct {
	Caption string
	Head    []string
	Rows    [][]string
}

// Totals compares runs in a few numbers.
func Totals(runs ...Run) Table {
	t := Table{Caption: "Totals", Head: []string{""}}
	rows := []struct {
		name  string
		value func(Run) string
	}{
		{"cost, $", func(r Run) string { return fmt.Sprintf("%.2f", r.Total.USD()) }},
		{"cost per hour, $", func(r Run) string { return fmt.Sprintf("%.4f", r.Total.USD()/r.Length().Hours()) }},
		{"÷ the same pods on an empty cluster", func(r Run) string { return ratio(&r.Total, r.Length()) }},
		{"machine hours on demand", func(r Run) string { return fmt.Sprintf("%.1f", r.Total.OnDemand.Hours()) }},
		{"machine hours spot", func(r Run) string { return fmt.Sprintf("%.1f", r.Total.Spot.Hours()) }},
		{"machines launched", func(r Run) string { return fmt.Sprint(r.Total.Launched) }},
		{"pods", func(r Run) string { return fmt.Sprint(r.Waited().Pods) }},
		{"pending seconds, all pods", func(r Run) string { return fmt.Sprintf("%.0f", r.Total.Pending.Seconds()) }},
		{"pending seconds per pod: mean", func(r Run) string { return fmt.Sprintf("%.1f", r.Waited().Mean) }},
		{"median", func(r Run) string { return fmt.Sprintf("%.1f", r.Waited().Median) }},
		{"95 of 100 at most", func(r Run) string { return fmt.Sprintf("%.1f", r.Waited().P95) }},
		{"most", func(r Run) string { return fmt.Sprintf("%.1f", r.Waited().Most) }},
		{"pods disrupted", func(r Run) string { return fmt.Sprint(r.Total.Disruptions()) }},
		{"per pod", func(r Run) string {
			return fmt.Sprintf("%.4f", float64(r.Total.Disruptions())/float64(max(1, r.Waited().Pods)))
		}},
	}
	for _, why := range append(slices.Clone(colours), record.Deletion, record.Loss) {
		if slices.ContainsFunc(runs, func(r Run) bool { return r.Total.Disrupted[why] > 0 }) {
			rows = append(rows, struct {
				name  string
				value func(Run) string
			}{"by " + why, func(r Run) string { return fmt.Sprint(r.Total.Disrupted[why]) }})
		}
	}
	for _, r := range runs {
		t.Head = append(t.Head, r.Name)
	}
	for _, row := range rows {
		cells := []string{row.name}
		for _, r := range runs {
			cells = append(cells, row.value(r))
		}
		t.Rows = append(t.Rows, cells)
	}
	return t
}

// Hourly is a run hour by hour.
func Hourly(r Run) Table {
	t := Table{Caption: "Hour by hour: " + r.Name, Head: []string{"hour", "$", "÷ empty", "on demand", "spot", "launched", "pending s", "disrupted", "why"}}
	for i := range r.Hours {
		h := &r.Hours[i]
		width := min(time.Hour, r.End.Sub(h.Start))
		why := ""
		if h.Disruptions() > 0 {
			why = Reasons(h)
		}
		t.Rows = append(t.Rows, []string{h.Start.UTC().Format("Mon 02 15:04"), fmt.Sprintf("%.4f", h.USD()), ratio(h, width),
			fmt.Sprintf("%.1f", float64(h.OnDemand)/float64(width)), fmt.Sprintf("%.1f", float64(h.Spot)/float64(width)),
			fmt.Sprint(h.Launched), fmt.Sprintf("%.0f", h.Pending.Seconds()), fmt.Sprint(h.Disruptions()), why})
	}
	return t
}

// ratio of what was paid to what the same pods would cost on an empty cluster.
func ratio(s *record.Slot, width time.Duration) string {
	if v, ok := s.Ratio(width); ok {
		return fmt.Sprintf("%.3f", v)
	}
	return "–"
}
