package admission

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	karpv1 "karpenter/api/v1"
)

var (
	policies = []karpv1.ConsolidationPolicy{karpv1.ConsolidationWhenEmpty, karpv1.ConsolidationWhenEmptyOrUnderutilized, karpv1.ConsolidationBalanced}
	reasons  = []karpv1.DisruptionReason{karpv1.ReasonUnderutilized, karpv1.ReasonEmpty, karpv1.ReasonDrifted}

	budgetNodes    = regexp.MustCompile(`^((100|[0-9]{1,2})%|[0-9]{1,9})$`)
	budgetDuration = regexp.MustCompile(`^([0-9]+h([0-9]+m)?|[0-9]+m)(0s)?$`)
	spans          = regexp.MustCompile(`^([0-9]+[smh])+$`)
)

const mostBudgets = 50

func disruption(path *field.Path, d *karpv1.Disruption) field.ErrorList {
	errs := durationOrNever(path.Child("consolidateAfter"), d.ConsolidateAfter)
	if !slices.Contains(policies, d.ConsolidationPolicy) {
		errs = append(errs, field.NotSupported(path.Child("consolidationPolicy"), d.ConsolidationPolicy, policies))
	}
	errs = append(errs, most(path.Child("budgets"), len(d.Budgets), mostBudgets)...)
	for i := range d.Budgets {
		errs = append(errs, budget(path.Child("budgets").Index(i), &d.Budgets[i])...)
	}
	return errs
}

func budget(path *field.Path, b *karpv1.Budget) field.ErrorList {
	var errs field.ErrorList
	for i, r := range b.Reasons {
		at := path.Child("reasons").Index(i)
		if !slices.Contains(reasons, r) {
			errs = append(errs, field.NotSupported(at, r, reasons))
		}
		if slices.Index(b.Reasons, r) < i {
			errs = append(errs, field.Duplicate(at, r))
		}
	}
	if !budgetNodes.MatchString(b.Nodes) {
		errs = append(errs, field.Invalid(path.Child("nodes"), b.Nodes, "must be a number of nodes, or a percentage from 0% to 100%"))
	}
	if (b.Schedule == nil) != (b.Duration == nil) {
		errs = append(errs, field.Invalid(path, b.Nodes, "schedule and duration belong together: set both, or neither for a budget that always holds"))
	}
	if s := b.Schedule; s != nil {
		errs = append(errs, schedule(path.Child("schedule"), string(*s))...)
	}
	if d := b.Duration; d != nil && (!budgetDuration.MatchString(*d) || !parses(*d)) {
		errs = append(errs, field.Invalid(path.Child("duration"), *d, "must be a duration in hours and minutes, such as 8h or 1h30m"))
	}
	return errs
}

// durationOrNever checks a length of time, or Never.
func durationOrNever(path *field.Path, d karpv1.DurationOrNever) field.ErrorList {
	if d == karpv1.Never || spans.MatchString(string(d)) && parses(string(d)) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, d, "must be a duration in hours, minutes and seconds, such as 1h30m, or Never")}
}

func duration(path *field.Path, d karpv1.Duration) field.ErrorList {
	if spans.MatchString(string(d)) && parses(string(d)) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, d, "must be a duration in hours, minutes and seconds, such as 1h30m")}
}

const longestDuration = 32

// parses reports whether the text is a duration that is not beyond every number.
func parses(text string) bool {
	_, err := time.ParseDuration(text)
	return err == nil && len(text) <= longestDuration
}

// cronFields are what each field of a schedule may name.
var cronFields = []string{
	`[0-5]?[0-9]`, `[01]?[0-9]|2[0-3]`, `0?[1-9]|[12][0-9]|3[01]`,
	`0?[1-9]|1[0-2]|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec`, `[0-6]|sun|mon|tue|wed|thu|fri|sat`,
}

var (
	cron     = cronForm()
	cronName = strings.NewReplacer("jan", "1", "feb", "2", "mar", "3", "apr", "4", "may", "5", "jun", "6", "jul", "7", "aug", "8", "sep", "9", "oct", "10", "nov", "11", "dec", "12",
		"sun", "0", "mon", "1", "tue", "2", "wed", "3", "thu", "4", "fri", "5", "sat", "6")
	cronRange = regexp.MustCompile(`([0-9]+)-([0-9]+)`)
)

func cronForm() *regexp.Regexp {
	var fields []string
	for _, values := range cronFields {
		item := `([*?]|(` + values + `)(-(` + values + `))?)(/[1-9][0-9]?)?`
		fields = append(fields, item+`(,`+item+`)*`)
	}
	return regexp.MustCompile(`^(@(annually|yearly|monthly|weekly|daily|midnight|hourly)|` + strings.Join(fields, ` +`) + `)$`)
}

const longestSchedule = 100

// schedule checks the form of a schedule, and that no range runs backwards.
func schedule(path *field.Path, text string) field.ErrorList {
	if len(text) > longestSchedule {
		return field.ErrorList{field.TooLong(path, text, longestSchedule)}
	}
	lower := strings.Map(lowerASCII, text)
	if !cron.MatchString(lower) {
		return field.ErrorList{field.Invalid(path, text, "must be five cron fields (minute 0-59, hour 0-23, day 1-31, month 1-12 or jan-dec, weekday 0-6 or sun-sat), "+
			"or @yearly, @monthly, @weekly, @daily or @hourly")}
	}
	for _, r := range cronRange.FindAllStringSubmatch(cronName.Replace(lower), -1) {
		from, _ := strconv.Atoi(r[1]) // two digits at most
		to, _ := strconv.Atoi(r[2])
		if from > to {
			return field.ErrorList{field.Invalid(path, text, "has a range that runs backwards; write it as two, such as 0,6 for the weekend")}
		}
	}
	return nil
}

// lowerASCII leaves other letters alone, some of which have a plain one as
// their lower case.
func lowerASCII(r rune) rune {
	if r >= 'A' && r <= 'Z' {
		return r + 'a' - 'A'
	}
	return r
}
