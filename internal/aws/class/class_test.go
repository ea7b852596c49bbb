package class

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"karpenter/api/aws/v1alpha1"
	"karpenter/internal/aws/family"
	"karpenter/internal/cloud"
	"karpenter/internal/core/world"
)

func read(t *testing.T, spec string) (Class, error) {
	t.Helper()
	var n v1alpha1.AWSNodeTemplate
	if err := yaml.UnmarshalStrict([]byte("metadata: {name: default}\nspec:\n"+spec), &n); err != nil {
		t.Fatal(err)
	}
	return FromNodeTemplate(&n)
}

func TestWorkshopTemplate(t *testing.T) {
	got, err := read(t, `
  subnetSelector: {Name: "birenchong-eks-vpc-stack-PrivateSubnet*"}
  securityGroupSelector: {aws-ids: "sg-0xxxxxxxxxxxxxxxxx6"}
  tags: {KarpenerProvisionerName: default, NodeType: karpenter-workshop, IntentLabel: apps}
`)
	if err != nil {
		t.Fatal(err)
	}
	want := Class{
		Ref:            world.ClassRef{Group: "karpenter.k8s.aws", Kind: "AWSNodeTemplate", Name: "default"},
		Family:         family.AL2,
		Release:        Release{family.AL2, "latest"},
		Subnets:        Selector{{{"tag:Name", []string{"birenchong-eks-vpc-stack-PrivateSubnet*"}}}},
		SecurityGroups: Selector{{{"group-id", []string{"sg-0xxxxxxxxxxxxxxxxx6"}}}},
		Tags:           map[string]string{"KarpenerProvisionerName": "default", "NodeType": "karpenter-workshop", "IntentLabel": "apps"},
		Metadata:       Metadata{"enabled", AsCluster, 2, "required"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("class (-want +got):\n%s", diff)
	}
}

func TestSelectors(t *testing.T) {
	got, err := read(t, `
  subnetSelector: {z: "*", aws-ids: " subnet-1, subnet-2,", Name: "a, b*"}
  securityGroupSelector: {Name: "*", role: "x ,y"}
  amiSelector: {aws-ids: ami-1, Name: "one,two"}
`)
	if err != nil {
		t.Fatal(err)
	}
	for sel, want := range map[string]string{
		got.Subnets.String():        "subnet-id=subnet-1,subnet-2 and tag-key=z and tag:Name=a,b*",
		got.SecurityGroups.String(): "tag:Name=* and tag:role=x,y",
		got.Images.String():         "image-id=ami-1 and tag:Name=one,two",
	} {
		if sel != want {
			t.Errorf("filters = %q, want %q", sel, want)
		}
	}
}

func TestBlockDevicesAreRoundedUp(t *testing.T) {
	got, err := read(t, `
  subnetSelector: {a: b}
  securityGroupSelector: {a: b}
  metadataOptions: {httpTokens: optional, httpPutResponseHopLimit: 5}
  blockDeviceMappings:
  - {deviceName: /dev/xvda, ebs: {volumeSize: 1G, volumeType: io1, iops: 1000, encrypted: false, deleteOnTermination: true}}
  - {deviceName: /dev/xvdb, ebs: {volumeSize: 20Gi, throughput: 200, kmsKeyID: key}}
  - {deviceName: /dev/xvdc, ebs: {snapshotID: snap-1}}
`)
	if err != nil {
		t.Fatal(err)
	}
	want := []BlockDevice{
		{Device: "/dev/xvda", SizeGiB: 1, Type: "io1", IOPS: new(int64(1000)), Encrypted: new(false), DeleteOnTermination: new(true)},
		{Device: "/dev/xvdb", SizeGiB: 20, Throughput: new(int64(200)), KMSKey: "key"},
		{Device: "/dev/xvdc", Snapshot: "snap-1"},
	}
	if diff := cmp.Diff(want, got.Devices()); diff != "" {
		t.Errorf("devices (-want +got):\n%s", diff)
	}
	if want := (Metadata{Tokens: "optional", HopLimit: 5}); got.Metadata != want {
		t.Errorf("metadata = %+v, want %+v", got.Metadata, want)
	}
}

func TestBadTemplatesNameTheField(t *testing.T) {
	const ok = "  subnetSelector: {a: b}\n  securityGroupSelector: {a: b}\n"
	for name, tt := range map[string]struct{ spec, field, text string }{
		"no subnets":       {"  securityGroupSelector: {a: b}", "spec.subnetSelector", "required"},
		"no groups":        {"  subnetSelector: {a: b}", "spec.securityGroupSelector", "required unless launchTemplate"},
		"empty value":      {"  subnetSelector: {a: ''}\n  securityGroupSelector: {a: b}", "spec.subnetSelector.a", "empty"},
		"only commas":      {"  subnetSelector: {a: ' , '}\n  securityGroupSelector: {a: b}", "spec.subnetSelector.a", "empty"},
		"empty key":        {"  subnetSelector: {'': b}\n  securityGroupSelector: {a: b}", "spec.subnetSelector", "a key is empty"},
		"bad id":           {"  subnetSelector: {aws-ids: 'subnet-1,net-2'}\n  securityGroupSelector: {a: b}", "spec.subnetSelector.aws-ids", "subnet-[0-9a-z]+"},
		"other family":     {ok + "  amiFamily: Windows2022", "spec.amiFamily", `"Windows2022" is not known: use one of AL2, AL2023, Bottlerocket, Ubuntu, Custom`},
		"custom family":    {ok + "  amiFamily: Custom", "spec.amiSelector", "required for amiFamily Custom"},
		"both":             {"  subnetSelector: {a: b}\n  launchTemplate: mine\n  userData: x", "spec.userData", "launchTemplate"},
		"too small":        {ok + "  blockDeviceMappings: [{deviceName: /dev/xvda, ebs: {volumeSize: 1M}}]", "spec.blockDeviceMappings[0].ebs.volumeSize", "between 1G and 64T, not 1M"},
		"too large":        {ok + "  blockDeviceMappings: [{deviceName: /dev/xvda, ebs: {volumeSize: 65T}}]", "spec.blockDeviceMappings[0].ebs.volumeSize", "65T"},
		"no size":          {ok + "  blockDeviceMappings: [{deviceName: /dev/xvda, ebs: {}}]", "spec.blockDeviceMappings[0].ebs.volumeSize", "snapshotID"},
		"no volume":        {ok + "  blockDeviceMappings: [{deviceName: /dev/xvda}]", "spec.blockDeviceMappings[0].ebs", "required"},
		"no device":        {ok + "  blockDeviceMappings: [{ebs: {volumeSize: 1G}}]", "spec.blockDeviceMappings[0].deviceName", "required"},
		"device twice":     {ok + "  blockDeviceMappings: [{deviceName: a, ebs: {volumeSize: 1G}}, {deviceName: a, ebs: {volumeSize: 2G}}]", "spec.blockDeviceMappings[1].deviceName", "twice"},
		"iops":             {ok + "  blockDeviceMappings: [{deviceName: a, ebs: {volumeSize: 1G, iops: 0}}]", "spec.blockDeviceMappings[0].ebs.iops", "1 or more"},
		"throughput":       {ok + "  blockDeviceMappings: [{deviceName: a, ebs: {volumeSize: 1G, throughput: -1}}]", "spec.blockDeviceMappings[0].ebs.throughput", "1 or more"},
		"volume type":      {ok + "  blockDeviceMappings: [{deviceName: a, ebs: {volumeSize: 1G, volumeType: ssd}}]", "spec.blockDeviceMappings[0].ebs.volumeType", "gp3"},
		"metadata":         {ok + "  metadataOptions: {httpTokens: maybe}", "spec.metadataOptions.httpTokens", "optional or required"},
		"hop limit":        {ok + "  metadataOptions: {httpPutResponseHopLimit: 65}", "spec.metadataOptions.httpPutResponseHopLimit", "between 1 and 64"},
		"empty tag":        {ok + "  tags: {'': x}", "spec.tags", "empty"},
		"tag of AWS":       {ok + "  tags: {a: b, 'Aws:x': x}", "spec.tags", `"Aws:x" cannot be set`},
		"long tag key":     {ok + "  tags: {" + strings.Repeat("k", 129) + ": x}", "spec.tags", "128 characters"},
		"long tag value":   {ok + "  tags: {x: " + strings.Repeat("v", 257) + "}", "spec.tags", "256 in a value"},
		"several problems": {"  launchTemplate: mine\n  amiFamily: Ubuntu", "spec.subnetSelector", "; spec.amiFamily: "},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := read(t, tt.spec)
			var bad *cloud.BadClassError
			if !errors.As(err, &bad) {
				t.Fatalf("err = %v, want a BadClassError", err)
			}
			if bad.Field != tt.field || !strings.Contains(bad.Problem, tt.text) || bad.Class.Name != "default" {
				t.Errorf("err = %v, want field %s and %q in it", err, tt.field, tt.text)
			}
		})
	}
}

