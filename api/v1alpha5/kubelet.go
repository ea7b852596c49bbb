package v1alpha5

import corev1 "k8s.io/api/core/v1"

// KubeletConfiguration are settings of the kubelet on each node.
type KubeletConfiguration struct {
	Kubelet `json:",inline"`

	// ContainerRuntime is containerd or, on AL2 of Kubernetes before 1.24,
	// dockerd.
	// +kubebuilder:validation:Enum=containerd;dockerd
	// +optional
	ContainerRuntime *string `json:"containerRuntime,omitempty"`
}

// Kubelet are the settings of the kubelet that both generations have: those
// that matter to the size of a node, and some that are only handed on.
//
// +kubebuilder:validation:XValidation:rule="!has(self.evictionSoft) || self.evictionSoft.all(k, has(self.evictionSoftGracePeriod) && k in self.evictionSoftGracePeriod)",message="every signal of evictionSoft needs an entry in evictionSoftGracePeriod",fieldPath=".evictionSoftGracePeriod"
// +kubebuilder:validation:XValidation:rule="!has(self.evictionSoftGracePeriod) || self.evictionSoftGracePeriod.all(k, has(self.evictionSoft) && k in self.evictionSoft)",message="every signal of evictionSoftGracePeriod needs an entry in evictionSoft",fieldPath=".evictionSoft"
type Kubelet struct {
	// ClusterDNS are addresses of the cluster's name servers; the first is used.
	// +optional
	ClusterDNS []string `json:"clusterDNS,omitempty"`
	// MaxPods is how many pods a node may hold.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MaxPods *int32 `json:"maxPods,omitempty"`
	// PodsPerCore limits the pods of a node by its vCPUs; 0 is ignored.
	// +kubebuilder:validation:Minimum=0
	// +optional
	PodsPerCore *int32 `json:"podsPerCore,omitempty"`
	// SystemReserved is kept for daemons of the operating system.
	// +kubebuilder:validation:MaxProperties=4
	// +kubebuilder:validation:XValidation:rule="self.all(k, k in ['cpu', 'memory', 'ephemeral-storage', 'pid'])",message="systemReserved knows the resources cpu, memory, ephemeral-storage and pid only"
	// +kubebuilder:validation:XValidation:rule="self.all(k, type(self[k]) == int ? self[k] >= 0 : isQuantity(self[k]) && !self[k].startsWith('-'))",message="systemReserved must hold quantities of 0 or more, such as 100m or 1Gi"
	// +optional
	SystemReserved corev1.ResourceList `json:"systemReserved,omitempty"`
	// KubeReserved is kept for the kubelet and the container runtime.
	// +kubebuilder:validation:MaxProperties=4
	// +kubebuilder:validation:XValidation:rule="self.all(k, k in ['cpu', 'memory', 'ephemeral-storage', 'pid'])",message="kubeReserved knows the resources cpu, memory, ephemeral-storage and pid only"
	// +kubebuilder:validation:XValidation:rule="self.all(k, type(self[k]) == int ? self[k] >= 0 : isQuantity(self[k]) && !self[k].startsWith('-'))",message="kubeReserved must hold quantities of 0 or more, such as 100m or 1Gi"
	// +optional
	KubeReserved corev1.ResourceList `json:"kubeReserved,omitempty"`
	// EvictionHard: below these thresholds pods are evicted at once.
	// +kubebuilder:validation:MaxProperties=6
	// +kubebuilder:validation:XValidation:rule="self.all(k, k in ['memory.available', 'nodefs.available', 'nodefs.inodesFree', 'imagefs.available', 'imagefs.inodesFree', 'pid.available'])",message="evictionHard knows the signals memory.available, nodefs.available, nodefs.inodesFree, imagefs.available, imagefs.inodesFree and pid.available only"
	// +optional
	EvictionHard map[string]EvictionThreshold `json:"evictionHard,omitempty"`
	// EvictionSoft: below these thresholds pods are evicted after the grace
	// period of the same signal.
	// +kubebuilder:validation:MaxProperties=6
	// +kubebuilder:validation:XValidation:rule="self.all(k, k in ['memory.available', 'nodefs.available', 'nodefs.inodesFree', 'imagefs.available', 'imagefs.inodesFree', 'pid.available'])",message="evictionSoft knows the signals memory.available, nodefs.available, nodefs.inodesFree, imagefs.available, imagefs.inodesFree and pid.available only"
	// +optional
	EvictionSoft map[string]EvictionThreshold `json:"evictionSoft,omitempty"`
	// EvictionSoftGracePeriod holds a duration for each signal of EvictionSoft.
	// +kubebuilder:validation:MaxProperties=6
	// +kubebuilder:validation:XValidation:rule="self.all(k, k in ['memory.available', 'nodefs.available', 'nodefs.inodesFree', 'imagefs.available', 'imagefs.inodesFree', 'pid.available'])",message="evictionSoftGracePeriod knows the signals memory.available, nodefs.available, nodefs.inodesFree, imagefs.available, imagefs.inodesFree and pid.available only"
	// +optional
	EvictionSoftGracePeriod map[string]Duration `json:"evictionSoftGracePeriod,omitempty"`
	// EvictionMaxPodGracePeriod, in seconds, caps the grace period of pods that
	// are evicted because of a soft threshold.
	// +kubebuilder:validation:Minimum=0
	// +optional
	EvictionMaxPodGracePeriod *int32 `json:"evictionMaxPodGracePeriod,omitempty"`
}

// EvictionThreshold is a percentage or a quantity.
//
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:XValidation:rule="self.matches('^(100([.]0*)?|[0-9]{1,2}([.][0-9]*)?)%$') || (isQuantity(self) && !self.startsWith('-'))",message="an eviction threshold must be a percentage from 0% to 100%, such as 5%, or a quantity of 0 or more, such as 500Mi"
type EvictionThreshold string

// Duration is a length of time as text, a day at most.
//
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(ns|us|ms|s|m|h))+$') && duration(self) <= duration('24h')",message="must be a duration from 0s to 24h, such as 90s or 2m30s"
type Duration string
