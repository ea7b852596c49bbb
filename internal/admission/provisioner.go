package admission

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	awsv1alpha1 "karpenter/api/aws/v1alpha1"
	"karpenter/api/v1alpha5"
	"karpenter/internal/core/label"
)

var runtimes = []string{"containerd", "dockerd"}

// Keys of requirements that open or close the choice of instance types; where
// one of them is named, none is defaulted.
var instanceKeys = []string{
	label.InstanceType,
	"karpenter.k8s.aws/instance-family",
	"karpenter.k8s.aws/instance-category",
	"karpenter.k8s.aws/instance-generation",
}

// DefaultProvisioner returns a copy of the Provisioner with what it means
// where it says nothing: linux, amd64, on-demand, and instance types of the
// categories c, m and r of generation 3 or later. Labels do not count as
// saying something.
func DefaultProvisioner(p *v1alpha5.Provisioner) *v1alpha5.Provisioner {
	out := p.DeepCopy()
	add := func(key string, op corev1.NodeSelectorOperator, values ...string) {
		out.Spec.Requirements = append(out.Spec.Requirements, v1alpha5.Requirement{Key: key, Operator: op, Values: values})
	}
	named := func(keys ...string) bool {
		return slices.ContainsFunc(p.Spec.Requirements, func(r v1alpha5.Requirement) bool {
			return slices.Contains(keys, label.Normalize(r.Key))
		})
	}
	if !named(label.OS) {
		add(label.OS, corev1.NodeSelectorOpIn, "linux")
	}
	if !named(label.Arch) {
		add(label.Arch, corev1.NodeSelectorOpIn, "amd64")
	}
	if !named(label.CapacityType) {
		add(label.CapacityType, corev1.NodeSelectorOpIn, label.OnDemand)
	}
	if !named(instanceKeys...) {
		add("karpenter.k8s.aws/instance-category", corev1.NodeSelectorOpIn, "c", "m", "r")
		add("karpenter.k8s.aws/instance-generation", corev1.NodeSelectorOpGt, "2")
	}
	return out
}

// ValidateProvisioner returns an *InvalidError with everything that is wrong
// with the Provisioner, its inline provider included, or nil.
func ValidateProvisioner(p *v1alpha5.Provisioner) error {
	spec := field.NewPath("spec")
	errs := objectName(p.Name)
	errs = append(errs, annotations(spec.Child("annotations"), p.Spec.Annotations)...)
	errs = append(errs, provisionerLabels(spec.Child("labels"), p.Spec.Labels)...)
	errs = append(errs, taints(spec, p.Spec.Taints, p.Spec.StartupTaints)...)
	errs = append(errs, most(spec.Child("requirements"), len(p.Spec.Requirements), mostEntries)...)
	for i, r := range p.Spec.Requirements {
		errs = append(errs, provisionerRequirement(spec.Child("requirements").Index(i), r)...)
	}
	if k, at := p.Spec.KubeletConfiguration, spec.Child("kubeletConfiguration"); k != nil {
		if r := k.ContainerRuntime; r != nil && !slices.Contains(runtimes, *r) {
			errs = append(errs, field.NotSupported(at.Child("containerRuntime"), *r, runtimes))
		}
		errs = append(errs, kubelet(at, &k.Kubelet)...)
	}
	errs = append(errs, provisionerNumbers(spec, &p.Spec)...)
	if p.Spec.Provider != nil {
		if p.Spec.ProviderRef != nil {
			errs = append(errs, field.Forbidden(spec.Child("provider"), "provider and providerRef exclude each other: set exactly one, preferably providerRef"))
		}
		_, problems := inlineProvider(spec.Child("provider"), p.Spec.Provider.Raw)
		errs = append(errs, problems...)
	}
	return invalid(v1alpha5.Kind, p.Name, errs)
}

