package catalog

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	"karpenter/internal/core/label"
)

// domain is the prefix of labels that describe instance types.
const domain = "karpenter.k8s.aws/"

// facts is what the labels of a type are made from.
type facts struct {
	*Row
	region string
	pods   int64
	name   typeName
	gpu    Accelerator // the only kind; zero if there is none or several
	chip   Accelerator // likewise, of inference and training chips
}

// labelTable has one line for each label of an instance type. A value reports
// false if types like this do not carry the label.
var labelTable = [...]struct {
	key   string
	value func(*facts) (string, bool)
}{
	{label.InstanceType, text(func(f *facts) string { return f.Name })},
	{label.Arch, text(func(f *facts) string { return arch(f.Arch) })},
	{label.OS, text(func(*facts) string { return "linux" })},
	{label.Region, known(func(f *facts) string { return f.region })},
	{domain + "instance-category", known(func(f *facts) string { return f.name.category })},
	{domain + "instance-generation", known(func(f *facts) string { return f.name.generation })},
	{domain + "instance-family", known(func(f *facts) string { return f.name.family })},
	{domain + "instance-size", known(func(f *facts) string { return f.name.size })},
	{domain + "instance-hypervisor", text(func(f *facts) string { return f.Hypervisor })},
	{domain + "instance-encryption-in-transit-supported", text(func(f *facts) string { return strconv.FormatBool(f.EncryptionInTransit) })},
	{domain + "instance-capability-flex", text(func(f *facts) string { return strconv.FormatBool(strings.HasSuffix(f.name.family, "-flex")) })},
	{domain + "instance-cpu", number(func(f *facts) int64 { return f.VCPU })},
	{domain + "instance-cpu-manufacturer", known(func(f *facts) string { return word(f.CPUManufacturer) })},
	{domain + "instance-cpu-sustained-clock-speed-mhz", positive(func(f *facts) int64 { return f.SustainedGHzMilli })},
	{domain + "instance-memory", number(func(f *facts) int64 { return f.MemoryMiB })},
	{domain + "instance-pods", number(func(f *facts) int64 { return f.pods })},
	{domain + "instance-ebs-bandwidth", positive(func(f *facts) int64 { return f.EBSMbps })},
	{domain + "instance-network-bandwidth", positive(func(f *facts) int64 { return f.NetworkMbps })},
	{domain + "instance-local-nvme", positive(func(f *facts) int64 { return f.LocalNVMeGB })},
	{domain + "instance-gpu-name", known(func(f *facts) string { return word(f.gpu.Name) })},
	{domain + "instance-gpu-manufacturer", known(func(f *facts) string { return word(f.gpu.Manufacturer) })},
	{domain + "instance-gpu-count", positive(func(f *facts) int64 { return f.gpu.Count })},
	{domain + "instance-gpu-memory", positive(func(f *facts) int64 { return f.gpu.MemoryMiB })},
	{domain + "instance-accelerator-name", known(func(f *facts) string { return word(f.chip.Name) })},
	{domain + "instance-accelerator-manufacturer", known(func(f *facts) string { return word(f.chip.Manufacturer) })},
	{domain + "instance-accelerator-count", positive(func(f *facts) int64 { return f.chip.Count })},
}

func labelsOf(r *Row, region string, pods int64) map[string]string {
	f := facts{Row: r, region: region, pods: pods, name: parseName(r.Name), gpu: only(r.GPUs), chip: only(r.Neuron)}
	if f.chip.Count > 0 && f.chip.Manufacturer == "" {
		f.chip.Manufacturer = "AWS" // EC2 names only the makers of other chips
	}
	out := make(map[string]string, len(labelTable))
	for i := range labelTable {
		if v, ok := labelTable[i].value(&f); ok {
			out[labelTable[i].key] = v
		}
	}
	if r.Stated != nil {
		maps.Copy(out, r.Stated.Labels)
	}
	return out
}

// text is a label that every type carries.
func text(get func(*facts) string) func(*facts) (string, bool) {
	return func(f *facts) (string, bool) { return get(f), true }
}

// known is a label that is absent where its value is empty.
func known(get func(*facts) string) func(*facts) (string, bool) {
	return func(f *facts) (string, bool) { v := get(f); return v, v != "" }
}

// number is a label that every type carries.
func number(get func(*facts) int64) func(*facts) (string, bool) {
	return func(f *facts) (string, bool) { return strconv.FormatInt(get(f), 10), true }
}

// positive is a label that is absent where its value is 0.
func positive(get func(*facts) int64) func(*facts) (string, bool) {
	return func(f *facts) (string, bool) { n := get(f); return strconv.FormatInt(n, 10), n > 0 }
}

// arch translates EC2's list of architectures. A list without a known one is
// kept as it is; no node asks for that.
func arch(list []string) string {
	for _, a := range list {
		switch a {
		case "x86_64":
			return "amd64"
		case "arm64":
			return "arm64"
		}
	}
	return fmt.Sprint(list)
}

// only returns the single kind of a list, or nothing.
func only(list []Accelerator) Accelerator {
	if len(list) != 1 {
		return Accelerator{}
	}
	return list[0]
}

// word makes a label value of a name.
func word(s string) string { return strings.ReplaceAll(strings.ToLower(s), " ", "-") }

// typeName is an instance type's name taken apart: m6a.xlarge is category m,
// generation 6, family m6a, size xlarge; u-6tb1.metal is category u,
// generation 1. What does not follow the pattern has parts that are empty.
type typeName struct{ category, generation, family, size string }

func parseName(name string) typeName {
	family, size, ok := strings.Cut(name, ".")
	if !ok {
		return typeName{}
	}
	n := typeName{family: family, size: size}
	category := leading(family, 'a', 'z')
	rest := family[len(category):]
	if after, ok := strings.CutPrefix(rest, "-"); ok {
		digits := leading(after, '0', '9')
		if after, ok := strings.CutPrefix(after[len(digits):], "tb"); ok && digits != "" {
			rest = after
		}
	}
	if g := leading(rest, '0', '9'); category != "" && g != "" {
		n.category, n.generation = category, g
	}
	return n
}

// leading returns the longest prefix of s whose bytes are from lo to hi.
func leading(s string, lo, hi byte) string {
	i := 0
	for i < len(s) && s[i] >= lo && s[i] <= hi {
		i++
	}
	return s[:i]
}
