package ec2

import "time"

// Volume is a disk of an instance.
type Volume struct {
	ID, Instance, Device, Zone string
	Created                    time.Time
	EBS                        EBS
	DeleteOnTermination        bool
	Tags                       Tags
}

// DescribeVolumesInput asks for volumes.
type DescribeVolumesInput struct {
	Common
	Page
	IDs     []string `query:"VolumeId"`
	Filters []Filter `query:"Filter"`
}

// VolumeInfo is a volume.
type VolumeInfo struct {
	ID          string            `xml:"volumeId"`
	Size        int64             `xml:"size"`
	Snapshot    string            `xml:"snapshotId"`
	Zone        string            `xml:"availabilityZone"`
	Status      string            `xml:"status"`
	Created     time.Time         `xml:"createTime"`
	Attachments Set[VolumeAttach] `xml:"attachmentSet"`
	Tags        Tags              `xml:"tagSet"`
	Type        string            `xml:"volumeType"`
	IOPS        *int64            `xml:"iops"`
	Throughput  *int64            `xml:"throughput"`
	Encrypted   bool              `xml:"encrypted"`
}

// VolumeAttach is where a volume is attached.
type VolumeAttach struct {
	VolumeID string    `xml:"volumeId"`
	Instance string    `xml:"instanceId"`
	Device   string    `xml:"device"`
	Status   string    `xml:"status"`
	Attached time.Time `xml:"attachTime"`
	Delete   bool      `xml:"deleteOnTermination"`
}

// DescribeVolumesOutput lists volumes.
type DescribeVolumesOutput struct {
	Response
	Volumes   Set[VolumeInfo] `xml:"volumeSet"`
	NextToken string          `xml:"nextToken,omitempty"`
}

func (in *DescribeVolumesInput) do(c *Cloud) (*DescribeVolumesOutput, error) {
	id := func(v *Volume) string { return v.ID }
	part, next, err := listing[*Volume]{
		items: c.volumes, key: id, filters: in.Filters, bounds: paged,
		named: []named[*Volume]{{in.IDs, id, "InvalidVolume.NotFound", "volume"}},
		attributes: attributes[*Volume]{
			"volume-id":              one(id),
			"availability-zone":      one(func(v *Volume) string { return v.Zone }),
			"volume-type":            one(func(v *Volume) string { return v.EBS.Type }),
			"status":                 one(func(*Volume) string { return "in-use" }),
			"attachment.instance-id": one(func(v *Volume) string { return v.Instance }),
		},
		tags: func(v *Volume) Tags { return v.Tags },
	}.page(in.Page)
	return &DescribeVolumesOutput{NextToken: next, Volumes: each(part, func(v *Volume) VolumeInfo {
		return VolumeInfo{ID: v.ID, Size: *v.EBS.SizeGiB, Snapshot: v.EBS.SnapshotID, Zone: v.Zone, Status: "in-use",
			Created: v.Created, Tags: v.Tags, Type: v.EBS.Type, IOPS: v.EBS.IOPS, Throughput: v.EBS.Throughput, Encrypted: v.EBS.Encrypted != nil && *v.EBS.Encrypted,
			Attachments: []VolumeAttach{{v.ID, v.Instance, v.Device, "attached", v.Created, v.DeleteOnTermination}}}
	})}, err
}
