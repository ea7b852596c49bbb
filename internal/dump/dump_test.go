package dump_test

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"karpenter/internal/core/label"
	"karpenter/internal/core/schedule"
	"karpenter/internal/core/world"
	"karpenter/internal/dump"
	"karpenter/internal/scenario"
)

var now = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

const pools = `
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: default}
spec:
  role: nodes
  amiSelectorTerms: [{alias: al2023@latest}]
  subnetSelectorTerms: [{tags: {team: secret-team}}]
  securityGroupSelectorTerms: [{tags: {team: secret-team}}]
  userData: "echo secret-user-data"
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: secret-pool}
spec:
  template:
    metadata:
      labels: {secret-key: secret-value}
      annotations: {secret-annotation: secret-annotation-value}
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements:
      - {key: karpenter.sh/capacity-type, operator: In, values: [spot, on-demand]}
      - {key: kubernetes.io/arch, operator: In, values: [amd64]}
  disruption: {consolidationPolicy: WhenEmptyOrUnderutilized, consolidateAfter: 30s}
`

// cluster is a moment with so many pods, of which four in five run on machines
// that were planned for them.
func cluster(t testing.TB, pods int) *dump.Dump {
	text := pools
	const kinds = 40
	for i := range kinds {
		spread := ""
		if i%4 == 0 {
			spread = fmt.Sprintf("topologySpreadConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: secret-%d}}}]", i)
		}
		text += fmt.Sprintf(`
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: secret-%d, namespace: secret-space}
spec:
  replicas: %d
  selector: {matchLabels: {app: secret-%d}}
  template:
    metadata: {labels: {app: secret-%d}}
    spec:
      %s
      containers:
      - name: c
        env: [{name: SECRET, value: secret-environment}]
        resources: {requests: {cpu: "%dm", memory: "%dMi"}}
`, i, pods/kinds, i, i, spread, 100+150*(i%9), 128+300*(i%7))
	}
	m, err := scenario.Read([]string{"-"}, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	s, err := m.Snapshot(scenario.Place{Region: "us-west-2"})
	if err != nil {
		t.Fatal(err)
	}
	all := map[world.ObjectName]world.Pod{}
	for _, p := range s.Pending {
		all[p.ObjectName] = p
	}
	runs := *s
	runs.Pending = s.Pending[:pods*4/5]
	bound := map[world.ObjectName]bool{}
	types := map[string]world.InstanceType{}
	for _, c := range s.Catalogs {
		for _, k := range c.Types {
			types[k.Name] = k
		}
	}
	var records []world.Record
	for i, machine := range func() []schedule.Machine { p := schedule.Solve(&runs, schedule.Options{}); return p.Machines }() {
		o := machine.Options[0]
		n := world.Node{Name: fmt.Sprintf("secret-node-%d", i), Claim: fmt.Sprintf("secret-claim-%d", i), Pool: machine.Pool, PoolKind: machine.PoolKind,
			ProviderID: fmt.Sprintf("aws:///secret/%d", i), Labels: map[string]string{}, Annotations: map[string]string{"karpenter.sh/launch-request": "secret-launch"},
			Allocatable: types[o.Type].Allocatable, Capacity: types[o.Type].Capacity, Created: now.Add(-time.Hour), Joined: true, Ready: true, Registered: true, Initialized: true}
		for k, v := range types[o.Type].Labels {
			n.Labels[k] = v
		}
		for k, v := range machine.Labels {
			n.Labels[k] = v
		}
		n.Labels[label.Hostname], n.Labels[label.Zone], n.Labels[label.CapacityType] = n.Name, o.Zone, o.CapacityType
		for j, name := range machine.Pods {
			bound[name] = true
			if j%3 == 0 { // it has gone since
				continue
			}
			p := all[name]
			p.Node = n.Name
			n.Pods = append(n.Pods, p)
		}
		s.Nodes = append(s.Nodes, n)
		records = append(records, world.Record{Name: n.Claim, Token: "secret-token", Pool: machine.Pool, NodeName: n.Name, LaunchRequest: "secret-request",
			Annotations: map[string]string{"karpenter.sh/launch-request": "secret-launch"}, Class: world.ClassRef{Inline: "secret-inline"}, Created: now.Add(-time.Hour)})
	}
	var pending []world.Pod
	for _, p := range s.Pending {
		if !bound[p.ObjectName] {
			pending = append(pending, p)
		}
	}
	s.Pending = pending
	world.SortNodes(s.Nodes)
	return dump.New("test", now, dump.Limits{WhatIfs: 100}, s, records, nil)
}

// replayed packs, unpacks and decides again.
func replayed(t testing.TB, d *dump.Dump) (*dump.Dump, dump.Answer, bool) {
	var file bytes.Buffer
	if err := d.Write(&file); err != nil {
		t.Fatal(err)
	}
	back, err := dump.Read(&file)
	if err != nil {
		t.Fatal(err)
	}
	a, same, err := back.Replay()
	if err != nil {
		t.Fatal(err)
	}
	return back, a, same
}

// TestReplay: what is decided from the file is what was decided in the process,
// byte for byte, for both kinds of decision.
func TestReplay(t *testing.T) {
	d := cluster(t, 5000)
	for _, kind := range []dump.Kind{dump.Schedule, dump.Disrupt} {
		if err := d.Record(kind, nil); err != nil {
			t.Fatal(err)
		}
		if n := len(d.Decision.Answer); n < 10_000 {
			t.Fatalf("%s: an answer of %d bytes shows nothing: %s", kind, n, d.Decision.Answer)
		}
		back, answer, same := replayed(t, d)
		if !same {
			t.Errorf("%s: not the same answer", kind)
		}
		if want, _ := d.Decide(kind); want.Text() != answer.Text() {
			t.Errorf("%s: not the same words", kind)
		}
		// And a decision that is another one is seen to be.
		back.Decision.Answer = bytes.Replace(back.Decision.Answer, []byte("secret-1"), []byte("secret-2"), 1)
		if _, same, _ := back.Replay(); same {
			t.Errorf("%s: a change went unnoticed", kind)
		}
	}
}

func TestNothingSecretLeaves(t *testing.T) {
	d := cluster(t, 200)
	var file bytes.Buffer
	if err := d.Write(&file); err != nil {
		t.Fatal(err)
	}
	back, err := dump.Read(&file)
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("%+v", back)
	for _, word := range []string{"secret-environment", "secret-user-data", "secret-launch", "secret-request", "secret-inline", "secret-annotation"} {
		if strings.Contains(text, word) {
			t.Errorf("the dump holds %q", word)
		}
	}
}

// TestHashNames: with other names a decision of the same shape comes out, and no
// name is left.
func TestHashNames(t *testing.T) {
	d := cluster(t, 400)
	for _, kind := range []dump.Kind{dump.Schedule, dump.Disrupt} {
		if err := d.Record(kind, nil); err != nil {
			t.Fatal(err)
		}
		hashed, err := d.HashNames("salt")
		if err != nil {
			t.Fatal(err)
		}
		_, answer, same := replayed(t, hashed)
		if !same {
			t.Errorf("%s: not the same answer", kind)
		}
		var file bytes.Buffer
		_ = hashed.Write(&file)
		plain, _ := dump.Read(&file)
		if text := fmt.Sprintf("%+v", plain) + answer.Text(); strings.Contains(text, "secret") {
			at := strings.Index(text, "secret")
			t.Errorf("%s: a name is left: …%s…", kind, text[max(0, at-60):at+60])
		}
		before, _ := d.Decide(kind)
		if a, b := firstLine(before.Text()), firstLine(answer.Text()); a != b {
			t.Errorf("%s: %q became %q", kind, a, b)
		}
	}
}

func firstLine(s string) string { line, _, _ := strings.Cut(s, "\n"); return line }

// TestHashReachesEveryName plants a name in every string of the types, so that a
// new field cannot be forgotten.
func TestHashReachesEveryName(t *testing.T) {
	var s world.Snapshot
	fill(reflect.ValueOf(&s).Elem(), 0)
	d := &dump.Dump{Snapshot: s, Records: make([]world.Record, 1)}
	fill(reflect.ValueOf(&d.Records[0]).Elem(), 0)
	hashed, err := d.HashNames("salt")
	if err != nil {
		t.Fatal(err)
	}
	left := map[string]bool{}
	find(reflect.ValueOf(hashed.Snapshot), "Snapshot", left)
	find(reflect.ValueOf(hashed.Records), "Record", left)
	for _, known := range []string{
		"Pool.Kind", "Owner.Kind", "ClassRef.Group", "ClassRef.Kind", "Node.PoolKind", "Record.PoolKind", "Node.Disruption", "HostPort.Protocol", "HostPort.IP",
		"Toleration.Op", "Toleration.Effect", "Taint.Effect", "Requirement.Op", "Condition.Status", "Condition.Reason", "Record.ImageID", "Pod.DeletionCost", "Attachment.Driver",
		"Amount.Name", "Budget.Nodes", "Budget.Reasons", "Budget.Schedule", "InstanceType.Name", "InstanceType.Labels", "Offering.Zone", "Offering.CapacityType", "Catalog.Region",
	} {
		delete(left, known)
	}
	for at := range left {
		t.Errorf("%s keeps its name", at)
	}
}

const planted = "planted"

func fill(v reflect.Value, depth int) {
	if depth > 12 || v.Type() == reflect.TypeFor[time.Time]() {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(planted)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), depth+1)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), depth+1)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth+1)
	case reflect.Map:
		k, e := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(k, depth+1)
		fill(e, depth+1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(k, e)
	}
}

