package rig

import (
	"regexp"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Boot is what user data tells a machine's kubelet, as far as it shows on the
// Node.
type Boot struct {
	Labels  map[string]string
	Taints  []corev1.Taint
	MaxPods int64 // 0: not set
}

// What user data says, in the words of AL2 and AL2023 (kubelet flags), of
// AL2023's NodeConfig and of Bottlerocket's settings.
var (
	labelFlag  = regexp.MustCompile(`--node-labels[= ]"?([^\s"']+)`)
	taintFlag  = regexp.MustCompile(`--register-with-taints[= ]"?([^\s"']+)`)
	maxPods    = regexp.MustCompile(`(?:--max-pods[= ]|maxPods: |max-pods = )"?(\d+)`)
	tomlTable  = regexp.MustCompile(`^\[settings\.kubernetes\.node-(labels|taints)\]$`)
	tomlEntry  = regexp.MustCompile(`^["']?([^"'=\s]+)["']?\s*=\s*(.*)$`)
	tomlString = regexp.MustCompile(`["']([^"']*)["']`)
)

// ReadUserData reads user data.
func ReadUserData(text string) Boot {
	b := Boot{Labels: map[string]string{}}
	for _, m := range labelFlag.FindAllStringSubmatch(text, -1) {
		for _, pair := range strings.Split(m[1], ",") {
			if k, v, ok := strings.Cut(pair, "="); ok {
				b.Labels[k] = v
			}
		}
	}
	for _, m := range taintFlag.FindAllStringSubmatch(text, -1) {
		for _, one := range strings.Split(m[1], ",") {
			b.taint(one)
		}
	}
	if m := maxPods.FindStringSubmatch(text); m != nil {
		b.MaxPods, _ = strconv.ParseInt(m[1], 10, 32)
	}
	b.tables(text)
	return b
}

// taint reads key=value:effect.
func (b *Boot) taint(text string) {
	pair, effect, ok := strings.Cut(text, ":")
	if !ok {
		return
	}
	key, value, _ := strings.Cut(pair, "=")
	b.Taints = append(b.Taints, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)})
}

// tables reads labels and taints of Bottlerocket.
func (b *Boot) tables(text string) {
	table := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			table = ""
			if m := tomlTable.FindStringSubmatch(line); m != nil {
				table = m[1]
			}
			continue
		}
		m := tomlEntry.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		for _, v := range tomlString.FindAllStringSubmatch(m[2], -1) {
			if table == "labels" {
				b.Labels[m[1]] = v[1]
			}
			if table == "taints" {
				b.taint(m[1] + "=" + v[1])
			}
		}
	}
}
