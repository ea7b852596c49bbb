package convert

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"karpenter/internal/core/quantity"
	"karpenter/internal/core/world"
)

// objects reads YAML documents into look-ups.
func objects(t testing.TB, text string) *Lookups {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, storagev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	l := &Lookups{}
	for doc := range strings.SplitSeq(text, "\n---\n") {
		o, _, err := decoder.Decode([]byte(doc), nil, nil)
		if err != nil {
			t.Fatalf("%s\n%v", doc, err)
		}
		l.Add(o)
	}
	return l
}

// words writes what the constraints of a pod came to.
func words(p world.Pod) string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	selector := func(s world.LabelSelector) string {
		if s.Nothing {
			return "{nothing}"
		}
		return fmt.Sprint(s.Requirements)
	}
	for _, s := range p.Spread {
		line := fmt.Sprintf("spread %s by %d over %s", selector(s.Selector), s.MaxSkew, s.Key)
		for _, w := range []struct {
			when bool
			word string
		}{{s.Soft, "soft"}, {s.IgnoreAffinity, "ignore-affinity"}, {s.HonorTaints, "honor-taints"}, {s.MinDomains > 0, fmt.Sprintf("min-domains=%d", s.MinDomains)}} {
			if w.when {
				line += " " + w.word
			}
		}
		add("%s", line)
	}
	for name, terms := range map[string][]world.PodTerm{"with": p.Affinity, "apart from": p.AntiAffinity} {
		for _, t := range terms {
			line := fmt.Sprintf("%s %s in %v over %s", name, selector(t.Selector), t.Namespaces, t.Key)
			if t.AllNamespaces {
				line += " everywhere"
			}
			if t.Weight > 0 {
				line += fmt.Sprintf(" weight %d", t.Weight)
			}
			add("%s", line)
		}
	}
	for _, h := range p.HostPorts {
		add("port %s/%d %q", h.Protocol, h.Port, h.IP)
	}
	for _, t := range p.Volumes {
		add("volumes %v", t)
	}
	for _, a := range p.Attach {
		add("attach %s %s", a.Driver, a.Volume)
	}
	if p.Refused != "" {
		add("refused: %s", p.Refused)
	}
	return strings.Join(out, "\n")
}

const namespaces = `
apiVersion: v1
kind: Namespace
metadata: {name: blue, labels: {team: b}}
---
apiVersion: v1
kind: Namespace
metadata: {name: red, labels: {team: r}}
---
apiVersion: v1
kind: Namespace
metadata: {name: ruby, labels: {team: r}}`

