package pool

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	apiv1 "karpenter/api/v1"
)

// TestRegistrationHealth: each letter is one machine more: j joined, t did not join
// in time, l was not launched in time, r was refused by the cloud, b boots. P and C
// change the pool or its class, R restarts the controller.
func TestRegistrationHealth(t *testing.T) {
	for story, want := range map[string]metav1.ConditionStatus{
		"": "Unknown", "b": "Unknown", "j": "True", "t": "Unknown", "r": "Unknown", "rr": "Unknown", "jt": "True", "tt": "False", "tl": "False", "jtjt": "False",
		"ttj": "False", "ttjj": "False", "ttjjj": "True", "ttP": "Unknown", "ttC": "Unknown", "ttCj": "True", "ttR": "False", "ttRjjj": "True", "jR": "True", "jRtt": "False", "jjjjRR": "True",
	} {
		t.Run(story, func(t *testing.T) {
			start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			now := start
			ctl := &Controller{Now: func() time.Time { return now }}
			p := nodePool(nil)
			p.UID = "pool"
			class := ec2NodeClass("True", "")
			var claims []apiv1.NodeClaim
			look := func() {
				ctl.Client = controller(t, nil, class.DeepCopy()).Client
				ctl.Kind = controller(t, nil).Kind
				ctl.judge(t.Context(), p, claims)
			}
			look()
			for i, step := range story {
				c := newer(fmt.Sprint("m", i), "test")
				c.UID, c.CreationTimestamp = types.UID(c.Name), metav1.NewTime(start)
				set := func(kind string, status metav1.ConditionStatus) {
					c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: "Because", Message: "of this", LastTransitionTime: metav1.NewTime(start)})
				}
				gone := func(after time.Duration) { at := metav1.NewTime(start.Add(after)); c.DeletionTimestamp = &at }
				switch step {
				case 'j':
					set(apiv1.ConditionLaunched, "True")
					set(apiv1.ConditionRegistered, "True")
				case 't':
					set(apiv1.ConditionLaunched, "True")
					set(apiv1.ConditionRegistered, "Unknown")
					gone(15 * time.Minute)
				case 'l':
					set(apiv1.ConditionLaunched, "Unknown")
					gone(5 * time.Minute)
				case 'r':
					set(apiv1.ConditionLaunched, "False")
					gone(10 * time.Minute)
				case 'P':
					p.Generation++
				case 'C':
					class.Generation++
				case 'R':
					ctl = &Controller{Now: ctl.Now}
				}
				if step >= 'a' {
					claims = append(claims, *c)
				}
				look()
				look() // nothing counts twice
			}
			got := meta.FindStatusCondition(p.Status.Conditions, apiv1.ConditionNodeRegistrationHealthy)
			if got.Status != want || want == "False" && !strings.Contains(got.Message, "did not join") {
				t.Errorf("%+v, want %s", got, want)
			}
			if story == "tl" && got.Reason != "Because" {
				t.Errorf("the reason of the launch is not shown: %+v", got)
			}
		})
	}
}
