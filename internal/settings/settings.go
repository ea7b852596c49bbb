// Package settings holds everything an operator can set, as one value.
//
// It imports the core and the standard library. A Settings value is read once
// at the top of a pass and handed down; nothing below asks for it again.
package settings

import (
	"time"

	"karpenter/internal/core/quantity"
)

// Settings are the settings of the process and of karpenter-global-settings.
type Settings struct {
	BatchIdle time.Duration // window ends after this long without a new pod
	BatchMax  time.Duration // or after this long at the latest

	ClusterName     string
	ClusterEndpoint string
	// ClusterCABundle is PEM in base64; empty = that of the client.
	ClusterCABundle        string
	DefaultInstanceProfile string
	// InterruptionQueue is the name of the SQS queue; empty = off.
	InterruptionQueue string
	// Tags go on everything that is made in the cloud.
	Tags map[string]string

	EnablePodENI               bool
	EnableENILimitedPodDensity bool
	IsolatedVPC                bool
	// VMMemoryOverheadPercent is the fraction (0.075 = 7.5 %) of a type's
	// memory that is not seen by its operating system.
	VMMemoryOverheadPercent float64
	// ReservedENIs are network interfaces of each machine that carry no pods.
	ReservedENIs int64
	// AMIRefresh and SubnetRefresh are how long answers about images and subnets
	// are believed, at least a minute.
	AMIRefresh    time.Duration
	SubnetRefresh time.Duration
	// EKSControlPlane: the version of Kubernetes is that which EKS tells.
	EKSControlPlane bool
	// DisableDryRun: the rights to launch are not tried out.
	DisableDryRun bool

	// NominationLead is how long after nominating its pods a node is opened.
	NominationLead time.Duration
	Nominate       bool

	MachineCost quantity.Price
	// TieToleranceMicros and PreferenceMicros are in millionths of a price.
	TieToleranceMicros int64
	PreferenceMicros   int64

	// RelaxMinValues: machines may be bought with fewer different values than the
	// minValues of their pool ask for.
	RelaxMinValues bool

	DriftEnabled bool
	// SpotToSpotConsolidation: a spot machine of a NodePool may be replaced by a
	// cheaper one.
	SpotToSpotConsolidation bool

	// Ignored is what was set and has no effect here, with the reason.
	Ignored []string
}

// Default returns the settings of an installation that sets nothing. Cluster
// name and endpoint have no default.
func Default() Settings {
	return Settings{
		BatchIdle:                  time.Second,
		BatchMax:                   10 * time.Second,
		EnableENILimitedPodDensity: true,
		VMMemoryOverheadPercent:    0.075,
		AMIRefresh:                 time.Minute,
		SubnetRefresh:              time.Minute,
		NominationLead:             500 * time.Millisecond,
		Nominate:                   true,
		MachineCost:                2000,
		TieToleranceMicros:         10_000,
		PreferenceMicros:           10_000,
	}
}
