package settings

import (
	"errors"
	"flag"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func parse(t *testing.T, env map[string]string, args ...string) (Process, Settings, error) {
	t.Helper()
	fs := flag.NewFlagSet("karpenter", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	return Parse(fs, args, func(k string) (string, bool) { v, ok := env[k]; return v, ok })
}

func TestFlagBeatsEnvironmentBeatsDefault(t *testing.T) {
	env := map[string]string{"BATCH_MAX_DURATION": "30s", "BATCH_IDLE_DURATION": "2s", "CLUSTER_NAME": "blue", "METRICS_PORT": "0",
		"DISABLE_LEADER_ELECTION": "true", "AWS_DEFAULT_REGION": "eu-west-1", "AWS_REGION": "us-west-2", "KARPENTER_SERVICE": "x"}
	p, s, err := parse(t, env, "--batch-idle-duration=3s", "--health-probe-port", "9")
	if err != nil {
		t.Fatal(err)
	}
	wantP := DefaultProcess()
	wantP.MetricsPort, wantP.HealthPort, wantP.LeaderElect, wantP.Region = 0, 9, false, "us-west-2"
	wantP.Ignored = []string{"KARPENTER_SERVICE (there is no webhook)"}
	wantS := Default()
	wantS.BatchIdle, wantS.BatchMax, wantS.ClusterName = 3*time.Second, 30*time.Second, "blue"
	if d := cmp.Diff(wantP, p) + cmp.Diff(wantS, s); d != "" {
		t.Error(d)
	}
}

func TestBadValuesAreRefusedByName(t *testing.T) {
	for _, c := range []struct {
		env  map[string]string
		args []string
		want string
	}{
		{map[string]string{"BATCH_MAX_DURATION": "ten"}, nil, "BATCH_MAX_DURATION"},
		{map[string]string{"METRICS_PORT": "70000"}, nil, "METRICS_PORT"},
		{nil, []string{"--vm-memory-overhead-percent=-1"}, "vm-memory-overhead-percent"},
		{nil, []string{"--log-level=loud"}, "debug, info or error"},
		{nil, []string{"start"}, `unexpected argument "start"`},
	} {
		_, _, err := parse(t, c.env, c.args...)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v %v: error %v, want one with %q", c.env, c.args, err, c.want)
		}
	}
	if _, _, err := parse(t, nil, "-h"); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("-h: %v", err)
	}
}

