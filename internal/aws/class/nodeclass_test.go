package class

import (
	"errors"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/internal/aws/family"
	"karpenter/internal/cloud"
	"karpenter/internal/core/world"
)

func readV1(t *testing.T, spec string) (Class, error) {
	t.Helper()
	var n awsv1.EC2NodeClass
	if err := yaml.UnmarshalStrict([]byte("metadata: {name: default, uid: 1-2-3}\nspec:\n"+spec), &n); err != nil {
		t.Fatal(err)
	}
	return FromNodeClass(&n)
}

const usual = `
  subnetSelectorTerms: [{tags: {karpenter.sh/discovery: demo}}]
  securityGroupSelectorTerms: [{tags: {karpenter.sh/discovery: demo}}]
`

func TestGettingStartedClass(t *testing.T) {
	got, err := readV1(t, usual+`
  role: team/KarpenterNodeRole-demo
  amiSelectorTerms: [{alias: al2023@latest}]
`)
	if err != nil {
		t.Fatal(err)
	}
	want := Class{
		Ref:            world.ClassRef{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "default"},
		UID:            "1-2-3",
		Family:         family.AL2023,
		Release:        Release{family.AL2023, "latest"},
		Role:           "KarpenterNodeRole-demo", // without its path
		Subnets:        Selector{{{"tag:karpenter.sh/discovery", []string{"demo"}}}},
		SecurityGroups: Selector{{{"tag:karpenter.sh/discovery", []string{"demo"}}}},
		Metadata:       Metadata{"enabled", "disabled", 1, "required"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("class (-want +got):\n%s", diff)
	}
}

func TestEverythingAnEC2NodeClassCanSay(t *testing.T) {
	got, err := readV1(t, `
  subnetSelectorTerms: [{id: subnet-2}, {tags: {a: b, c: "*"}}, {id: subnet-1}]
  securityGroupSelectorTerms: [{name: my group}, {id: sg-1}, {tags: {a: "*"}}]
  amiSelectorTerms: [{name: mine-*}, {name: theirs, owner: "123456789012"}, {tags: {a: b}}, {id: ami-1}, {ssmParameter: /my/image}]
  amiFamily: Bottlerocket
  instanceProfile: Mine
  associatePublicIPAddress: false
  userData: x
  tags: {team: ops}
  kubelet: {maxPods: 42, systemReserved: {cpu: 100m}, evictionHard: {memory.available: 5%}, imageGCHighThresholdPercent: 85, cpuCFSQuota: false}
  blockDeviceMappings:
  - {deviceName: /dev/xvda, ebs: {volumeSize: 4Gi}}
  - {deviceName: /dev/xvdb, rootVolume: true, ebs: {snapshotID: snap-1, volumeInitializationRate: 200}}
  instanceStorePolicy: RAID0
  detailedMonitoring: true
  metadataOptions: {httpPutResponseHopLimit: 3}
  context: ctx
`)
	if err != nil {
		t.Fatal(err)
	}
	want := Class{
		Ref: world.ClassRef{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "default"}, UID: "1-2-3", Family: family.Bottlerocket,
		Subnets:        Selector{{{"subnet-id", []string{"subnet-1", "subnet-2"}}}, {{"tag-key", []string{"c"}}, {"tag:a", []string{"b"}}}},
		SecurityGroups: Selector{{{"group-id", []string{"sg-1"}}}, {{"group-name", []string{"my group"}}}, {{"tag:a", []string{"*"}}}},
		Images: Selector{
			{{"image-id", []string{"ami-1"}}},
			{{"name", []string{"mine-*"}}, {Owner, []string{"amazon", "self"}}},
			{{"name", []string{"theirs"}}, {Owner, []string{"123456789012"}}},
			{{Parameter, []string{"/my/image"}}},
			{{"tag:a", []string{"b"}}},
		},
		InstanceProfile: "Mine", PublicIP: new(false), UserData: "x", Tags: map[string]string{"team": "ops"}, Context: "ctx",
		Kubelet: &world.Kubelet{
			MaxPods: new(int32(42)), SystemReserved: map[string]string{"cpu": "100m"}, EvictionHard: map[string]string{"memory.available": "5%"},
			ImageGCHighThresholdPercent: new(int32(85)), CPUCFSQuota: new(false),
		},
		BlockDevices: []BlockDevice{
			{Device: "/dev/xvda", SizeGiB: 4}, {Device: "/dev/xvdb", Snapshot: "snap-1", InitMiBps: new(int64(200)), Root: true},
		},
		RAID0: true, DetailedMonitoring: true, Metadata: Metadata{"enabled", "disabled", 3, "required"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("class (-want +got):\n%s", diff)
	}
	if got.KubeletOf(world.Kubelet{MaxPods: new(int32(1))}).MaxPods == nil || *got.KubeletOf(world.Kubelet{}).MaxPods != 42 {
		t.Error("the settings of the class must win over those of the pool")
	}
	if got.Field("subnetSelector") != "spec.subnetSelectorTerms" || got.Field("tags") != "spec.tags" {
		t.Error("fields must have the names of the object")
	}
}

func TestAliases(t *testing.T) {
	const profile = usual + "  instanceProfile: p\n"
	for spec, want := range map[string]struct {
		family  string
		release Release
	}{
		"amiSelectorTerms: [{alias: al2@v20240807}]":                            {family.AL2, Release{family.AL2, "v20240807"}},
		"amiSelectorTerms: [{alias: bottlerocket@v1.20.5}]":                     {family.Bottlerocket, Release{family.Bottlerocket, "v1.20.5"}},
		"amiSelectorTerms: [{alias: al2023@latest}]\n  amiFamily: AL2023":       {family.AL2023, Release{family.AL2023, "latest"}},
		"amiSelectorTerms: [{alias: bottlerocket@latest}]\n  amiFamily: Custom": {family.Custom, Release{family.Bottlerocket, "latest"}},
	} {
		got, err := readV1(t, profile+"  "+spec)
		if err != nil || got.Family != want.family || got.Release != want.release || got.Images != nil {
			t.Errorf("%s: %s, %+v, %v; want %+v", spec, got.Family, got.Release, err, want)
		}
	}
}

func TestBadNodeClassesNameTheField(t *testing.T) {
	const ok = usual + "  role: r\n  amiSelectorTerms: [{alias: al2023@latest}]\n"
	const noImage = usual + "  role: r\n"
	for name, tt := range map[string]struct{ spec, field, text string }{
		"nothing":         {"  role: r\n  amiSelectorTerms: [{alias: al2@latest}]", "spec.subnetSelectorTerms", "spec.securityGroupSelectorTerms: is required"},
		"no images":       {noImage, "spec.amiSelectorTerms", "al2023@latest"},
		"two aliases":     {noImage + "  amiSelectorTerms: [{alias: al2@latest}, {id: ami-1}]", "spec.amiSelectorTerms", "only term"},
		"strange alias":   {noImage + "  amiSelectorTerms: [{alias: windows2022@latest}]", "spec.amiSelectorTerms[0].alias", "al2, al2023, bottlerocket"},
		"no version":      {noImage + "  amiSelectorTerms: [{alias: al2}]", "spec.amiSelectorTerms[0].alias", "family@version"},
		"other family":    {ok + "  amiFamily: AL2", "spec.amiFamily", "the alias says AL2023"},
		"no family":       {noImage + "  amiSelectorTerms: [{id: ami-1}]", "spec.amiFamily", "without an alias"},
		"owner alone":     {noImage + "  amiFamily: AL2\n  amiSelectorTerms: [{owner: self}]", "spec.amiSelectorTerms[0]", "selects nothing"},
		"empty term":      {ok + "  detailedMonitoring: true\n  context: ''\n  tags: {'kubernetes.io/cluster/x': owned}", "spec.tags", "whose machine"},
		"our tags":        {ok + "  tags: {karpenter.sh/nodepool: x}", "spec.tags", "it is ours"},
		"both":            {ok + "  instanceProfile: p", "spec.role", "not both"},
		"neither":         {usual + "  amiSelectorTerms: [{alias: al2@latest}]", "spec.role", "either"},
		"two roots":       {ok + "  blockDeviceMappings: [{deviceName: a, rootVolume: true, ebs: {volumeSize: 4Gi}}, {deviceName: b, rootVolume: true, ebs: {volumeSize: 4Gi}}]", "spec.blockDeviceMappings[1].rootVolume", "mark one"},
		"rate":            {ok + "  blockDeviceMappings: [{deviceName: a, ebs: {volumeSize: 4Gi, volumeInitializationRate: 100}}]", "spec.blockDeviceMappings[0].ebs.volumeInitializationRate", "snapshotID"},
		"Bottlerocket":    {noImage + "  amiSelectorTerms: [{alias: bottlerocket@latest}]\n  kubelet: {podsPerCore: 4, clusterDNS: [10.0.0.1, 10.0.0.2]}", "spec.kubelet.podsPerCore", "spec.kubelet.clusterDNS: Bottlerocket takes one"},
		"not built":       {ok + "  placementGroupSelector: {name: x}", "spec.placementGroupSelector", "not supported yet"},
		"not built, list": {ok + "  capacityReservationSelectorTerms: [{id: cr-1}]", "spec.capacityReservationSelectorTerms", "not supported yet"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := readV1(t, tt.spec)
			var bad *cloud.BadClassError
			if !errors.As(err, &bad) {
				t.Fatalf("err = %v, want a BadClassError", err)
			}
			if bad.Field != tt.field || !strings.Contains(bad.Problem, tt.text) || bad.Class.Kind != "EC2NodeClass" {
				t.Errorf("err = %v, want field %s and %q in it", err, tt.field, tt.text)
			}
		})
	}
}

// TestEqualMeaning: both generations give the same class, but for what names
// the object.
func TestEqualMeaning(t *testing.T) {
	// The generations do not have the same defaults for this.
	const metadata = "\n  metadataOptions: {httpEndpoint: enabled, httpProtocolIPv6: disabled, httpPutResponseHopLimit: 2, httpTokens: required}"
	for name, tt := range map[string]struct{ old, newer string }{
		"family": {
			"  subnetSelector: {a: b}\n  securityGroupSelector: {a: '*'}\n  instanceProfile: p\n  amiFamily: AL2023" + metadata,
			"  subnetSelectorTerms: [{tags: {a: b}}]\n  securityGroupSelectorTerms: [{tags: {a: '*'}}]\n  instanceProfile: p\n  amiSelectorTerms: [{alias: al2023@latest}]" + metadata,
		},
		"lists of values": {
			"  subnetSelector: {aws-ids: 'subnet-2,subnet-1'}\n  securityGroupSelector: {a: 'x,k', b: 'v, w', c: z}\n  instanceProfile: p" + metadata,
			"  subnetSelectorTerms: [{id: subnet-1}, {id: subnet-2}]\n  instanceProfile: p\n  amiSelectorTerms: [{alias: al2@latest}]\n" +
				"  securityGroupSelectorTerms: [{tags: {a: x, b: w, c: z}}, {tags: {a: k, b: v, c: z}}, {tags: {a: x, b: v, c: z}}, {tags: {a: k, b: w, c: z}}]" + metadata,
		},
		"everything else": {
			"  subnetSelector: {a: '*'}\n  securityGroupSelector: {a: b}\n  instanceProfile: p\n  amiFamily: Custom\n  amiSelector: {aws-ids: 'ami-1,ami-2'}\n" +
				"  userData: x\n  detailedMonitoring: true\n  context: c\n  tags: {t: u}\n" +
				"  metadataOptions: {httpEndpoint: enabled, httpProtocolIPv6: disabled, httpPutResponseHopLimit: 2, httpTokens: optional}\n" +
				"  blockDeviceMappings: [{deviceName: a, ebs: {volumeSize: 1G, encrypted: true, iops: 3000}}]",
			"  subnetSelectorTerms: [{tags: {a: '*'}}]\n  securityGroupSelectorTerms: [{tags: {a: b}}]\n  instanceProfile: p\n  amiFamily: Custom\n" +
				"  amiSelectorTerms: [{id: ami-2}, {id: ami-1}]\n  userData: x\n  detailedMonitoring: true\n  context: c\n  tags: {t: u}\n" +
				"  metadataOptions: {httpPutResponseHopLimit: 2, httpTokens: optional}\n" +
				"  blockDeviceMappings: [{deviceName: a, ebs: {volumeSize: 1G, encrypted: true, iops: 3000}}]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := read(t, tt.old)
			if err != nil {
				t.Fatal(err)
			}
			b, err := readV1(t, tt.newer)
			if err != nil {
				t.Fatal(err)
			}
			a.Ref, b.Ref, a.UID, b.UID = world.ClassRef{}, world.ClassRef{}, "", ""
			if diff := cmp.Diff(a, b); diff != "" {
				t.Errorf("(-AWSNodeTemplate +EC2NodeClass):\n%s", diff)
			}
		})
	}
}

