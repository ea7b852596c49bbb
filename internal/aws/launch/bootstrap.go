package launch

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"karpenter/internal/core/world"
)

const shellScript = `text/x-shellscript; charset="us-ascii"`

// bootstrap writes the user data of Amazon Linux 2 and Ubuntu: the parts of the
// custom user data, then a script that calls the bootstrap program of the image.
func bootstrap(b Boot) (string, error) {
	var parts []part
	if strings.TrimSpace(b.Custom) != "" {
		var err error
		if parts, err = split(b.Custom); err != nil {
			return "", err
		}
	}
	return join(append(parts, ofType(shellScript, bootstrapScript(b))))
}

// bootstrapScript is the script that joins the node to the cluster.
func bootstrapScript(b Boot) string {
	lines := []string{fmt.Sprintf("/etc/eks/bootstrap.sh %s --apiserver-endpoint %s --b64-cluster-ca %s",
		quote(b.Cluster.Name), quote(b.Cluster.Endpoint), quote(b.Cluster.CABundle))}
	dns, ipv6 := b.clusterDNS()
	for _, option := range []struct {
		name, value string
		use         bool
	}{
		{"--ip-family", "ipv6", ipv6},
		{"--use-max-pods", "false", b.maxPods() != nil},
		{"--container-runtime", cmp.Or(b.Kubelet.ContainerRuntime, "containerd"), b.Family.ContainerRuntime && takesRuntime(b.Cluster.Version)},
		{"--kubelet-extra-args", quote(strings.Join(kubeletArgs(b), " ")), true},
		{"--dns-cluster-ip", quote(dns), dns != ""},
		{"--local-disks", "raid0", b.RAID0},
	} {
		if option.use {
			lines = append(lines, option.name+" "+option.value)
		}
	}
	return "#!/bin/bash -xe\n" +
		"exec > >(tee /var/log/user-data.log | logger -t user-data -s 2>/dev/console) 2>&1\n" +
		strings.Join(lines, " \\\n") + "\n"
}

// takesRuntime: the bootstrap program knows the flag only below 1.27.
func takesRuntime(version string) bool {
	major, minor, ok := strings.Cut(version, ".")
	n, err := strconv.Atoi(minor)
	return ok && err == nil && major == "1" && n < 27
}

// kubeletArgs lists the arguments of the kubelet that are set.
func kubeletArgs(b Boot) []string {
	k := b.Kubelet
	var args []string
	add := func(name, value string) {
		if value != "" {
			args = append(args, "--"+name+"="+value)
		}
	}
	add("node-labels", pairs(b.labels(), "="))
	add("register-with-taints", taintList(b.taints()))
	add("max-pods", text(b.maxPods()))
	add("pods-per-core", text(k.PodsPerCore))
	add("system-reserved", pairs(k.SystemReserved, "="))
	add("kube-reserved", pairs(k.KubeReserved, "="))
	add("eviction-hard", pairs(k.EvictionHard, "<"))
	add("eviction-soft", pairs(k.EvictionSoft, "<"))
	add("eviction-soft-grace-period", pairs(k.EvictionSoftGracePeriod, "="))
	add("eviction-max-pod-grace-period", text(k.EvictionMaxPodGraceSeconds))
	add("image-gc-high-threshold", text(k.ImageGCHighThresholdPercent))
	add("image-gc-low-threshold", text(k.ImageGCLowThresholdPercent))
	add("cpu-cfs-quota", text(k.CPUCFSQuota))
	return args
}

// text writes a number or a switch; nothing if it is not set.
func text[T int32 | bool](v *T) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(*v)
}

// taintList writes taints as key=value:effect.
func taintList(taints []world.Taint) string {
	out := make([]string, 0, len(taints))
	for _, t := range taints {
		out = append(out, t.Key+"="+t.Value+":"+string(t.Effect))
	}
	return strings.Join(out, ",")
}

// quote makes one word of s for the shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
