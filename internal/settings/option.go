package settings

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"karpenter/internal/core/quantity"
)

// option is one thing that an operator can set, with all the names it goes by.
type option struct {
	// key is the name in the ConfigMap karpenter-global-settings.
	key string
	// env lists the names of environment variables, the preferred one first.
	// The flag is the preferred name in lower case with dashes.
	env []string
	// standard is what holds where nothing is set, as it would be written.
	standard string
	help     string
	set      func(*Settings, string) error
}

// options is the one list of all settings; ConfigMap, environment and flags
// are three ways to the same entries.
var options = []option{
	{"batchIdleDuration", []string{"BATCH_IDLE_DURATION"}, "1s", "window ends after this long without a new pod",
		duration(func(s *Settings) *time.Duration { return &s.BatchIdle })},
	{"batchMaxDuration", []string{"BATCH_MAX_DURATION"}, "10s", "window ends after this long at the latest",
		duration(func(s *Settings) *time.Duration { return &s.BatchMax })},
	{"featureGates.driftEnabled", []string{"DRIFT_ENABLED"}, "false", "replace machines that no longer match their pool or class",
		boolean(func(s *Settings) *bool { return &s.DriftEnabled })},
	{"featureGates.spotToSpotConsolidation", []string{"SPOT_TO_SPOT_CONSOLIDATION"}, "false", "replace spot machines of NodePools by cheaper ones",
		boolean(func(s *Settings) *bool { return &s.SpotToSpotConsolidation })},
	{"featureGates", []string{"FEATURE_GATES"}, "", "gates by name, such as SpotToSpotConsolidation=true; those that do not exist here have no effect and are named at the start",
		func(s *Settings, v string) error {
			for _, gate := range strings.FieldsFunc(v, func(r rune) bool { return r == ',' || r == ' ' }) {
				name, value, _ := strings.Cut(gate, "=")
				on, err := strconv.ParseBool(value)
				if err != nil {
					return fmt.Errorf("%s must be true or false, not %q", name, value)
				}
				switch {
				case name == "SpotToSpotConsolidation":
					s.SpotToSpotConsolidation = on
				case on:
					s.ignore("featureGates " + name + " (there is no such gate)")
				}
			}
			return nil
		}},
	{"aws.clusterName", []string{"CLUSTER_NAME"}, "", "name of the cluster (required)",
		text(func(s *Settings) *string { return &s.ClusterName })},
	{"aws.clusterEndpoint", []string{"CLUSTER_ENDPOINT"}, "", "URL under which machines reach the API server",
		text(func(s *Settings) *string { return &s.ClusterEndpoint })},
	{"aws.clusterCABundle", []string{"CLUSTER_CA_BUNDLE"}, "", "certificate of the API server for machines, PEM in base64; empty = that of the client",
		text(func(s *Settings) *string { return &s.ClusterCABundle })},
	{"aws.defaultInstanceProfile", []string{"DEFAULT_INSTANCE_PROFILE"}, "", "instance profile of classes that name none",
		text(func(s *Settings) *string { return &s.DefaultInstanceProfile })},
	{"aws.interruptionQueueName", []string{"INTERRUPTION_QUEUE"}, "", "SQS queue with interruption notices; empty = off",
		text(func(s *Settings) *string { return &s.InterruptionQueue })},
	{"aws.enablePodENI", []string{"ENABLE_POD_ENI"}, "false", "count branch network interfaces as a resource",
		boolean(func(s *Settings) *bool { return &s.EnablePodENI })},
	{"aws.enableENILimitedPodDensity", []string{"ENABLE_ENI_LIMITED_POD_DENSITY"}, "true", "limit pods by network interfaces",
		boolean(func(s *Settings) *bool { return &s.EnableENILimitedPodDensity })},
	{"aws.isolatedVPC", []string{"ISOLATED_VPC"}, "false", "do not call services outside the VPC (prices)",
		boolean(func(s *Settings) *bool { return &s.IsolatedVPC })},
	{"aws.vmMemoryOverheadPercent", []string{"VM_MEMORY_OVERHEAD_PERCENT"}, "0.075", "fraction of memory hidden by the hypervisor (0.075 = 7.5 %)",
		fraction(func(s *Settings) *float64 { return &s.VMMemoryOverheadPercent })},
	{"aws.reservedENIs", []string{"RESERVED_ENIS"}, "0", "network interfaces of each machine that carry no pods",
		func(s *Settings, v string) error {
			n, err := whole(v, 1000)
			if err == nil {
				s.ReservedENIs = int64(n)
			}
			return err
		}},
	{"aws.amiRefreshInterval", []string{"AMI_REFRESH_INTERVAL"}, "1m", "how long answers about images are believed, at least 1m",
		interval(func(s *Settings) *time.Duration { return &s.AMIRefresh })},
	{"aws.subnetRefreshInterval", []string{"SUBNET_REFRESH_INTERVAL"}, "1m", "how long answers about subnets are believed, at least 1m",
		interval(func(s *Settings) *time.Duration { return &s.SubnetRefresh })},
	{"aws.eksControlPlane", []string{"EKS_CONTROL_PLANE"}, "false", "take the version of Kubernetes from EKS, not from the API server",
		boolean(func(s *Settings) *bool { return &s.EKSControlPlane })},
	{"aws.disableDryRun", []string{"DISABLE_DRY_RUN"}, "false", "do not try out whether the rights to launch are there",
		boolean(func(s *Settings) *bool { return &s.DisableDryRun })},
	{"aws.nodeNameConvention", nil, "ip-name", "no effect: nodes name themselves when they join; ip-name or resource-name",
		func(s *Settings, v string) error {
			if v != "ip-name" && v != "resource-name" {
				return fmt.Errorf("must be ip-name or resource-name, not %q", v)
			}
			if v != "ip-name" {
				s.ignore("aws.nodeNameConvention (nodes name themselves when they join)")
			}
			return nil
		}},
	{"nominate", []string{"NOMINATE"}, "true", "reserve planned pods' places with status.nominatedNodeName",
		boolean(func(s *Settings) *bool { return &s.Nominate })},
	{"nominationLead", []string{"NOMINATION_LEAD"}, "500ms", "how long after nominating its pods a new node is opened",
		func(s *Settings, v string) error {
			d, err := time.ParseDuration(v)
			if err != nil || d < 0 {
				return fmt.Errorf("must be a duration of 0 or more, such as 500ms, not %q", v)
			}
			s.NominationLead = d
			return nil
		}},
	{"minValuesPolicy", []string{"MIN_VALUES_POLICY"}, "Strict", "what becomes of a pod where minValues of a pool cannot be kept: Strict (it waits) or BestEffort",
		func(s *Settings, v string) error {
			if v != "Strict" && v != "BestEffort" {
				return fmt.Errorf("must be Strict or BestEffort, not %q", v)
			}
			s.RelaxMinValues = v == "BestEffort"
			return nil
		}},
	{"machineCostPerHour", []string{"MACHINE_COST_PER_HOUR"}, "0.002", "dollars per hour added to every machine when plans are compared",
		func(s *Settings, v string) error {
			f, err := number(v)
			if err == nil {
				s.MachineCost = quantity.USDPerHour(f)
			}
			return err
		}},
	{"packing.tieTolerance", []string{"PACKING_TIE_TOLERANCE"}, "0.01", "plans this close in price (0.01 = 1 %) count as equal; fewer machines win",
		millionths(func(s *Settings) *int64 { return &s.TieToleranceMicros })},
	{"preferencePolicy", []string{"PREFERENCE_POLICY"}, "", "Respect: preferences may make a plan as dear as they like; Ignore: they are followed where it costs nothing; empty: packing.preferenceTolerance says",
		func(s *Settings, v string) error {
			switch v {
			case "Respect":
				s.PreferenceMicros = everyPrice
			case "Ignore":
				s.PreferenceMicros = 0
			default:
				return fmt.Errorf("must be Respect or Ignore, not %q", v)
			}
			return nil
		}},
	{"packing.preferenceTolerance", []string{"PACKING_PREFERENCE_TOLERANCE"}, "0.01", "how much dearer (0.01 = 1 %) preferences may make a plan",
		millionths(func(s *Settings) *int64 { return &s.PreferenceMicros })},
}

