package rights

import (
	"fmt"
	"strings"
	"testing"
)

const objects = `---
kind: ClusterRole
metadata: {name: core}
rules:
- {apiGroups: [""], resources: [pods, pods/status], verbs: [list, patch]}
---
kind: ClusterRole
metadata: {name: admin}
rules:
- {apiGroups: ["*"], resources: ["*"], verbs: ["*"]}
---
kind: Role
metadata: {name: core, namespace: home}
rules:
- {apiGroups: [coordination.k8s.io], resources: [leases], resourceNames: [a], verbs: [get]}
---
kind: ClusterRoleBinding
metadata: {name: core}
roleRef: {kind: ClusterRole, name: core}
subjects: [{kind: ServiceAccount, name: robot, namespace: home}]
---
kind: RoleBinding
metadata: {name: core, namespace: home}
roleRef: {kind: Role, name: core}
subjects: [{kind: ServiceAccount, name: robot, namespace: home}]
---
kind: RoleBinding
metadata: {name: other, namespace: home}
roleRef: {kind: ClusterRole, name: admin}
subjects: [{kind: ServiceAccount, name: somebody, namespace: home}]
`

const robot = "system:serviceaccount:home:robot"

func line(user, verb, group, resource, sub, namespace, name, decision string) string {
	return fmt.Sprintf(`{"user":{"username":%q},"verb":%q,"objectRef":{"apiGroup":%q,"resource":%q,"subresource":%q,"namespace":%q,"name":%q},"annotations":{"authorization.k8s.io/decision":%q}}`+"\n",
		user, verb, group, resource, sub, namespace, name, decision)
}

func TestUnusedAndRefused(t *testing.T) {
	granted, err := Granted([]byte(objects), "home", "robot")
	if err != nil {
		t.Fatal(err)
	}
	log := line(robot, "list", "", "pods", "", "", "", "allow") +
		line(robot, "patch", "", "pods", "status", "x", "p", "allow") +
		line(robot, "get", "coordination.k8s.io", "leases", "", "home", "b", "allow") + // another lease
		line(robot, "delete", "", "nodes", "", "", "n", "forbid") +
		line("admin", "patch", "", "pods", "", "x", "p", "allow") + // somebody else
		`{"user":{"username":"` // cut off
	requests, err := FromAudit(strings.NewReader(log), robot)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(requests.Refused), "[delete nodes n]"; got != want {
		t.Errorf("refused %s, want %s", got, want)
	}
	if got, want := fmt.Sprint(Unused(granted, requests)), "[patch pods list pods/status get leases.coordination.k8s.io a in home]"; got != want {
		t.Errorf("unused %s, want %s", got, want)
	}
}

func TestABindingWithoutItsRoleIsAnError(t *testing.T) {
	_, err := Granted([]byte(strings.Replace(objects, "metadata: {name: core}\nrules", "metadata: {name: gone}\nrules", 1)), "home", "robot")
	if err == nil || !strings.Contains(err.Error(), "core") {
		t.Errorf("error %v", err)
	}
}
