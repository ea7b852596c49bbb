package chart

import (
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"karpenter/sim/rig/record"
)

var start = time.Date(2030, 1, 7, 0, 0, 0, 0, time.UTC)

// run is a record of so many hours, with a bit of everything.
func run(name string, hours int) Run {
	r := &record.Report{Total: record.Slot{Start: start}, End: start.Add(time.Duration(hours) * time.Hour)}
	for i := range hours * int(time.Hour/record.Width) {
		s := record.Slot{Start: start.Add(time.Duration(i) * record.Width), OnDemand: time.Duration(i%7) * record.Width, Spot: record.Width, Pending: time.Minute, Launched: 1}
		if i%12 == 0 {
			s.Disrupted = map[string]int{"consolidation": 1 + i%5, record.Interruption: 1}
			r.Hours = append(r.Hours, record.Slot{Start: s.Start})
		}
		r.Slots = append(r.Slots, s)
		r.Hours[len(r.Hours)-1].Add(&s)
		r.Total.Add(&s)
	}
	return Run{name, r}
}

// wellFormed reads a document to its end.
func wellFormed(text string) error {
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func TestDrawingsStandAlone(t *testing.T) {
	address := regexp.MustCompile(`(?i)(href|src|url\(|@import|<script|https?://[^w]|\son[a-z]+=)`)
	for name, text := range map[string]string{
		"one run": SVG("a <day>", run("a & b", 24)), "two of a week": SVG("a <week>", run("before", 168), run("after", 168)),
		"an hour": SVG("a <hour>", run("x", 1)), "nothing happened": SVG("a <nothing>", Run{"idle", &record.Report{Total: record.Slot{Start: start}, End: start.Add(time.Hour), Slots: []record.Slot{{Start: start}}}}),
	} {
		if err := wellFormed(text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if found := address.FindString(text); found != "" {
			t.Errorf("%s: holds %q: a drawing needs nothing from elsewhere, and runs nothing", name, found)
		}
		for _, part := range []string{`role="img"`, `aria-labelledby="chart-title chart-desc"`, "<title id=\"chart-title\">a &lt;", "<desc id=\"chart-desc\">Four panels", "prefers-color-scheme:dark"} {
			if !strings.Contains(text, part) {
				t.Errorf("%s: lacks %s", name, part)
			}
		}
		if strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
			t.Errorf("%s: draws what is no number", name)
		}
	}
}

func TestTheSameRecordsGiveTheSameBytes(t *testing.T) {
	page := func() string {
		runs := []Run{run("before", 48), run("after", 48)}
		return Page("t", []Table{Totals(runs...), Hourly(runs[1])}, runs...)
	}
	if first, second := page(), page(); first != second {
		t.Error("two pages differ")
	}
}

// A line is where its numbers are.
func TestLinesAreToScale(t *testing.T) {
	r := run("x", 1)
	for i := range r.Slots {
		r.Slots[i].Pending = 0
	}
	r.Slots[6].Pending = 4 * record.Width // four pods, for the seventh of twelve slots
	svg := SVG("t", r)
	if want := `d="M0 120H500V0H583.3V120H1000"`; !strings.Contains(svg, want) {
		t.Errorf("the pods that wait are not drawn as %s", want)
	}
}

func TestScale(t *testing.T) {
	for most, want := range map[float64][2]float64{0: {1, 1}, 4: {4, 1}, 4.1: {6, 2}, 0.3: {0.3, 0.1}, 130: {150, 50}} {
		top, step := scale(most)
		if d := top - want[0]; d > 1e-9 || d < -1e-9 || step-want[1] > 1e-9 || want[1]-step > 1e-9 {
			t.Errorf("%v: top %v in steps of %v, want %v", most, top, step, want)
		}
	}
}

func TestTotalsCompare(t *testing.T) {
	before, after := run("before", 2), run("after", 1)
	table := Totals(before, after)
	rows := map[string][]string{}
	for _, r := range table.Rows {
		rows[r[0]] = r[1:]
	}
	if got := rows["machine hours spot"]; got[0] != "2.0" || got[1] != "1.0" {
		t.Errorf("machine hours on spot: %v, want 2.0 and 1.0", got)
	}
	if got := rows["by "+record.Interruption]; got[0] != "2" || got[1] != "1" {
		t.Errorf("disrupted by interruption: %v, want 2 and 1", got)
	}
	if _, drift := rows["by drift"]; drift {
		t.Error("nothing drifted, and there is a row for it")
	}
}
