package admission

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"karpenter/api/v1alpha5"
)

var (
	reservable  = []corev1.ResourceName{"cpu", "memory", "ephemeral-storage", "pid"}
	signals     = []string{"memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree", "pid.available"}
	gracePeriod = regexp.MustCompile(`^([0-9]+([.][0-9]+)?(ns|us|ms|s|m|h))+$`)
	percentage  = regexp.MustCompile(`^(100([.]0*)?|[0-9]{1,2}([.][0-9]*)?)%$`)
)

// kubelet checks the settings that both generations have.
func kubelet(path *field.Path, k *v1alpha5.Kubelet) field.ErrorList {
	errs := notNegative(path.Child("maxPods"), k.MaxPods)
	errs = append(errs, notNegative(path.Child("podsPerCore"), k.PodsPerCore)...)
	errs = append(errs, notNegative(path.Child("evictionMaxPodGracePeriod"), k.EvictionMaxPodGracePeriod)...)
	errs = append(errs, reserved(path.Child("systemReserved"), k.SystemReserved)...)
	errs = append(errs, reserved(path.Child("kubeReserved"), k.KubeReserved)...)
	errs = append(errs, thresholds(path.Child("evictionHard"), k.EvictionHard)...)
	errs = append(errs, thresholds(path.Child("evictionSoft"), k.EvictionSoft)...)
	return append(errs, gracePeriods(path, k)...)
}

func reserved(path *field.Path, list corev1.ResourceList) field.ErrorList {
	var errs field.ErrorList
	for _, name := range sortedKeys(list) {
		q := list[name]
		if !slices.Contains(reservable, name) {
			errs = append(errs, field.NotSupported(path.Key(string(name)), name, reservable))
		}
		if q.Sign() < 0 {
			errs = append(errs, field.Invalid(path.Key(string(name)), q.String(), "must be 0 or more"))
		}
	}
	return errs
}

// signal checks that the kubelet can measure it.
func signal(path *field.Path, name string) field.ErrorList {
	if slices.Contains(signals, name) {
		return nil
	}
	return field.ErrorList{field.Invalid(path.Key(name), name, "unknown signal; the signals are "+strings.Join(signals, ", "))}
}

func thresholds(path *field.Path, list map[string]v1alpha5.EvictionThreshold) field.ErrorList {
	var errs field.ErrorList
	for _, name := range sortedKeys(list) {
		errs = append(errs, signal(path, name)...)
		text := string(list[name])
		if percentage.MatchString(text) {
			continue
		}
		if q, err := resource.ParseQuantity(text); err != nil || q.Sign() < 0 {
			errs = append(errs, field.Invalid(path.Key(name), text,
				"an eviction threshold must be a percentage from 0% to 100%, such as 5%, or a quantity of 0 or more, such as 500Mi"))
		}
	}
	return errs
}

// gracePeriods checks that each soft threshold has a grace period, and that
// nothing else has.
func gracePeriods(path *field.Path, k *v1alpha5.Kubelet) field.ErrorList {
	var errs field.ErrorList
	for _, name := range sortedKeys(k.EvictionSoft) {
		if _, ok := k.EvictionSoftGracePeriod[name]; !ok {
			errs = append(errs, field.Required(path.Child("evictionSoftGracePeriod").Key(name),
				fmt.Sprintf("every signal of evictionSoft needs an entry here, for example %s: 2m", name)))
		}
	}
	for _, name := range sortedKeys(k.EvictionSoftGracePeriod) {
		at := path.Child("evictionSoftGracePeriod")
		errs = append(errs, signal(at, name)...)
		if _, ok := k.EvictionSoft[name]; !ok {
			errs = append(errs, field.Required(path.Child("evictionSoft").Key(name), "every signal of evictionSoftGracePeriod needs an entry here"))
		}
		text := string(k.EvictionSoftGracePeriod[name])
		if d, err := time.ParseDuration(text); !gracePeriod.MatchString(text) || err != nil || d < 0 || d > 24*time.Hour {
			errs = append(errs, field.Invalid(at.Key(name), text, "must be a duration from 0s to 24h, such as 90s or 2m30s"))
		}
	}
	return errs
}
