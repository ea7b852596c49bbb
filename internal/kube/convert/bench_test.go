package convert

import "testing"

func BenchmarkPod(b *testing.B) {
	for name, text := range map[string]string{
		"plain":  `{metadata: {namespace: ns, name: p, labels: {app: a}, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: rs, uid: r, controller: true}]}, spec: {containers: [{name: a, resources: {requests: {cpu: 1, memory: 1Gi}}}]}}`,
		"spread": `{metadata: {namespace: ns, name: p, labels: {app: a}}, spec: {topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: a}}}], containers: [{name: a, resources: {requests: {cpu: 1, memory: 1Gi}}}]}}`,
		"volume": `{metadata: {namespace: ns, name: p}, spec: {volumes: [{name: v, persistentVolumeClaim: {claimName: east}}], containers: [{name: a, resources: {requests: {cpu: 1, memory: 1Gi}}}]}}`,
	} {
		l, p := objects(b, storage), podSpec(b, text)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				l.Pod(p)
			}
		})
	}
}