func find(v reflect.Value, at string, left map[string]bool) {
	if v.Type() == reflect.TypeFor[time.Time]() {
		return
	}
	switch v.Kind() {
	case reflect.String:
		if strings.Contains(v.String(), planted) {
			left[at] = true
		}
	case reflect.Struct:
		for i := range v.NumField() {
			find(v.Field(i), v.Type().Name()+"."+v.Type().Field(i).Name, left)
		}
	case reflect.Slice:
		for i := range v.Len() {
			find(v.Index(i), at, left)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			find(v.Elem(), at, left)
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			find(k, at, left)
			find(v.MapIndex(k), at, left)
		}
	}
}

func TestUnreadable(t *testing.T) {
	for name, tt := range map[string]struct{ file, want string }{
		"another file": {"apiVersion: v1", "not a dump; make one with 'karpctl dump'"},
		"newer":        {`{"format":"karpenter.sh/dump","version":99}`, "use a newer karpctl"},
		"torn":         {"\x1f\x8b\x08", "damaged"},
	} {
		if _, err := dump.Read(strings.NewReader(tt.file)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func BenchmarkReplay(b *testing.B) {
	d := cluster(b, 5000)
	for _, kind := range []dump.Kind{dump.Schedule, dump.Disrupt} {
		if err := d.Record(kind, nil); err != nil {
			b.Fatal(err)
		}
		var file bytes.Buffer
		if err := d.Write(&file); err != nil {
			b.Fatal(err)
		}
		b.Run(string(kind), func(b *testing.B) {
			defer func() { b.ReportMetric(float64(file.Len())/1e6, "MB/file") }()
			for b.Loop() {
				back, err := dump.Read(bytes.NewReader(file.Bytes()))
				if err != nil {
					b.Fatal(err)
				}
				if _, same, err := back.Replay(); err != nil || !same {
					b.Fatal(same, err)
				}
			}
		})
	}
}
