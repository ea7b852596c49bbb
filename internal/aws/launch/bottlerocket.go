package launch

import (
	"fmt"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// table is a table of a TOML document.
type table = map[string]any

// bottlerocket writes the user data of Bottlerocket: the settings of the custom
// user data, with those that join the cluster laid over them. Of settings of
// the kubelet only what is set is laid over.
func bottlerocket(b Boot) (string, error) {
	custom := table{}
	if err := toml.Unmarshal([]byte(b.Custom), &custom); err != nil {
		return "", fmt.Errorf("it is not valid TOML: %w", err)
	}
	settings, err := tableAt(custom, "settings")
	if err != nil {
		return "", err
	}
	kubernetes, err := tableAt(settings, "kubernetes")
	if err != nil {
		return "", fmt.Errorf("settings: %w", err)
	}
	// These two are ours as a whole: what is left of others would keep pods off,
	// or draw them here.
	delete(kubernetes, "node-labels")
	delete(kubernetes, "node-taints")
	merge(kubernetes, bottlerocketKubelet(b))
	merge(settings, table{"kubernetes": kubernetes})
	if b.RAID0 {
		merge(settings, table{"bootstrap-commands": table{"000-mount-instance-storage": mountInstanceStorage()}})
	}
	out, err := toml.Marshal(table{"settings": settings}) // Bottlerocket reads nothing else
	if err != nil {
		return "", fmt.Errorf("writing user data: %w", err)
	}
	return string(out), nil
}

// tableAt returns the table at a key, an empty one if there is none.
func tableAt(in table, key string) (table, error) {
	switch v := in[key].(type) {
	case nil:
		return table{}, nil
	case table:
		return v, nil
	default:
		return nil, fmt.Errorf("%s must be a table, not %v", key, v)
	}
}

// merge lays one table over another, deeply.
func merge(into, over table) {
	for k, v := range over {
		below, ok := into[k].(table)
		if above, is := v.(table); is && ok {
			merge(below, above)
			continue
		}
		into[k] = v
	}
}

// bottlerocketKubelet are the settings that join the node to the cluster.
func bottlerocketKubelet(b Boot) table {
	k := b.Kubelet
	labels, taints := table{}, table{}
	for key, value := range b.labels() {
		labels[key] = value
	}
	for _, t := range b.taints() {
		values, _ := taints[t.Key].([]string)
		taints[t.Key] = append(values, t.Value+":"+string(t.Effect))
	}
	out := table{
		"cluster-name": b.Cluster.Name, "api-server": b.Cluster.Endpoint, "cluster-certificate": b.Cluster.CABundle,
		"node-labels": labels, "node-taints": taints,
	}
	if n := b.maxPods(); n != nil {
		out["max-pods"] = *n
	}
	if dns, _ := b.clusterDNS(); dns != "" {
		out["cluster-dns-ip"] = dns
	}
	for name, m := range map[string]map[string]string{
		"system-reserved": k.SystemReserved, "kube-reserved": k.KubeReserved, "eviction-hard": k.EvictionHard,
	} {
		if len(m) > 0 {
			values := table{}
			for key, value := range m {
				values[key] = value
			}
			out[name] = values
		}
	}
	for name, value := range map[string]string{
		"image-gc-high-threshold-percent": text(k.ImageGCHighThresholdPercent),
		"image-gc-low-threshold-percent":  text(k.ImageGCLowThresholdPercent),
	} {
		if value != "" {
			out[name] = value
		}
	}
	if k.CPUCFSQuota != nil {
		out["cpu-cfs-quota-enforced"] = *k.CPUCFSQuota
	}
	return out
}

// mountInstanceStorage joins the disks of the instance type, at every boot
// before anything uses them.
func mountInstanceStorage() table {
	bind := strings.Fields("apiclient ephemeral-storage bind --dirs /var/lib/containerd /var/lib/kubelet /var/log/pods")
	return table{
		"commands":  [][]string{strings.Fields("apiclient ephemeral-storage init"), bind},
		"mode":      "always",
		"essential": true,
	}
}