func TestLaunchTemplateNeedsNoGroups(t *testing.T) {
	got, err := read(t, "  subnetSelector: {a: b}\n  launchTemplate: mine")
	if err != nil || got.LaunchTemplate != "mine" || !got.SecurityGroups.IsZero() {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestInline(t *testing.T) {
	ref := world.ClassRef{Kind: "Provisioner", Name: "test"}
	inline := func(json string) (Class, error) { ref.Inline = json; return FromInline(ref) }

	got, err := inline(`{"apiVersion":"extensions.karpenter.sh/v1alpha1","kind":"AWS","subnetSelector":{"a":"b"},"securityGroupSelector":{"a":"b"},"instanceProfile":"p"}`)
	if err != nil || got.InstanceProfile != "p" || got.Field("subnetSelector") != "spec.provider.subnetSelector" {
		t.Errorf("got %+v, %v", got, err)
	}
	for json, field := range map[string]string{
		`{"subnetSelector":{"a":"b"},"securityGroupSelector":{"a":"b"},"userData":"x"}`: "spec.provider",
		`{"subnetSelector":`: "spec.provider",
		`{"kind":"GCP","subnetSelector":{"a":"b"},"securityGroupSelector":{"a":"b"}}`:      "spec.provider.kind",
		`{"apiVersion":"v2","subnetSelector":{"a":"b"},"securityGroupSelector":{"a":"b"}}`: "spec.provider.apiVersion",
		`{"securityGroupSelector":{"a":"b"}}`:                                              "spec.provider.subnetSelector",
	} {
		_, err := inline(json)
		var bad *cloud.BadClassError
		if !errors.As(err, &bad) || bad.Field != field || bad.Class.Kind != "Provisioner" {
			t.Errorf("%s: err = %v, want a BadClassError about %s of the Provisioner", json, err, field)
		}
	}
}