// everyPrice is a tolerance that no price exceeds: a million times as dear.
const everyPrice = 1e12

// tagPrefix starts the keys that hold tags for everything made in the cloud.
const tagPrefix = "aws.tags."

// Set changes the setting with the given ConfigMap key. Keys are accepted with
// and without the prefix "aws.".
func (s *Settings) set(key, value string) error {
	if tag, ok := strings.CutPrefix(key, tagPrefix); ok && tag != "" {
		tags := maps.Clone(s.Tags)
		if tags == nil {
			tags = map[string]string{}
		}
		tags[tag] = value
		s.Tags = tags
		return nil
	}
	for _, o := range options {
		if o.key == key || o.key == "aws."+key || (key == "interruptionQueue" && o.key == "aws.interruptionQueueName") {
			if err := o.set(s, value); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
			return nil
		}
	}
	return fmt.Errorf("%s: no such setting", key)
}

// Apply returns the settings changed by the data of the ConfigMap
// karpenter-global-settings. Unknown keys are returned, sorted, not refused: a
// newer or older chart may write them.
func (s Settings) Apply(data map[string]string) (out Settings, unknown []string, err error) {
	out = s
	for _, key := range slices.Sorted(maps.Keys(data)) {
		if !known(key) {
			unknown = append(unknown, key)
			continue
		}
		if err := out.set(key, data[key]); err != nil {
			return s, unknown, err
		}
	}
	if err := out.Validate(); err != nil {
		return s, unknown, err
	}
	return out, unknown, nil
}

