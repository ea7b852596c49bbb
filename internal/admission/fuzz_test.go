package admission

import (
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	admissiontest "karpenter/test/admission"
)

// FuzzCheck: no object, however broken, is answered with a panic, and every
// answer is the same twice.
func FuzzCheck(f *testing.F) {
	objects, err := admissiontest.All()
	if err != nil {
		f.Fatal(err)
	}
	for _, o := range objects {
		f.Add(o.YAML())
	}
	f.Fuzz(func(t *testing.T, object []byte) {
		first, second := Check(object), Check(object)
		if (first == nil) != (second == nil) || first != nil && first.Error() != second.Error() {
			t.Errorf("first: %v\nthen: %v", first, second)
		}
	})
}

// FuzzSchedule holds the form of a schedule to a reading of it field by field.
func FuzzSchedule(f *testing.F) {
	for _, s := range []string{"0 9 * * mon-fri", "*/15 0,12 1-15/2 JAN-mar ?", "0 0 * * sat-sun", "0 22-6 * * *", "@daily", "@Noon", "0 9 *", "60 * * * *", "0 0 31 12 6", "00 00 01 01 0", "5/10 * * * *", "*-5 * * * *", "1-2-3 * * * *", "0 0 * sep-nov tue,thu", "0 0 * 9-oct *", "1,,2 * * * *", "1/100 * * * *", "0  9 * * *", "0 0 * * ſun", "@wee\u212aly"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > longestSchedule {
			return
		}
		errs := schedule(field.NewPath("schedule"), text)
		if got, want := len(errs) == 0, readSchedule(strings.Map(lowerASCII, text)); got != want {
			t.Errorf("%q: accepted %v, read %v: %v", text, got, want, errs)
		}
	})
}

func readSchedule(text string) bool {
	if word, ok := strings.CutPrefix(text, "@"); ok {
		return strings.Contains("|annually|yearly|monthly|weekly|daily|midnight|hourly|", "|"+word+"|") && word != "" && !strings.Contains(word, "|")
	}
	if strings.HasPrefix(text, " ") || strings.HasSuffix(text, " ") {
		return false
	}
	parts := strings.FieldsFunc(text, func(r rune) bool { return r == ' ' })
	if len(parts) != 5 {
		return false
	}
	months := []string{"", "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}
	days := []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}
	return readField(parts[0], 0, 59, nil) && readField(parts[1], 0, 23, nil) && readField(parts[2], 1, 31, nil) &&
		readField(parts[3], 1, 12, months) && readField(parts[4], 0, 6, days)
}

func readField(text string, least, most int, names []string) bool {
	number := func(text string) (int, bool) {
		for i, name := range names {
			if name != "" && name == text {
				return i, true
			}
		}
		digits := 2
		if most < 10 {
			digits = 1
		}
		n, err := strconv.Atoi(text)
		return n, err == nil && n >= least && n <= most && len(text) <= digits && text[0] >= '0' && text[0] <= '9'
	}
	for _, item := range strings.Split(text, ",") {
		span, step, stepped := strings.Cut(item, "/")
		if n, err := strconv.Atoi(step); stepped && (err != nil || n < 1 || n > 99 || step[0] < '1' || step[0] > '9') {
			return false
		}
		if span == "*" || span == "?" {
			continue
		}
		from, to, ranged := strings.Cut(span, "-")
		a, ok := number(from)
		if !ok {
			return false
		}
		if b, ok := number(to); ranged && (!ok || b < a) {
			return false
		}
	}
	return true
}
