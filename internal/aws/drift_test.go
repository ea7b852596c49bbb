package aws_test

import (
	"strings"
	"testing"
	"time"

	"karpenter/internal/aws"
	"karpenter/sim/ec2"
)

// TestDrift: a machine is held against what its class selects now.
func TestDrift(t *testing.T) {
	subnets := func(name string) string { return "  subnetSelectorTerms: [{tags: {Name: \"" + name + "\"}}]\n" }
	const groups = "  securityGroupSelectorTerms: [{id: sg-0xxxxxxxxxxxxxxxxx6}, {name: default}]\n"
	images := func(alias string) string {
		return "  amiSelectorTerms: [{alias: " + alias + "}]\n  instanceProfile: p\n"
	}
	for name, c := range map[string]struct {
		next           string // what the class says after the launch
		reason, detail string
	}{
		"nothing has changed":                {places + images("al2023@latest"), "", ""},
		"another image":                      {places + images("al2@latest"), aws.AMIDrift, "ami-"},
		"another subnet":                     {subnets("*PrivateSubnet3") + groups + images("al2023@latest"), aws.SubnetDrift, "subnet-"},
		"more subnets":                       {subnets("*PrivateSubnet*") + groups + images("al2023@latest"), "", ""},
		"another security group":             {places[:strings.Index(places, "  securityGroup")] + "  securityGroupSelectorTerms: [{name: default}]\n" + images("al2023@latest"), aws.SecurityGroupDrift, "sg-"},
		"another image and another subnet":   {subnets("*PrivateSubnet3") + groups + images("al2@latest"), aws.AMIDrift, "ami-"},
		"an image that does not exist (yet)": {places + images("bottlerocket@v9.9.9"), "", ""},
		"no subnet at all":                   {subnets("nowhere") + groups + images("al2023@latest"), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, ec2.Options{})
			ref := r.nodeClass("demo", places+images("al2023@latest"))
			i := r.launch("t1", r.prepare(newer(ref, "t1")))
			r.nodeClass("demo", c.next)
			m := aws.Running{ID: i.ID, ImageID: i.ImageID, Labels: i.Labels}
			reason, detail, err := r.Drifted(t.Context(), ref, m)
			if reason != c.reason || !strings.Contains(detail, c.detail) {
				t.Errorf("%q (%s), error %v; want %q", reason, detail, err, c.reason)
			}
			if broken := strings.HasPrefix(name, "an image that") || strings.HasPrefix(name, "no subnet"); broken != (err != nil) {
				t.Errorf("error %v", err)
			}
			if reason, _, _ := r.Drifted(t.Context(), ref, aws.Running{ImageID: i.ImageID, Labels: i.Labels}); reason != "" && reason != aws.AMIDrift {
				t.Errorf("only the image is asked about: %s", reason)
			}
		})
	}
}

// TestNothingDriftsWhileAWSIsAway: what cannot be looked up is an error, and no
// reason to replace a machine.
func TestNothingDriftsWhileAWSIsAway(t *testing.T) {
	r := newRig(t, ec2.Options{})
	ref := r.nodeClass("demo", places+"  amiSelectorTerms: [{alias: al2023@latest}]\n  instanceProfile: p\n")
	i := r.launch("t1", r.prepare(newer(ref, "t1")))
	r.fault(ec2.Fault{On: "DescribeInstances", Error: "UnauthorizedOperation"})
	reason, _, err := r.Drifted(t.Context(), ref, aws.Running{ID: i.ID, ImageID: i.ImageID, Labels: i.Labels})
	if err == nil || reason != "" {
		t.Errorf("%q, error %v", reason, err)
	}
	if reason, _, err = r.Drifted(t.Context(), ref, aws.Running{ID: "i-0", ImageID: i.ImageID, Labels: i.Labels}); reason != "" || err == nil {
		t.Errorf("an unknown machine: %q, %v", reason, err)
	}
}

// TestTemplateOfTheUserNeverDrifts: what is in it is not known.
func TestTemplateOfTheUserNeverDrifts(t *testing.T) {
	r := newRig(t, ec2.Options{})
	r.class("theirs", "  subnetSelector: {Name: \"*PrivateSubnet1\"}\n  launchTemplate: theirs\n")
	if reason, _, err := r.Drifted(t.Context(), ref("theirs"), aws.Running{ID: "i-0", ImageID: "ami-0"}); reason != "" || err != nil {
		t.Errorf("%q, %v", reason, err)
	}
}

// TestRefreshIntervals: answers about images and subnets are believed as long as
// the settings say.
func TestRefreshIntervals(t *testing.T) {
	r := newRig(t, ec2.Options{})
	r.settings.ImagesLast, r.settings.SubnetsLast = 10*time.Minute, 3*time.Minute
	look := func() {
		t.Helper()
		if _, err := r.Resolve(t.Context(), ref("default")); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 {
		look()
		r.clock.pass(time.Minute)
	}
	calls := r.sim.CallCounts()
	if calls["DescribeSubnets"] != 7 || calls["DescribeSecurityGroups"] != 20 || calls["DescribeImages"] != 2 {
		t.Errorf("calls in twenty minutes: %v", calls)
	}
}

// TestVersionOfEKS: the version of the cluster is what EKS tells, where the
// settings want that; as long as it does not answer the other one serves.
func TestVersionOfEKS(t *testing.T) {
	r := newRig(t, ec2.Options{})
	image := func() string {
		t.Helper()
		r.clock.pass(2 * time.Minute)
		f, err := r.Resolve(t.Context(), ref("default"))
		if err != nil {
			t.Fatal(err)
		}
		return f.Images[0].Name
	}
	r.settings.EKSControlPlane = true
	if name := image(); !strings.Contains(name, "1.37") {
		t.Errorf("EKS does not know the cluster: %s", name)
	}
	r.sim.Edit(func(w *ec2.World) { w.Clusters = append(w.Clusters, ec2.Cluster{Name: "workshop", Version: "1.36"}) })
	if name := image(); !strings.Contains(name, "1.36") {
		t.Errorf("EKS says 1.36: %s", name)
	}
	r.settings.EKSControlPlane = false
	if name := image(); !strings.Contains(name, "1.37") {
		t.Errorf("EKS is not asked: %s", name)
	}
}
