package aws_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"karpenter/internal/aws"
	"karpenter/internal/cloud"
	"karpenter/sim/ec2"
)

// TestRightsAreTriedOut: a class for which a right to launch is missing says which,
// before anybody wants a machine of it, and nothing is started by that.
func TestRightsAreTriedOut(t *testing.T) {
	allowed := func(actions ...string) *ec2.Policy {
		p, err := ec2.ParsePolicy(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Resource":"*","Action":["ec2:Describe*","iam:*Profile*","ssm:*","eks:*","` +
			strings.Join(actions, `","`) + `"]}]}`)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	most := []string{"ec2:CreateLaunchTemplate", "ec2:CreateFleet", "ec2:RunInstances", "ec2:CreateTags", "iam:PassRole"}
	without := func(missing string) []string {
		var out []string
		for _, a := range most {
			if a != missing {
				out = append(out, a)
			}
		}
		return out
	}
	for missing, reason := range map[string]string{
		"":                         "",
		"ec2:CreateLaunchTemplate": "CreateLaunchTemplateAuthCheckFailed",
		"ec2:CreateFleet":          "CreateFleetAuthCheckFailed",
		"ec2:RunInstances":         "RunInstancesAuthCheckFailed",
		"iam:PassRole":             "RunInstancesAuthCheckFailed",
	} {
		t.Run("without "+missing, func(t *testing.T) {
			r := newRig(t, ec2.Options{})
			ref := r.nodeClass("demo", gettingStarted)
			if _, err := r.Resolve(t.Context(), ref); err != nil { // the instance profile is new, and not tried out yet
				t.Fatal(err)
			}
			r.sim.SetPolicy(allowed(without(missing)...))
			check := func() *cloud.MissingRightError {
				f, err := r.Resolve(t.Context(), ref)
				var right *cloud.MissingRightError
				if errors.As(err, &right); err != nil && right == nil {
					t.Fatal(err)
				}
				if (f.Trouble[aws.PartContent] != nil) != (right != nil) {
					t.Errorf("trouble %v", f.Trouble)
				}
				return right
			}
			r.clock.pass(time.Minute)
			got := check()
			if got == nil && reason != "" || got != nil && (got.Reason != reason || !strings.Contains(got.Error(), got.Right)) {
				t.Fatalf("said %v, want %q", got, reason)
			}
			calls := r.sim.CallCounts()["CreateFleet"]
			for range 20 {
				check()
			}
			if more := r.sim.CallCounts()["CreateFleet"] - calls; more != 0 {
				t.Errorf("%d more calls in the same minute", more)
			}
			r.sim.SetPolicy(nil)
			r.clock.pass(time.Minute)
			if got := check(); got != nil {
				t.Errorf("it was given, and a minute later: %v", got)
			}
			if n := len(r.sim.Instances()); n != 0 {
				t.Errorf("%d machines were started", n)
			}
		})
	}
	t.Run("not wanted", func(t *testing.T) {
		r := newRig(t, ec2.Options{})
		r.settings.DisableDryRun = true
		ref := r.nodeClass("demo", gettingStarted)
		if _, err := r.Resolve(t.Context(), ref); err != nil {
			t.Fatal(err)
		}
		r.sim.SetPolicy(allowed())
		r.clock.pass(time.Minute)
		if _, err := r.Resolve(t.Context(), ref); err != nil {
			t.Error(err)
		}
		if n := r.sim.CallCounts()["CreateFleet"]; n != 0 {
			t.Errorf("%d calls", n)
		}
	})
}
