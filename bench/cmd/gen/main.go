// Command gen makes a problem of our own of one that bench/schedbench made: its
// nodes and pods are shared out among many pools, and some of the pods are made
// impossible. With -classes and -types it makes one of which both can be chosen.
//
//	gen -i existing.json -pools 20 -impossible 3 -o many.json
//	gen -i mixed.json -classes 100 -types 400 -o cut.json
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// problem is what gen changes of a problem; the rest is passed on.
type problem struct {
	rest  map[string]json.RawMessage
	types []json.RawMessage
	pool  map[string]any
	more  []map[string]any
	nodes []map[string]any
	pods  []corev1.Pod
}

func main() {
	in := flag.String("i", "", "problem to begin with")
	out := flag.String("o", "", "problem to write")
	pools := flag.Int("pools", 0, "share nodes and pods out among so many pools")
	impossible := flag.Int("impossible", 0, "make every such pod impossible")
	classes := flag.Int("classes", 0, "give the pods so many different sizes")
	types := flag.Int("types", 0, "keep so many instance types, from all over the list")
	flag.Parse()
	if err := run(*in, *out, *pools, *impossible, *classes, *types); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(in, out string, pools, impossible, classes, types int) error {
	p, err := read(in)
	if err != nil {
		return fmt.Errorf("reading %s: %w", in, err)
	}
	if types > 0 {
		p.thin(types)
	}
	if classes > 0 {
		p.resize(classes)
	}
	if pools > 0 {
		p.divide(pools)
	}
	if impossible > 0 {
		p.spoil(impossible)
	}
	return p.write(out)
}

func read(path string) (*problem, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	p := &problem{}
	if err := json.Unmarshal(raw, &p.rest); err != nil {
		return nil, err
	}
	for key, into := range map[string]any{"instanceTypes": &p.types, "nodePool": &p.pool, "nodes": &p.nodes, "pods": &p.pods} {
		if part, ok := p.rest[key]; ok {
			if err := json.Unmarshal(part, into); err != nil {
				return nil, fmt.Errorf("%s: %w", key, err)
			}
		}
	}
	return p, nil
}

func (p *problem) write(path string) error {
	for key, part := range map[string]any{"instanceTypes": p.types, "nodePool": p.pool, "morePools": p.more, "nodes": p.nodes, "pods": p.pods} {
		raw, err := json.Marshal(part)
		if err != nil {
			return err
		}
		p.rest[key] = raw
	}
	raw, err := json.Marshal(p.rest)
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(raw, '\n'), 0o644)
}

const team = "team"

// divide makes n pools of the one, each of a team, a quarter of them tainted for
// it. Nodes and deployments belong to the teams in turn; every fourth deployment
// does not choose.
func (p *problem) divide(n int) {
	all := make([]map[string]any, n)
	for i := range all {
		own := map[string]any{"name": name(i), "weight": i % 5, "labels": map[string]string{team: name(i)}, "requirements": p.pool["requirements"]}
		if i%4 == 0 {
			own["taints"] = []corev1.Taint{{Key: team, Value: name(i), Effect: corev1.TaintEffectNoSchedule}}
		}
		all[i] = own
	}
	p.pool, p.more = all[0], all[1:]
	for i := range p.nodes {
		if home := i % n; home > 0 { // those of the first pool name none
			p.nodes[i]["pool"] = name(home)
		}
	}
	number := map[string]int{}
	for i := range p.pods {
		pod := &p.pods[i]
		app := pod.Labels["app"]
		k, known := number[app]
		if !known {
			k = len(number)
			number[app] = k
		}
		if k%4 != 3 {
			choose(pod, team, name(k%n))
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{Key: team, Value: name(k % n)})
		}
	}
}

// spoil makes every nth pod impossible, in one of four ways: a team or a platform
// that nobody has, more than any machine holds, a pool that does not let it in.
func (p *problem) spoil(n int) {
	for i := 0; i < len(p.pods); i += n {
		switch pod := &p.pods[i]; i / n % 4 {
		case 0:
			choose(pod, team, "nobody")
		case 1:
			choose(pod, corev1.LabelArchStable, "riscv64")
		case 2:
			ask(pod, int64(1_000_000+i), 1<<30)
		default:
			choose(pod, team, name(0))
			pod.Spec.Tolerations = nil
		}
	}
}

// resize gives pods one of n sizes, whatever their deployment, which then neither
// choose a node nor have rules among them.
func (p *problem) resize(n int) {
	for i := range p.pods {
		pod, kind := &p.pods[i], int64(i%n)
		pod.Labels = nil
		pod.Spec.NodeSelector, pod.Spec.Affinity, pod.Spec.TopologySpreadConstraints = nil, nil, nil
		ask(pod, 100+3900*kind/int64(n), (256+kind*7919%8192)<<20)
		if kind%5 == 0 {
			choose(pod, "karpenter.sh/capacity-type", "on-demand")
		}
	}
}

// thin keeps n of the types.
func (p *problem) thin(n int) {
	var kept []json.RawMessage
	for i := range n {
		kept = append(kept, p.types[i*len(p.types)/n])
	}
	p.types = kept
}

func name(i int) string { return fmt.Sprintf("team-%02d", i) }

// choose adds to the pod's selector, which it may share with others.
func choose(pod *corev1.Pod, key, value string) {
	own := map[string]string{key: value}
	for k, v := range pod.Spec.NodeSelector {
		if k != key {
			own[k] = v
		}
	}
	pod.Spec.NodeSelector = own
}

func ask(pod *corev1.Pod, milliCPU, memory int64) {
	pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(milliCPU, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(memory, resource.BinarySI),
	}
}
