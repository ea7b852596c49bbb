package settings

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Process holds what is fixed for the life of a process.
type Process struct {
	// BindAddress is the address of the metrics and health servers; empty =
	// every address.
	BindAddress string
	MetricsPort int // 0 = any free port
	HealthPort  int // 0 = any free port
	Profiling   bool

	KubeQPS   float64
	KubeBurst int

	LeaderElect     bool
	LeaderName      string
	LeaderNamespace string // empty = SystemNamespace

	// SystemNamespace is where the process runs and its ConfigMaps are.
	SystemNamespace string
	// MemoryLimitBytes is the limit of the container; 0 = none known.
	MemoryLimitBytes int64

	LogLevel    string // debug, info, error
	LogEncoding string // console, json
	// LoggingConfig is the name of the ConfigMap with logging settings.
	LoggingConfig string

	Region string // empty = ask the instance metadata service

	// PerObject publishes metrics with a series for each pod and node.
	PerObject bool
	// OldNames publishes metrics under the names of older versions as well.
	OldNames bool

	// Ignored are the flags and variables that were set and have no effect here.
	Ignored []string
}

// DefaultProcess returns what holds when nothing is set.
func DefaultProcess() Process {
	return Process{
		MetricsPort: 8080, HealthPort: 8081, KubeQPS: 200, KubeBurst: 300,
		LeaderElect: true, LeaderName: "karpenter-leader-election",
		LogLevel: "info", LogEncoding: "console", LoggingConfig: "config-logging",
	}
}

// processOption is a flag of the process, with the environment variables that
// give its default.
type processOption struct {
	env []string
	// standard is what holds where nothing is set, as it would be written.
	standard string
	help     string
	isBool   bool
	set      func(*Process, string) error
}

var processOptions = []processOption{
	{[]string{"BIND_ADDRESS"}, "", "address of the metrics and health servers", false, func(p *Process, v string) error { p.BindAddress = v; return nil }},
	{[]string{"METRICS_PORT"}, "8080", "port of the metrics server; 0 = any free one", false, port(func(p *Process) *int { return &p.MetricsPort })},
	{[]string{"HEALTH_PROBE_PORT"}, "8081", "port of /healthz and /readyz; 0 = any free one", false, port(func(p *Process) *int { return &p.HealthPort })},
	{[]string{"ENABLE_PROFILING"}, "false", "serve /debug/pprof on the metrics port", true, flagBool(func(p *Process) *bool { return &p.Profiling })},
	{[]string{"KUBE_CLIENT_QPS"}, "200", "calls per second to the API server", false, func(p *Process, v string) (err error) {
		p.KubeQPS, err = number(v)
		return err
	}},
	{[]string{"KUBE_CLIENT_BURST"}, "300", "calls to the API server at once", false, func(p *Process, v string) (err error) {
		p.KubeBurst, err = whole(v, 1<<20)
		return err
	}},
	{[]string{"LEADER_ELECT"}, "true", "only the holder of the lease acts", true, flagBool(func(p *Process) *bool { return &p.LeaderElect })},
	{[]string{"DISABLE_LEADER_ELECTION"}, "false", "the opposite of --leader-elect", true, func(p *Process, v string) error {
		b, err := parseBool(v)
		if err == nil {
			p.LeaderElect = !b
		}
		return err
	}},
	{[]string{"LEADER_ELECTION_NAME"}, "karpenter-leader-election", "name of the lease", false, func(p *Process, v string) error { p.LeaderName = v; return nil }},
	{[]string{"LEADER_ELECTION_NAMESPACE"}, "", "namespace of the lease", false, func(p *Process, v string) error { p.LeaderNamespace = v; return nil }},
	{[]string{"SYSTEM_NAMESPACE"}, "", "namespace of the process and its ConfigMaps", false, func(p *Process, v string) error { p.SystemNamespace = v; return nil }},
	{[]string{"MEMORY_LIMIT"}, "-1", "bytes; the garbage collector keeps below 90 % of it; -1 = none", false, func(p *Process, v string) error {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			return fmt.Errorf("must be a number of bytes, not %q", v)
		}
		p.MemoryLimitBytes = max(n, 0)
		return nil
	}},
	{[]string{"LOG_LEVEL"}, "info", "debug, info or error", false, func(p *Process, v string) error {
		if v != "debug" && v != "info" && v != "error" {
			return fmt.Errorf("must be debug, info or error, not %q", v)
		}
		p.LogLevel = v
		return nil
	}},
	{[]string{"LOG_ENCODING"}, "console", "console or json", false, func(p *Process, v string) error {
		if v != "console" && v != "json" {
			return fmt.Errorf("must be console or json, not %q", v)
		}
		p.LogEncoding = v
		return nil
	}},
	{[]string{"CONFIG_LOGGING_NAME"}, "config-logging", "ConfigMap with logging settings", false, func(p *Process, v string) error { p.LoggingConfig = v; return nil }},
	{[]string{"METRICS_PER_OBJECT"}, "false", "publish metrics with a series for each pod and node", true, flagBool(func(p *Process) *bool { return &p.PerObject })},
	{[]string{"DISABLE_CLUSTER_STATE_OBSERVABILITY"}, "true", "the opposite of --metrics-per-object", true, func(p *Process, v string) error {
		b, err := parseBool(v)
		if err == nil {
			p.PerObject = !b
		}
		return err
	}},
	{[]string{"METRICS_OLD_NAMES"}, "false", "publish metrics under the names of older versions as well", true, flagBool(func(p *Process) *bool { return &p.OldNames })},
	{[]string{"CPU_REQUESTS"}, "", "no effect: what the container may use is found out", false, func(*Process, string) error { return nil }},
	{[]string{"AWS_REGION", "AWS_DEFAULT_REGION"}, "", "region; empty = that of the machine", false, func(p *Process, v string) error { p.Region = v; return nil }},
}