// InlineProvider reads spec.provider strictly: an unknown field is an error.
// It returns nil if the Provisioner has none.
func InlineProvider(p *v1alpha5.Provisioner) (*awsv1alpha1.AWS, error) {
	if p.Spec.Provider == nil {
		return nil, nil
	}
	aws, problems := inlineProvider(field.NewPath("spec", "provider"), p.Spec.Provider.Raw)
	if err := invalid(v1alpha5.Kind, p.Name, problems); err != nil {
		return nil, err
	}
	return aws, nil
}

func inlineProvider(path *field.Path, raw []byte) (*awsv1alpha1.AWS, field.ErrorList) {
	var aws awsv1alpha1.AWS
	if err := decode(raw, &aws); err != nil {
		return nil, field.ErrorList{field.Invalid(path, string(raw), err.Error())}
	}
	var errs field.ErrorList
	if aws.Kind != "" && aws.Kind != "AWS" {
		errs = append(errs, field.NotSupported(path.Child("kind"), aws.Kind, []string{"AWS"}))
	}
	if v := aws.APIVersion; v != "" && v != "extensions.karpenter.sh/v1alpha1" {
		errs = append(errs, field.NotSupported(path.Child("apiVersion"), v, []string{"extensions.karpenter.sh/v1alpha1"}))
	}
	return &aws, append(errs, awsSettings(path, &aws)...)
}

func provisionerLabels(path *field.Path, labels map[string]v1alpha5.LabelValue) field.ErrorList {
	errs := most(path, len(labels), mostEntries)
	for _, k := range sortedKeys(labels) {
		at := path.Key(k)
		errs = append(errs, key(at, k)...)
		errs = append(errs, value(at, string(labels[k]))...)
		domain, _, _ := strings.Cut(k, "/")
		if ownKey(k) {
			errs = append(errs, field.Forbidden(at, "every node is labelled with the name of its Provisioner anyway; remove it"))
		} else if to := label.Normalize(k); to != k && strings.HasSuffix(domain, "kubernetes.io") {
			errs = append(errs, field.Forbidden(at, fmt.Sprintf("label %q is restricted: it is an old name, use %s", k, to)))
		} else if err := label.Restricted(k); err != nil {
			errs = append(errs, field.Forbidden(at, err.Error()))
		}
	}
	return errs
}

func provisionerRequirement(path *field.Path, r v1alpha5.Requirement) field.ErrorList {
	errs := most(path.Child("values"), len(r.Values), 1000)
	errs = append(errs, requirementForm(path, requirement{key: r.Key, operator: string(r.Operator), values: r.Values},
		[]string{"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"})...)
	if ownKey(label.Normalize(r.Key)) {
		errs = append(errs, field.Forbidden(path.Child("key"), fmt.Sprintf("%s is set by itself; remove this requirement", r.Key)))
	} else if err := label.Restricted(r.Key); err != nil {
		errs = append(errs, field.Forbidden(path.Child("key"), err.Error()))
	}
	return errs
}

func provisionerNumbers(spec *field.Path, s *v1alpha5.ProvisionerSpec) field.ErrorList {
	errs := notNegative(spec.Child("ttlSecondsAfterEmpty"), s.TTLSecondsAfterEmpty)
	errs = append(errs, notNegative(spec.Child("ttlSecondsUntilExpired"), s.TTLSecondsUntilExpired)...)
	if s.TTLSecondsAfterEmpty != nil && s.Consolidation != nil && s.Consolidation.Enabled != nil && *s.Consolidation.Enabled {
		errs = append(errs, field.Forbidden(spec.Child("ttlSecondsAfterEmpty"),
			"ttlSecondsAfterEmpty and consolidation.enabled exclude each other: consolidation removes empty nodes already, so drop one of the two"))
	}
	if s.Limits != nil {
		errs = append(errs, amounts(spec.Child("limits", "resources"), s.Limits.Resources)...)
	}
	return append(errs, weight(spec.Child("weight"), s.Weight)...)
}