// FuzzSelectorsOfBothGenerations: lists of values, written out as terms in any
// order, are the same selector.
func FuzzSelectorsOfBothGenerations(f *testing.F) {
	f.Add("a", "x, k", "b", "v,w,z", uint64(1))
	f.Add("a", "x, k", "b", "vw,z,w,z", uint64(0)) // the same value twice
	f.Add("Name", "*", "aws-ids", "subnet-1,subnet-2", uint64(7))
	f.Fuzz(func(t *testing.T, key1, values1, key2, values2 string, seed uint64) {
		tags := map[string]string{key1: values1, key2: values2}
		old, problems := subnets.ofMap(tags)
		if len(problems) > 0 || len(splitList(values1)) > 5 || len(splitList(values2)) > 5 {
			return
		}
		terms := []term{{tags: map[string]string{}}}
		for key, list := range tags {
			var next []term
			for _, t := range terms {
				for _, value := range splitList(list) {
					more := term{id: t.id, tags: maps.Clone(t.tags)}
					if key == "aws-ids" {
						more.id = value
					} else {
						more.tags[key] = value
					}
					next = append(next, more)
				}
			}
			terms = next
		}
		if strings.Contains(values1+values2, "*") && (len(splitList(values1)) > 1 || len(splitList(values2)) > 1) {
			return // a list with the value * in it asks for that value of a tag, a term for any
		}
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(terms), func(i, j int) { terms[i], terms[j] = terms[j], terms[i] })
		newer, problems := subnets.ofTerms(terms, "")
		if len(problems) > 0 {
			t.Fatalf("%+v: %v", terms, problems)
		}
		if diff := cmp.Diff(old, newer); diff != "" {
			t.Errorf("%v (-map +terms):\n%s", tags, diff)
		}
	})
}