// ignored are flags and variables of other versions that have no effect here, with
// the reason.
var ignored = []struct{ env, why string }{
	{"KARPENTER_SERVICE", "there is no webhook"},
	{"DISABLE_WEBHOOK", "there is no webhook"},
	{"WEBHOOK_PORT", "there is no webhook"},
	{"WEBHOOK_METRICS_PORT", "there is no webhook"},
	{"KUBERNETES_MIN_VERSION", "the lowest version that works is known"},
	{"IGNORE_DRA_REQUESTS", "pods with resource claims are never planned, and say so"},
	{"SCHEDULER_CONFIG", "the default topology spread of kube-scheduler is not read"},
	{"LOG_OUTPUT_PATHS", "the log goes to stdout"},
	{"LOG_ERROR_OUTPUT_PATHS", "the log goes to stdout"},
	{"AWS_FEATURE_GATES", "it has no gates that exist here"},
}

// Parse reads flags and environment: a flag beats its environment variable,
// which beats the default. getenv is os.LookupEnv or a stand-in. Errors name
// the flag or variable. A call for help returns flag.ErrHelp after writing the
// usage to the output of fs.
func Parse(fs *flag.FlagSet, args []string, getenv func(string) (string, bool)) (Process, Settings, error) {
	p, s := DefaultProcess(), Default()
	var problems []error
	define := func(env []string, help string, isBool bool, set func(string) error) {
		if len(env) == 0 {
			return
		}
		for i := len(env) - 1; i >= 0; i-- { // the preferred name last, so that it wins
			if v, ok := getenv(env[i]); ok && v != "" {
				if err := set(v); err != nil {
					problems = append(problems, fmt.Errorf("environment variable %s: %w", env[i], err))
				}
			}
		}
		name := flagOf(env)
		help += " (environment: " + strings.Join(env, ", ") + ")"
		if isBool {
			fs.BoolFunc(name, help, set)
		} else {
			fs.Func(name, help, set)
		}
	}
	for _, o := range processOptions {
		define(o.env, o.help, o.isBool, func(v string) error { return o.set(&p, v) })
	}
	for _, o := range options {
		define(o.env, o.help, false, func(v string) error { return o.set(&s, v) })
	}
	for _, o := range ignored {
		define([]string{o.env}, "no effect: "+o.why, false, func(v string) error {
			if v == "stdout" || v == "stderr" { // nothing is lost
				return nil
			}
			p.Ignored = append(p.Ignored, o.env+" ("+o.why+")")
			return nil
		})
	}
	if err := fs.Parse(args); err != nil {
		return p, s, err
	}
	slices.Sort(p.Ignored)
	p.Ignored = slices.Compact(p.Ignored)
	if fs.NArg() > 0 {
		problems = append(problems, fmt.Errorf("unexpected argument %q", fs.Arg(0)))
	}
	return p, s, errors.Join(problems...)
}

func port(field func(*Process) *int) func(*Process, string) error {
	return func(p *Process, v string) (err error) {
		n, err := whole(v, 65535)
		if err == nil {
			*field(p) = n
		}
		return err
	}
}

func whole(v string, limit int) (int, error) {
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 || n > limit {
		return 0, fmt.Errorf("must be a whole number from 0 to %d, not %q", limit, v)
	}
	return n, nil
}

func flagBool(field func(*Process) *bool) func(*Process, string) error {
	return func(p *Process, v string) error {
		b, err := parseBool(v)
		if err == nil {
			*field(p) = b
		}
		return err
	}
}

func parseBool(v string) (bool, error) {
	b, err := strconv.ParseBool(v)
	if err != nil {
		return false, fmt.Errorf("must be true or false, not %q", v)
	}
	return b, nil
}