func known(key string) bool {
	if tag, ok := strings.CutPrefix(key, tagPrefix); ok {
		return tag != ""
	}
	return key == "interruptionQueue" || slices.ContainsFunc(options, func(o option) bool { return o.key == key || o.key == "aws."+key })
}

// Validate reports the first setting that cannot be used, with its names.
func (s Settings) Validate() error {
	if s.ClusterName == "" {
		return fmt.Errorf("aws.clusterName: must be set (ConfigMap key aws.clusterName, environment CLUSTER_NAME or flag --cluster-name)")
	}
	if s.ClusterEndpoint != "" {
		if u, err := url.Parse(s.ClusterEndpoint); err != nil || !u.IsAbs() || u.Host == "" {
			return fmt.Errorf("aws.clusterEndpoint: must be an absolute URL with a host, such as https://example.com, not %q", s.ClusterEndpoint)
		}
	}
	if s.BatchMax < s.BatchIdle {
		return fmt.Errorf("batchMaxDuration: %s is shorter than batchIdleDuration, %s", s.BatchMax, s.BatchIdle)
	}
	return nil
}

// ignore notes what was set and has no effect. The list may belong to the settings
// that these were made from.
func (s *Settings) ignore(what string) {
	s.Ignored = append(slices.Clone(s.Ignored), what)
}

func text(field func(*Settings) *string) func(*Settings, string) error {
	return func(s *Settings, v string) error { *field(s) = v; return nil }
}

func duration(field func(*Settings) *time.Duration) func(*Settings, string) error {
	return func(s *Settings, v string) error {
		d, err := time.ParseDuration(v)
		if err != nil || d <= 0 {
			return fmt.Errorf("must be a duration greater than 0, such as 10s, not %q", v)
		}
		*field(s) = d
		return nil
	}
}

// interval is a duration of a minute at least.
func interval(field func(*Settings) *time.Duration) func(*Settings, string) error {
	return func(s *Settings, v string) error {
		d, err := time.ParseDuration(v)
		if err != nil || d < time.Minute {
			return fmt.Errorf("must be a duration of 1m or more, such as 5m, not %q", v)
		}
		*field(s) = d
		return nil
	}
}

func boolean(field func(*Settings) *bool) func(*Settings, string) error {
	return func(s *Settings, v string) error {
		b, err := strconv.ParseBool(v)
		if err != nil {
			return fmt.Errorf("must be true or false, not %q", v)
		}
		*field(s) = b
		return nil
	}
}

func fraction(field func(*Settings) *float64) func(*Settings, string) error {
	return func(s *Settings, v string) error {
		f, err := number(v)
		if err == nil {
			*field(s) = f
		}
		return err
	}
}

func millionths(field func(*Settings) *int64) func(*Settings, string) error {
	return func(s *Settings, v string) error {
		f, err := number(v)
		if err == nil {
			*field(s) = int64(f * 1e6)
		}
		return err
	}
}

// number reads a finite number of 0 or more.
func number(v string) (float64, error) {
	f, err := strconv.ParseFloat(v, 64)
	if err != nil || !(f >= 0 && f <= 1e9) {
		return 0, fmt.Errorf("must be a number of 0 or more, not %q", v)
	}
	return f, nil
}