func TestConfigMapKeys(t *testing.T) {
	base := Default()
	base.ClusterName = "from-env"
	got, unknown, err := base.Apply(map[string]string{
		"batchMaxDuration": "20s", "aws.clusterName": "blue", "clusterEndpoint": "https://api.example.com",
		"aws.tags.team": "a", "aws.tags.example.com/cost": "b", "aws.vmMemoryOverheadPercent": "0.05",
		"featureGates.driftEnabled": "true", "interruptionQueue": "q", "aws.nodeNameConvention": "resource-name",
		"packing.tieTolerance": "0.02", "machineCostPerHour": "0.004", "some.newKey": "1",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.ClusterName, want.ClusterEndpoint, want.InterruptionQueue = "blue", "https://api.example.com", "q"
	want.BatchMax, want.VMMemoryOverheadPercent, want.DriftEnabled = 20*time.Second, 0.05, true
	want.Tags = map[string]string{"team": "a", "example.com/cost": "b"}
	want.TieToleranceMicros, want.MachineCost = 20_000, 4000
	want.Ignored = []string{"aws.nodeNameConvention (nodes name themselves when they join)"}
	if d := cmp.Diff(want, got) + cmp.Diff([]string{"some.newKey"}, unknown); d != "" {
		t.Error(d)
	}
}

func TestBadConfigMapKeepsTheLastGoodSettings(t *testing.T) {
	base := Default()
	base.ClusterName = "blue"
	for _, c := range []struct{ key, value, want string }{
		{"batchIdleDuration", "0s", "greater than 0"},
		{"batchIdleDuration", "11s", "shorter than"},
		{"aws.clusterName", "", "must be set"},
		{"aws.clusterEndpoint", "example.com", "absolute URL"},
		{"aws.enablePodENI", "maybe", "true or false"},
		{"aws.vmMemoryOverheadPercent", "NaN", "0 or more"},
		{"aws.nodeNameConvention", "", "ip-name"},
	} {
		l := NewLive(base)
		if changed, _, err := l.Update(map[string]string{"aws.defaultInstanceProfile": "p"}); err != nil || !changed {
			t.Fatal(changed, err)
		}
		before := l.Get()
		_, _, err := l.Update(map[string]string{c.key: c.value})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.key) && c.want != "shorter than" {
			t.Errorf("%s=%q: error %v, want %q", c.key, c.value, err, c.want)
		}
		if d := cmp.Diff(before, l.Get()); d != "" {
			t.Error(d)
		}
	}
}

func TestDroppingTheConfigMapGoesBackToTheEnvironment(t *testing.T) {
	base := Default()
	base.ClusterName = "blue"
	l := NewLive(base)
	_, _, _ = l.Update(map[string]string{"batchMaxDuration": "1m"})
	changed, _, err := l.Update(nil)
	if err != nil || !changed || l.Get().BatchMax != 10*time.Second {
		t.Error(changed, err, l.Get().BatchMax)
	}
}

// TestTheClusterIsNotRenamedWhileRunning: what was bought carries the name.
func TestTheClusterIsNotRenamedWhileRunning(t *testing.T) {
	l := NewLive(Default())
	if _, _, err := l.Update(map[string]string{"aws.clusterName": "blue"}); err != nil || l.Get().ClusterName != "blue" {
		t.Fatalf("the first name: %v", err)
	}
	changed, _, err := l.Update(map[string]string{"aws.clusterName": "green", "batchIdleDuration": "2s"})
	if err == nil || changed || l.Get().ClusterName != "blue" || !strings.Contains(err.Error(), "aws.clusterName") {
		t.Errorf("renamed to %q: %v", l.Get().ClusterName, err)
	}
}

func TestFeatureGates(t *testing.T) {
	for text, want := range map[string]bool{"": false, "SpotToSpotConsolidation=true": true, "NodeRepair=true,SpotToSpotConsolidation=true,Other=false": true, "SpotToSpotConsolidation=false": false} {
		s := Default()
		if err := s.set("featureGates", text); err != nil || s.SpotToSpotConsolidation != want {
			t.Errorf("%q: %v, %v", text, s.SpotToSpotConsolidation, err)
		}
	}
	s := Default()
	if err := s.set("featureGates", "SpotToSpotConsolidation=maybe"); err == nil {
		t.Error("a gate that is neither open nor shut was accepted")
	}
}

// TestDefaultsAreWhatIsWritten: the texts that people read are the defaults.
func TestDefaultsAreWhatIsWritten(t *testing.T) {
	for _, o := range options {
		s := Default()
		if o.standard == "" {
			continue
		}
		if err := o.set(&s, o.standard); err != nil {
			t.Errorf("%s: %v", o.key, err)
		}
		if d := cmp.Diff(Default(), s); d != "" {
			t.Errorf("%s is not %s: %s", o.key, o.standard, d)
		}
	}
	for _, o := range processOptions {
		p := DefaultProcess()
		if o.standard == "" {
			continue
		}
		if err := o.set(&p, o.standard); err != nil {
			t.Errorf("%s: %v", o.env[0], err)
		}
		if d := cmp.Diff(DefaultProcess(), p); d != "" {
			t.Errorf("%s is not %s: %s", o.env[0], o.standard, d)
		}
	}
}

// TestWhatHasNoEffectIsNamed, whether it comes from a flag, the environment or
// the ConfigMap.
func TestWhatHasNoEffectIsNamed(t *testing.T) {
	p, s, err := parse(t, map[string]string{"WEBHOOK_PORT": "8443", "LOG_OUTPUT_PATHS": "stdout", "FEATURE_GATES": "NodeRepair=true,StaticCapacity=false"}, "--scheduler-config", "x")
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Ignored) != 2 || !strings.HasPrefix(p.Ignored[0], "SCHEDULER_CONFIG") || !strings.HasPrefix(p.Ignored[1], "WEBHOOK_PORT") {
		t.Errorf("of the process: %q", p.Ignored)
	}
	s.ClusterName = "blue"
	more, _, err := s.Apply(map[string]string{"aws.nodeNameConvention": "resource-name"})
	if err != nil || len(more.Ignored) != 2 || !strings.Contains(more.Ignored[0], "NodeRepair") || !strings.Contains(more.Ignored[1], "nodeNameConvention") {
		t.Errorf("of the controller: %q, %v", more.Ignored, err)
	}
	if len(s.Ignored) != 1 {
		t.Errorf("the settings below changed as well: %q", s.Ignored)
	}
}

func TestPreferencePolicy(t *testing.T) {
	for text, want := range map[string]int64{"Respect": everyPrice, "Ignore": 0} {
		_, s, err := parse(t, map[string]string{"PREFERENCE_POLICY": text})
		if err != nil || s.PreferenceMicros != want {
			t.Errorf("%s: %d, %v", text, s.PreferenceMicros, err)
		}
	}
}

func TestLogging(t *testing.T) {
	base := DefaultProcess()
	for _, c := range []struct {
		name string
		data map[string]string
		want Logging
		err  string
	}{
		{"no ConfigMap", nil, Logging{"info", "console"}, ""},
		{"zap's level and encoding", map[string]string{"zap-logger-config": `{"level": "debug", "encoding": "json", "sampling": {"initial": 100}}`}, Logging{"debug", "json"}, ""},
		{"loglevel.controller wins", map[string]string{"zap-logger-config": `{"level": "debug"}`, "loglevel.controller": "error"}, Logging{"error", "console"}, ""},
		{"above error is error", map[string]string{"loglevel.controller": "fatal"}, Logging{"error", "console"}, ""},
		{"of another component", map[string]string{"loglevel.webhook": "error"}, Logging{"info", "console"}, ""},
		{"no such level", map[string]string{"loglevel.controller": "loud"}, Logging{"info", "console"}, "loglevel.controller: must be debug"},
		{"no JSON", map[string]string{"zap-logger-config": "level: debug"}, Logging{"info", "console"}, "zap-logger-config: is not the JSON"},
		{"no such encoding", map[string]string{"zap-logger-config": `{"encoding": "xml"}`, "loglevel.controller": "debug"}, Logging{"info", "console"}, "encoding must be"},
	} {
		got, err := base.Logging(c.data)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %+v, %v; want %+v, %q", c.name, got, err, c.want, c.err)
		}
	}
}