func TestRulesBetweenPods(t *testing.T) {
	l := objects(t, namespaces)
	with := func(term string) string {
		return `spec: {affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: rack, ` + term + `}]}}}`
	}
	tests := []struct{ name, pod, want string }{
		{"spread", `spec: {topologySpreadConstraints: [{maxSkew: 2, topologyKey: failure-domain.beta.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: a}}}]}`,
			"spread [app In [a]] by 2 over topology.kubernetes.io/zone"},
		{"spread with everything", `spec: {topologySpreadConstraints: [{maxSkew: 1, topologyKey: k, whenUnsatisfiable: ScheduleAnyway, minDomains: 3, nodeAffinityPolicy: Ignore, nodeTaintsPolicy: Honor, labelSelector: {matchExpressions: [{key: app, operator: Exists}]}, matchLabelKeys: [rev, other]}]}`,
			"spread [app Exists rev In [7]] by 1 over k soft ignore-affinity honor-taints min-domains=3"},
		{"spread, the API server added the keys", `spec: {topologySpreadConstraints: [{maxSkew: 1, topologyKey: k, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchExpressions: [{key: rev, operator: In, values: ["7"]}]}, matchLabelKeys: [rev]}]}`,
			"spread [rev In [7]] by 1 over k"},
		{"spread of all pods", `spec: {topologySpreadConstraints: [{maxSkew: 1, topologyKey: k, whenUnsatisfiable: DoNotSchedule, labelSelector: {}}]}`, "spread [] by 1 over k"},
		{"spread without a selector", `spec: {topologySpreadConstraints: [{maxSkew: 1, topologyKey: k, whenUnsatisfiable: DoNotSchedule, matchLabelKeys: [rev]}]}`, "spread {nothing} by 1 over k"},
		{"spread with a broken selector", `spec: {topologySpreadConstraints: [{maxSkew: 1, topologyKey: k, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchExpressions: [{key: a, operator: In}]}}]}`, "spread {nothing} by 1 over k"},

		{"own namespace", with(`labelSelector: {matchLabels: {app: a}}`), "with [app In [a]] in [blue] over rack"},
		{"listed namespaces", with(`labelSelector: {matchLabels: {app: a}}, namespaces: [x, red, x]`), "with [app In [a]] in [red x] over rack"},
		{"selected namespaces", with(`labelSelector: {matchLabels: {app: a}}, namespaceSelector: {matchLabels: {team: r}}`), "with [app In [a]] in [red ruby] over rack"},
		{"listed and selected namespaces", with(`labelSelector: {}, namespaces: [x, red], namespaceSelector: {matchLabels: {team: r}}`), "with [] in [red ruby x] over rack"},
		{"all namespaces", with(`labelSelector: {}, namespaceSelector: {}`), "with [] in [] over rack everywhere"},
		{"no namespace is selected", with(`labelSelector: {}, namespaceSelector: {matchLabels: {team: none}}`), "with {nothing} in [] over rack"},
		{"no selector", with(`matchLabelKeys: [rev]`), "with {nothing} in [blue] over rack"},
		{"broken selector", with(`labelSelector: {matchExpressions: [{key: a, operator: Near}]}`), "with {nothing} in [blue] over rack"},
		{"same and other values", with(`labelSelector: {}, matchLabelKeys: [rev, none], mismatchLabelKeys: [app]`), "with [rev In [7] app NotIn [me]] in [blue] over rack"},
		{"preferred", `spec: {affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 5, podAffinityTerm: {topologyKey: rack, labelSelector: {}}}]}}}`,
			"apart from [] in [blue] over rack weight 5"},
		{"required before preferred", `spec: {affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 5, podAffinityTerm: {topologyKey: rack, labelSelector: {}}}], requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: host, labelSelector: {}}]}}}`,
			"apart from [] in [blue] over host\napart from [] in [blue] over rack weight 5"},

		{"ports", `spec: {containers: [{name: a, ports: [{containerPort: 80}, {containerPort: 80, hostPort: 8080}, {containerPort: 53, hostPort: 53, protocol: UDP, hostIP: 10.0.0.1}]}, {name: b, ports: [{containerPort: 1, hostPort: 8080}]}]}`,
			"port TCP/8080 \"\"\nport UDP/53 \"10.0.0.1\""},
		{"ports of sidecars, not of containers that end", `spec: {initContainers: [{name: a, ports: [{containerPort: 1, hostPort: 1}]}, {name: b, restartPolicy: Always, ports: [{containerPort: 2, hostPort: 2}]}]}`, `port TCP/2 ""`},
		{"network of the host", `spec: {hostNetwork: true, containers: [{name: a, ports: [{containerPort: 9100}]}]}`, `port TCP/9100 ""`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := podSpec(t, tt.pod)
			p.Namespace, p.Labels = "blue", map[string]string{"rev": "7", "app": "me"}
			if diff := cmp.Diff(tt.want, words(l.Pod(p))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

const storage = `
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: fast, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}
provisioner: ebs.csi.aws.com
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: zonal}
provisioner: kubernetes.io/aws-ebs
volumeBindingMode: WaitForFirstConsumer
allowedTopologies:
- matchLabelExpressions: [{key: topology.ebs.csi.aws.com/zone, values: [a]}]
- matchLabelExpressions: [{key: topology.kubernetes.io/zone, values: [b]}, {key: rack, values: [r1, r2]}]
- {}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: nowhere}
provisioner: ebs.csi.aws.com
volumeBindingMode: WaitForFirstConsumer
allowedTopologies: [{}]
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: eager}
provisioner: ebs.csi.aws.com
volumeBindingMode: Immediate
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: local}
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk-1}
spec: {storageClassName: local, capacity: {storage: 10Gi}, accessModes: [ReadWriteOnce], local: {path: /mnt}, nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [node-1]}]}]}}}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk-2}
spec: {storageClassName: local, capacity: {storage: 20Gi}, accessModes: [ReadWriteOnce], local: {path: /mnt}, nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [node-2]}]}]}}}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk-3}
spec: {storageClassName: local, claimRef: {namespace: ns, name: other}, capacity: {storage: 20Gi}, accessModes: [ReadWriteOnce], local: {path: /mnt}, nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [node-3]}]}]}}}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: pv-east}
spec: {csi: {driver: ebs.csi.aws.com, volumeHandle: vol-1}, nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: topology.ebs.csi.aws.com/zone, operator: In, values: [a]}]}, {matchExpressions: [{key: failure-domain.beta.kubernetes.io/zone, operator: In, values: [b]}]}]}}}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: pv-old, labels: {failure-domain.beta.kubernetes.io/zone: b__c, failure-domain.beta.kubernetes.io/region: r}}
spec: {awsElasticBlockStore: {volumeID: "aws://b/vol-2"}}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: pv-field}
spec: {csi: {driver: d, volumeHandle: h}, nodeAffinity: {required: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [node-1]}]}]}}}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: pv-none}
spec: {csi: {driver: d, volumeHandle: h}, nodeAffinity: {required: {nodeSelectorTerms: [{}]}}}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: pv-free}
spec: {csi: {driver: efs.csi.aws.com, volumeHandle: fs-1}}
---
` + claims

const claims = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {namespace: ns, name: east}
spec: {volumeName: pv-east}
status: {phase: Bound}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {namespace: ns, name: old}
spec: {volumeName: pv-old}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {namespace: ns, name: free}
spec: {volumeName: pv-free}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {namespace: ns, name: field}
spec: {volumeName: pv-field}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {namespace: ns, name: none}
spec: {volumeName: pv-none}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {namespace: ns, name: orphan}
spec: {volumeName: pv-gone}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {namespace: ns, name: lost}
spec: {volumeName: pv-gone}
status: {phase: Lost}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {namespace: ns, name: prebound}
spec: {volumeName: pv-east}
status: {phase: Pending}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {namespace: ns, name: going, deletionTimestamp: "2030-01-01T12:00:00Z"}
spec: {volumeName: pv-east}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {namespace: ns, name: default}
spec: {}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {namespace: ns, name: static}
spec: {storageClassName: ""}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {namespace: ns, name: zonal}
spec: {storageClassName: zonal}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {namespace: ns, name: annotated, annotations: {volume.beta.kubernetes.io/storage-class: zonal}}
spec: {}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {namespace: ns, name: nowhere}
spec: {storageClassName: nowhere}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {namespace: ns, name: eager}
spec: {storageClassName: eager}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {namespace: ns, name: classless}
spec: {storageClassName: no-such-class}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {namespace: ns, name: chosen, annotations: {volume.kubernetes.io/selected-node: node-9}}
spec: {storageClassName: fast}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {namespace: ns, name: local}
spec: {storageClassName: local, accessModes: [ReadWriteOnce], resources: {requests: {storage: 10Gi}}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {namespace: ns, name: local-large}
spec: {storageClassName: local, accessModes: [ReadWriteOnce], resources: {requests: {storage: 15Gi}}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {namespace: ns, name: local-shared}
spec: {storageClassName: local, accessModes: [ReadWriteMany]}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {namespace: ns, name: alone}
spec: {volumeName: pv-free, accessModes: [ReadWriteOncePod]}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {namespace: ns, name: p-mine, ownerReferences: [{apiVersion: v1, kind: Pod, name: p, uid: u, controller: true}]}
spec: {volumeName: pv-east}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {namespace: ns, name: p-theirs}
spec: {volumeName: pv-east}
---
apiVersion: v1
kind: Pod
metadata: {namespace: ns, name: first}
spec: {nodeName: node-1, volumes: [{name: v, persistentVolumeClaim: {claimName: alone}}]}`

func TestVolumes(t *testing.T) {
	l := objects(t, storage)
	const zone = "topology.kubernetes.io/zone"
	tests := []struct{ name, volumes, want string }{
		{"nothing to reach", `[{name: v, emptyDir: {}}, {name: w, configMap: {name: c}}]`, ""},
		{"bound, either of two zones", `[{name: v, persistentVolumeClaim: {claimName: east}}]`, "volumes [" + zone + " In [a b]]\nattach ebs.csi.aws.com vol-1"},
		{"bound, written before CSI", `[{name: v, persistentVolumeClaim: {claimName: old}}]`, "volumes [topology.kubernetes.io/region In [r] " + zone + " In [b c]]\nattach ebs.csi.aws.com vol-2"},
		{"bound, anywhere", `[{name: v, persistentVolumeClaim: {claimName: free}}]`, "attach efs.csi.aws.com fs-1"},
		{"two volumes meet in one zone", `[{name: v, persistentVolumeClaim: {claimName: east}}, {name: w, persistentVolumeClaim: {claimName: old}}]`,
			"volumes [topology.kubernetes.io/region In [r] " + zone + " In [b]]\nattach ebs.csi.aws.com vol-1\nattach ebs.csi.aws.com vol-2"},
		{"one volume twice", `[{name: v, persistentVolumeClaim: {claimName: free}}, {name: w, persistentVolumeClaim: {claimName: free}}]`, "attach efs.csi.aws.com fs-1"},
		{"two volumes apart", `[{name: v, persistentVolumeClaim: {claimName: chosen}}, {name: w, persistentVolumeClaim: {claimName: local}}]`,
			"attach ebs.csi.aws.com ns/chosen\nrefused: volume w: claim local cannot be reached from any node from which the volumes before it can; they are in different places"},
		{"by field", `[{name: v, persistentVolumeClaim: {claimName: field}}]`, "attach d h\nrefused: volume v: PersistentVolume pv-field: it uses node affinity by matchFields (metadata.name), which is not supported yet"},
		{"from no node", `[{name: v, persistentVolumeClaim: {claimName: none}}]`, "attach d h\nrefused: volume v: PersistentVolume pv-none can be reached from no node; correct its nodeAffinity"},
		{"no such claim", `[{name: v, persistentVolumeClaim: {claimName: data}}]`, "refused: volume v: there is no PersistentVolumeClaim ns/data; create it, or correct the name"},
		{"the volume is gone", `[{name: v, persistentVolumeClaim: {claimName: orphan}}]`, "attach ebs.csi.aws.com ns/orphan\nrefused: volume v: claim orphan is bound to PersistentVolume pv-gone, which does not exist; bring it back, or make the claim anew"},
		{"lost", `[{name: v, persistentVolumeClaim: {claimName: lost}}]`, "attach ebs.csi.aws.com ns/lost\nrefused: volume v: claim lost has lost its PersistentVolume pv-gone; bring the volume back, or make the claim anew"},
		{"not quite bound", `[{name: v, persistentVolumeClaim: {claimName: prebound}}]`, "attach ebs.csi.aws.com vol-1\nrefused: volume v: claim prebound is not bound to PersistentVolume pv-east yet; see the events of the claim"},
		{"being deleted", `[{name: v, persistentVolumeClaim: {claimName: going}}]`, "attach ebs.csi.aws.com vol-1\nrefused: volume v: claim going is being deleted; make it anew once it is gone"},

		{"to be made, default class", `[{name: v, persistentVolumeClaim: {claimName: default}}]`, "attach ebs.csi.aws.com ns/default"},
		{"no class wanted", `[{name: v, persistentVolumeClaim: {claimName: static}}]`, "refused: volume v: claim static is not bound, and without a storage class no volume is made for it; make a PersistentVolume for it, or name a class"},
		{"to be made in some places", `[{name: v, persistentVolumeClaim: {claimName: zonal}}]`, "volumes [rack In [r1 r2] " + zone + " In [b]]\nvolumes [" + zone + " In [a]]\nattach ebs.csi.aws.com ns/zonal"},
		{"class by annotation", `[{name: v, persistentVolumeClaim: {claimName: annotated}}]`, "volumes [rack In [r1 r2] " + zone + " In [b]]\nvolumes [" + zone + " In [a]]\nattach ebs.csi.aws.com ns/annotated"},
		{"to be made nowhere", `[{name: v, persistentVolumeClaim: {claimName: nowhere}}]`, "attach ebs.csi.aws.com ns/nowhere\nrefused: volume v: StorageClass nowhere of claim nowhere allows no place at all; correct its allowedTopologies"},
		{"should be bound already", `[{name: v, persistentVolumeClaim: {claimName: eager}}]`, "attach ebs.csi.aws.com ns/eager\nrefused: volume v: claim eager is not bound yet, and its StorageClass eager does not wait for a node; see the events of the claim"},
		{"no such class", `[{name: v, persistentVolumeClaim: {claimName: classless}}]`, "refused: volume v: claim classless names the StorageClass no-such-class, which does not exist; create it, or name another"},
		{"being made for a node", `[{name: v, persistentVolumeClaim: {claimName: chosen}}]`, "volumes [kubernetes.io/hostname In [node-9]]\nattach ebs.csi.aws.com ns/chosen"},
		{"disks of nodes", `[{name: v, persistentVolumeClaim: {claimName: local}}]`, "volumes [kubernetes.io/hostname In [node-1 node-2]]"},
		{"disks of nodes that are large enough", `[{name: v, persistentVolumeClaim: {claimName: local-large}}]`, "volumes [kubernetes.io/hostname In [node-2]]"},
		{"no disk that pods share", `[{name: v, persistentVolumeClaim: {claimName: local-shared}}]`, "refused: volume v: no PersistentVolume of StorageClass local is free and fits claim local-shared; make one"},
		{"another pod has it for itself", `[{name: v, persistentVolumeClaim: {claimName: alone}}]`, "attach efs.csi.aws.com fs-1\nrefused: volume v: claim alone may be used by one pod only (ReadWriteOncePod), and pod first uses it; wait until that has ended"},

		{"ephemeral", `[{name: v, ephemeral: {volumeClaimTemplate: {spec: {storageClassName: zonal}}}}]`, "volumes [rack In [r1 r2] " + zone + " In [b]]\nvolumes [" + zone + " In [a]]\nattach ebs.csi.aws.com ns/p-v"},
		{"ephemeral, default class", `[{name: v, ephemeral: {volumeClaimTemplate: {spec: {}}}}]`, "attach ebs.csi.aws.com ns/p-v"},
		{"ephemeral, no such class", `[{name: v, ephemeral: {volumeClaimTemplate: {spec: {storageClassName: no-such-class}}}}]`, "refused: volume v: claim p-v names the StorageClass no-such-class, which does not exist; create it, or name another"},
		{"ephemeral, made", `[{name: mine, ephemeral: {}}]`, "volumes [" + zone + " In [a b]]\nattach ebs.csi.aws.com vol-1"},
		{"ephemeral, the name is taken", `[{name: theirs, ephemeral: {}}]`, "refused: volume theirs: PersistentVolumeClaim ns/p-theirs exists, and does not belong to this pod; delete one of the two"},
		{"described in the pod", `[{name: v, awsElasticBlockStore: {volumeID: vol-3}}]`, "attach ebs.csi.aws.com vol-3"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := podSpec(t, "metadata: {namespace: ns, name: p, uid: u}\nspec: {volumes: "+tt.volumes+"}")
			if diff := cmp.Diff(tt.want, words(l.Pod(p))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNoDefaultClass(t *testing.T) {
	l := objects(t, claims)
	got := l.Pod(podSpec(t, "metadata: {namespace: ns}\nspec: {volumes: [{name: v, persistentVolumeClaim: {claimName: default}}]}"))
	if !strings.Contains(got.Refused, "names no storage class, and there is no default one") {
		t.Errorf("refused: %q", got.Refused)
	}
}

func TestTheOldestPodHasAClaimForItself(t *testing.T) {
	l := objects(t, storage)
	l.users = nil // the pod that has it elsewhere in these tests
	pod := func(name, more string) *corev1.Pod {
		return podSpec(t, "metadata: {namespace: ns, name: "+name+more)
	}
	const volume = `volumes: [{name: v, persistentVolumeClaim: {claimName: alone}}]}`
	ended := pod("ended", "}\nstatus: {phase: Succeeded}\nspec: {nodeName: node-1, "+volume)
	old := pod("old", ", creationTimestamp: '2030-01-01T12:00:00Z'}\nspec: {"+volume)
	young := pod("young", ", creationTimestamp: '2030-01-01T13:00:00Z'}\nspec: {"+volume)
	for _, p := range []*corev1.Pod{young, ended, old} {
		l.Add(p)
	}
	if got := l.Pod(young).Refused; !strings.Contains(got, "pod old uses it") {
		t.Errorf("the younger pod waits for the older one, got %q", got)
	}
	if got := l.Pod(old).Refused; strings.Contains(got, "one pod only") {
		t.Errorf("the older one may have it, got %q", got)
	}
	bound := pod("bound", ", creationTimestamp: '2030-01-01T14:00:00Z'}\nspec: {nodeName: node-1, "+volume)
	if l.Add(bound); !strings.Contains(l.Pod(old).Refused, "pod bound uses it") {
		t.Errorf("one that runs has it")
	}
}

func TestTooManyWays(t *testing.T) {
	var text strings.Builder
	text.WriteString("apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: c}\nprovisioner: p\nvolumeBindingMode: WaitForFirstConsumer\nallowedTopologies:\n")
	for i := range 20 {
		fmt.Fprintf(&text, "- matchLabelExpressions: [{key: k%d, values: [x]}, {key: z, values: [x]}]\n", i)
	}
	l := objects(t, text.String())
	volume := `{name: v, ephemeral: {volumeClaimTemplate: {spec: {storageClassName: c}}}}`
	if got := l.Pod(podSpec(t, "spec: {volumes: ["+volume+"]}")); len(got.Volumes) != 20 {
		t.Errorf("one volume: %d ways", len(got.Volumes))
	}
	three := strings.Repeat(volume+", ", 3)
	if got := l.Pod(podSpec(t, "spec: {volumes: ["+three+"]}")); !strings.Contains(got.Refused, "too many") || len(got.Volumes) > mostVolumeTerms {
		t.Errorf("three volumes: %q, %d ways", got.Refused, len(got.Volumes))
	}
}

func TestAttachLimits(t *testing.T) {
	l := objects(t, `
apiVersion: storage.k8s.io/v1
kind: CSINode
metadata: {name: node-1}
spec: {drivers: [{name: x, nodeID: i}, {name: ebs.csi.aws.com, nodeID: i, allocatable: {count: 25}}, {name: b, nodeID: i, allocatable: {count: 0}}]}`)
	if diff := cmp.Diff([]quantity.Amount{{Name: "b"}, {Name: "ebs.csi.aws.com", Value: 25}}, l.AttachLimits("node-1")); diff != "" {
		t.Error(diff)
	}
	if got := l.AttachLimits("other"); got != nil {
		t.Errorf("nobody told, got %v", got)
	}
}
