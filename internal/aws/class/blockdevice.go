package class

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"karpenter/api/aws/v1alpha1"
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
	return []BlockDevice{{Device: "/dev/xvda", SizeGiB: 20, Type: "gp3", Encrypted: new(true)}}
}

var volumeTypes = []string{"standard", "io1", "io2", "gp2", "sc1", "st1", "gp3"}

const gib = 1 << 30

func blockDevices(mappings []v1alpha1.BlockDeviceMapping) ([]BlockDevice, []problem) {
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
		if m.EBS == nil {
			problems = append(problems, problem{field + "ebs", "is required: say what volume it is"})
			continue
		}
		d := BlockDevice{
			Device: value(m.DeviceName), Type: value(m.EBS.VolumeType), Snapshot: value(m.EBS.SnapshotID),
			KMSKey: value(m.EBS.KMSKeyID), IOPS: m.EBS.IOPS, Throughput: m.EBS.Throughput,
			Encrypted: m.EBS.Encrypted, DeleteOnTermination: m.EBS.DeleteOnTermination,
		}
		size, wrong := sizeGiB(m.EBS)
		if wrong != "" {
			problems = append(problems, problem{field + "ebs.volumeSize", wrong})
		}
		if d.Type != "" && !slices.Contains(volumeTypes, d.Type) {
			problems = append(problems, problem{field + "ebs.volumeType", fmt.Sprintf("must be one of %s, not %q", strings.Join(volumeTypes, ", "), d.Type)})
		}
		for _, f := range []struct {
			name string
			n    *int64
		}{{"iops", d.IOPS}, {"throughput", d.Throughput}} {
			if f.n != nil && *f.n < 1 {
				problems = append(problems, problem{field + "ebs." + f.name, fmt.Sprintf("must be 1 or more, not %d", *f.n)})
			}
		}
		d.SizeGiB = size
		out = append(out, d)
	}
	return out, problems
}

// sizeGiB rounds the size up to what EC2 can be asked for.
func sizeGiB(ebs *v1alpha1.EBS) (size int64, wrong string) {
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
