package class

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/api/aws/v1alpha1"
	"karpenter/internal/aws/family"
)

// BlockDevice is a volume that each machine gets.
type BlockDevice struct {
	Device string `json:"device"`
	// SizeGiB is 0 where the snapshot decides.
	SizeGiB             int64  `json:"sizeGiB,omitempty"`
	Type                string `json:"type,omitempty"`
	Snapshot            string `json:"snapshot,omitempty"`
	KMSKey              string `json:"kmsKey,omitempty"`
	IOPS                *int64 `json:"iops,omitempty"`
	Throughput          *int64 `json:"throughput,omitempty"`
	Encrypted           *bool  `json:"encrypted,omitempty"`
	DeleteOnTermination *bool  `json:"deleteOnTermination,omitempty"`
	// InitMiBps is how fast the snapshot is copied into the volume.
	InitMiBps *int64 `json:"initMiBps,omitempty"`
	// Root marks the volume that holds pods' files, where it is not the one
	// that the family uses for them.
	Root bool `json:"root,omitempty"`
}

// Devices returns the volumes of the class, or those of its family where it
// names none. A launch template of the user says it itself; then what AL2 has
// is assumed.
func (c *Class) Devices() []BlockDevice {
	if len(c.BlockDevices) > 0 {
		return c.BlockDevices
	}
	f, _ := family.Named(c.Family)
	var out []BlockDevice
	for _, v := range f.Volumes {
		out = append(out, BlockDevice{Device: v.Device, SizeGiB: v.GiB, Type: "gp3", Encrypted: new(true)})
	}
	return out
}

var volumeTypes = []string{"standard", "io1", "io2", "gp2", "sc1", "st1", "gp3"}

const gib = 1 << 30

// modern writes the volumes of an AWSNodeTemplate as those of an EC2NodeClass.
func modern(mappings []v1alpha1.BlockDeviceMapping) []awsv1.BlockDeviceMapping {
	var out []awsv1.BlockDeviceMapping
	for _, m := range mappings {
		n := awsv1.BlockDeviceMapping{DeviceName: m.DeviceName}
		if e := m.EBS; e != nil {
			n.EBS = &awsv1.EBS{
				DeleteOnTermination: e.DeleteOnTermination, Encrypted: e.Encrypted, IOPS: e.IOPS, KMSKeyID: e.KMSKeyID,
				SnapshotID: e.SnapshotID, Throughput: e.Throughput, VolumeSize: e.VolumeSize, VolumeType: e.VolumeType,
			}
		}
		out = append(out, n)
	}
	return out
}

func blockDevices(mappings []awsv1.BlockDeviceMapping) ([]BlockDevice, []problem) {
	var out []BlockDevice
	var problems []problem
	for i, m := range mappings {
		field := fmt.Sprintf("blockDeviceMappings[%d].", i)
		if value(m.DeviceName) == "" {
			problems = append(problems, problem{field + "deviceName", "is required: name the device, such as /dev/xvda"})
		}
		if slices.ContainsFunc(out, func(d BlockDevice) bool { return d.Device != "" && d.Device == value(m.DeviceName) }) {
			problems = append(problems, problem{field + "deviceName", fmt.Sprintf("%s is there twice: give each volume its own device", *m.DeviceName)})
		}
		if m.RootVolume && slices.ContainsFunc(out, func(d BlockDevice) bool { return d.Root }) {
			problems = append(problems, problem{field + "rootVolume", "another volume is the root already: mark one of them"})
		}
		if m.EBS == nil {
			problems = append(problems, problem{field + "ebs", "is required: say what volume it is"})
			continue
		}
		d := BlockDevice{
			Device: value(m.DeviceName), Type: value(m.EBS.VolumeType), Snapshot: value(m.EBS.SnapshotID),
			KMSKey: value(m.EBS.KMSKeyID), IOPS: m.EBS.IOPS, Throughput: m.EBS.Throughput,
			Encrypted: m.EBS.Encrypted, DeleteOnTermination: m.EBS.DeleteOnTermination, Root: m.RootVolume,
		}
		if r := m.EBS.VolumeInitializationRate; r != nil {
			d.InitMiBps = new(int64(*r))
		}
		problems = append(problems, checkVolume(m.EBS, &d, field)...)
		out = append(out, d)
	}
	return out, problems
}

// checkVolume fills in the size and checks the numbers.
func checkVolume(ebs *awsv1.EBS, d *BlockDevice, field string) (problems []problem) {
	size, wrong := sizeGiB(ebs)
	if d.SizeGiB = size; wrong != "" {
		problems = append(problems, problem{field + "ebs.volumeSize", wrong})
	}
	if d.Type != "" && !slices.Contains(volumeTypes, d.Type) {
		problems = append(problems, problem{field + "ebs.volumeType", fmt.Sprintf("must be one of %s, not %q", strings.Join(volumeTypes, ", "), d.Type)})
	}
	if d.InitMiBps != nil && d.Snapshot == "" {
		problems = append(problems, problem{field + "ebs.volumeInitializationRate", "needs snapshotID: it is how fast a snapshot is copied"})
	}
	for _, f := range []struct {
		name string
		n    *int64
	}{{"iops", d.IOPS}, {"throughput", d.Throughput}} {
		if f.n != nil && *f.n < 1 {
			problems = append(problems, problem{field + "ebs." + f.name, fmt.Sprintf("must be 1 or more, not %d", *f.n)})
		}
	}
	return problems
}

// sizeGiB rounds the size up to what EC2 can be asked for.
func sizeGiB(ebs *awsv1.EBS) (size int64, wrong string) {
	switch q := ebs.VolumeSize; {
	case q == nil && value(ebs.SnapshotID) == "":
		return 0, "is required unless snapshotID is set"
	case q == nil:
		return 0, ""
	case q.Cmp(resource.MustParse("1G")) < 0 || q.Cmp(resource.MustParse("64T")) > 0:
		return 0, fmt.Sprintf("must be between 1G and 64T, not %s", q)
	default:
		return (q.Value() + gib - 1) / gib, ""
	}
}
