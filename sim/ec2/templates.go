package ec2

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// Template is a launch template with one version.
type Template struct {
	ID, Name    string
	Created     time.Time
	Description string
	Tags        Tags
	Data        TemplateData
}

// TemplateData is what a launch template says about instances.
type TemplateData struct {
	ImageID          string            `query:"ImageId" xml:"imageId,omitempty"`
	InstanceType     string            `xml:"instanceType,omitempty"`
	KeyName          string            `xml:"keyName,omitempty"`
	UserData         string            `xml:"userData,omitempty"`
	EBSOptimized     bool              `query:"EbsOptimized" xml:"ebsOptimized,omitempty"`
	Profile          *Profile          `query:"IamInstanceProfile" xml:"iamInstanceProfile"`
	Devices          Set[BlockDevice]  `query:"BlockDeviceMapping" xml:"blockDeviceMappingSet,omitempty"`
	Interfaces       Set[Interface]    `query:"NetworkInterface" xml:"networkInterfaceSet,omitempty"`
	Monitoring       *Monitoring       `xml:"monitoring"`
	SecurityGroups   Set[string]       `query:"SecurityGroupId" xml:"securityGroupIdSet,omitempty"`
	Metadata         *MetadataOptions  `query:"MetadataOptions" xml:"metadataOptions"`
	TagSpecs         Set[TagSpec]      `query:"TagSpecification" xml:"tagSpecificationSet,omitempty"`
	PrivateDNSNaming *PrivateDNSNaming `query:"PrivateDnsNameOptions" xml:"privateDnsNameOptions"`
}

// Profile names an instance profile.
type Profile struct {
	ARN  string `query:"Arn" xml:"arn,omitempty"`
	Name string `xml:"name,omitempty"`
}

// Monitoring switches detailed monitoring.
type Monitoring struct {
	Enabled bool `xml:"enabled"`
}

// PrivateDNSNaming says how host names are made; only ip-name is simulated.
type PrivateDNSNaming struct {
	HostnameType                    string `xml:"hostnameType,omitempty"`
	EnableResourceNameDnsARecord    bool   `xml:"enableResourceNameDnsARecord"`
	EnableResourceNameDnsAAAARecord bool   `xml:"enableResourceNameDnsAAAARecord"`
}

// MetadataOptions of an instance.
type MetadataOptions struct {
	State            string `query:"-" xml:"state,omitempty" json:"state,omitempty"`
	HTTPTokens       string `query:"HttpTokens" xml:"httpTokens,omitempty" json:"httpTokens,omitempty"`
	HopLimit         int64  `query:"HttpPutResponseHopLimit" xml:"httpPutResponseHopLimit,omitempty" json:"hopLimit,omitempty"`
	HTTPEndpoint     string `query:"HttpEndpoint" xml:"httpEndpoint,omitempty" json:"httpEndpoint,omitempty"`
	HTTPProtocolIPv6 string `query:"HttpProtocolIpv6" xml:"httpProtocolIpv6,omitempty" json:"httpProtocolIPv6,omitempty"`
	InstanceTags     string `query:"InstanceMetadataTags" xml:"instanceMetadataTags,omitempty" json:"instanceTags,omitempty"`
}

// BlockDevice maps a device to a volume.
type BlockDevice struct {
	Device  string  `query:"DeviceName" xml:"deviceName"`
	Virtual string  `query:"VirtualName" xml:"virtualName,omitempty"`
	EBS     *EBS    `query:"Ebs" xml:"ebs"`
	None    *string `query:"NoDevice" xml:"noDevice"`
}

// EBS describes a volume to make.
type EBS struct {
	DeleteOnTermination *bool  `xml:"deleteOnTermination"`
	SnapshotID          string `query:"SnapshotId" xml:"snapshotId,omitempty"`
	SizeGiB             *int64 `query:"VolumeSize" xml:"volumeSize"`
	Type                string `query:"VolumeType" xml:"volumeType,omitempty"`
	IOPS                *int64 `query:"Iops" xml:"iops"`
	Throughput          *int64 `xml:"throughput"`
	InitMiBps           *int64 `query:"VolumeInitializationRate" xml:"volumeInitializationRate"`
	KMSKeyID            string `query:"KmsKeyId" xml:"kmsKeyId,omitempty"`
	Encrypted           *bool  `xml:"encrypted"`
}

// Interface describes a network interface to make.
type Interface struct {
	DeviceIndex         int64       `xml:"deviceIndex"`
	AssociatePublicIP   *bool       `query:"AssociatePublicIpAddress" xml:"associatePublicIpAddress"`
	DeleteOnTermination *bool       `xml:"deleteOnTermination"`
	Description         string      `xml:"description,omitempty"`
	Groups              Set[string] `query:"SecurityGroupId" xml:"groupSet,omitempty"`
	InterfaceType       string      `xml:"interfaceType,omitempty"`
	SubnetID            string      `query:"SubnetId" xml:"subnetId,omitempty"`
	NetworkCardIndex    int64       `xml:"networkCardIndex"`
	IPv6AddressCount    *int64      `query:"Ipv6AddressCount" xml:"ipv6AddressCount"`
	PrimaryIPv6         *bool       `query:"PrimaryIpv6" xml:"primaryIpv6"`
}

// TagSpec is tags for the resources of one type that a call makes.
type TagSpec struct {
	ResourceType string `xml:"resourceType"`
	Tags         Tags   `query:"Tag" xml:"tagSet"`
}

// tagsFor collects the tags for a type of resource.
func tagsFor(specs []TagSpec, resource string) Tags {
	out := Tags{}
	for _, s := range specs {
		if s.ResourceType == resource {
			for k, v := range s.Tags {
				out[k] = v
			}
		}
	}
	return out
}

// TemplateInfo is a launch template in an answer.
type TemplateInfo struct {
	ID        string    `xml:"launchTemplateId"`
	Name      string    `xml:"launchTemplateName"`
	Created   time.Time `xml:"createTime"`
	CreatedBy string    `xml:"createdBy"`
	Default   int64     `xml:"defaultVersionNumber"`
	Latest    int64     `xml:"latestVersionNumber"`
	Tags      Tags      `xml:"tagSet"`
}

func (c *Cloud) templateInfo(t *Template) TemplateInfo {
	return TemplateInfo{ID: t.ID, Name: t.Name, Created: t.Created, CreatedBy: c.caller(), Default: 1, Latest: 1, Tags: t.Tags}
}

// LaunchTemplateOutput answers creation and deletion.
type LaunchTemplateOutput struct {
	Response
	Template TemplateInfo `xml:"launchTemplate"`
}

// CreateLaunchTemplateInput makes a launch template.
type CreateLaunchTemplateInput struct {
	Common
	ClientToken        string
	LaunchTemplateName string
	VersionDescription string
	Data               TemplateData `query:"LaunchTemplateData"`
	TagSpecs           []TagSpec    `query:"TagSpecification"`
}

func (in *CreateLaunchTemplateInput) clientToken() string { return in.ClientToken }

var templateName = regexp.MustCompile(`^[a-zA-Z0-9().\-/_]{3,128}$`)

const userDataLimit = 16 << 10

func (in *CreateLaunchTemplateInput) do(c *Cloud) (*LaunchTemplateOutput, error) {
	switch {
	case in.LaunchTemplateName == "":
		return nil, missing("LaunchTemplateName")
	case !templateName.MatchString(in.LaunchTemplateName):
		return nil, errorf("InvalidLaunchTemplateName.MalformedException", "Launch template names may only contain alphanumeric characters and the symbols ()./-_, 3 to 128 of them: '%s'.", in.LaunchTemplateName)
	case c.templateNamed(in.LaunchTemplateName) != nil:
		return nil, errorf("InvalidLaunchTemplateName.AlreadyExistsException", "Launch template name already in use.")
	}
	if _, err := decodeUserData(in.Data.UserData); err != nil {
		return nil, err
	}
	if d := in.Data.PrivateDNSNaming; d != nil && d.HostnameType != "" && d.HostnameType != "ip-name" {
		return nil, errorf("UnsupportedOperation", "The simulation knows the hostname type ip-name only, not '%s'.", d.HostnameType)
	}
	tags := tagsFor(in.TagSpecs, "launch-template")
	if err := checkTags(tags); err != nil {
		return nil, err
	}
	for _, s := range in.Data.TagSpecs {
		if err := checkTags(s.Tags); err != nil {
			return nil, err
		}
	}
	t := &Template{ID: c.newID("lt"), Name: in.LaunchTemplateName, Created: c.now(), Description: in.VersionDescription, Tags: tags, Data: in.Data}
	c.templates = append(c.templates, t)
	return &LaunchTemplateOutput{Template: c.templateInfo(t)}, nil
}

func decodeUserData(encoded string) (string, error) {
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return "", errorf("InvalidUserData.Malformed", "Invalid BASE64 encoding of user data.")
	}
	if len(raw) > userDataLimit {
		return "", errorf("InvalidParameterValue", "User data is limited to %d bytes", userDataLimit)
	}
	return string(raw), nil
}

func (c *Cloud) templateNamed(name string) *Template {
	if i := slices.IndexFunc(c.templates, func(t *Template) bool { return t.Name == name }); i >= 0 {
		return c.templates[i]
	}
	return nil
}

// TemplateRef names a launch template and a version: a number, $Latest or
// $Default.
type TemplateRef struct {
	LaunchTemplateID   string `query:"LaunchTemplateId" xml:"launchTemplateId,omitempty"`
	LaunchTemplateName string `xml:"launchTemplateName,omitempty"`
	Version            string `xml:"version,omitempty"`
}

// resolve finds the template that a reference names.
func (c *Cloud) resolve(ref TemplateRef) (*Template, error) {
	var t *Template
	switch {
	case (ref.LaunchTemplateID == "") == (ref.LaunchTemplateName == ""):
		return nil, errorf("InvalidParameterCombination", "Exactly one of launch template id and launch template name must be given.")
	case ref.LaunchTemplateName != "":
		if t = c.templateNamed(ref.LaunchTemplateName); t == nil {
			return nil, errorf("InvalidLaunchTemplateName.NotFoundException", "The specified launch template, with template name %s, does not exist.", ref.LaunchTemplateName)
		}
	default:
		i := slices.IndexFunc(c.templates, func(t *Template) bool { return t.ID == ref.LaunchTemplateID })
		if i < 0 {
			return nil, errorf("InvalidLaunchTemplateId.NotFound", "The specified launch template, with template ID %s, does not exist.", ref.LaunchTemplateID)
		}
		t = c.templates[i]
	}
	if v := ref.Version; v != "" && v != "$Latest" && v != "$Default" && v != "1" {
		return nil, errorf("InvalidLaunchTemplateId.VersionNotFound", "Could not find launch template version %s for template %s.", v, t.ID)
	}
	return t, nil
}

// DeleteLaunchTemplateInput deletes a launch template.
type DeleteLaunchTemplateInput struct {
	Common
	LaunchTemplateID   string `query:"LaunchTemplateId"`
	LaunchTemplateName string
}

func (in *DeleteLaunchTemplateInput) do(c *Cloud) (*LaunchTemplateOutput, error) {
	t, err := c.resolve(TemplateRef{LaunchTemplateID: in.LaunchTemplateID, LaunchTemplateName: in.LaunchTemplateName})
	if err != nil {
		return nil, err
	}
	c.templates = slices.DeleteFunc(c.templates, func(o *Template) bool { return o == t })
	return &LaunchTemplateOutput{Template: c.templateInfo(t)}, nil
}

// DescribeLaunchTemplatesInput asks for launch templates.
type DescribeLaunchTemplatesInput struct {
	Common
	Page
	IDs     []string `query:"LaunchTemplateId"`
	Names   []string `query:"LaunchTemplateName"`
	Filters []Filter `query:"Filter"`
}

// DescribeLaunchTemplatesOutput lists launch templates.
type DescribeLaunchTemplatesOutput struct {
	Response
	Templates Set[TemplateInfo] `xml:"launchTemplates"`
	NextToken string            `xml:"nextToken,omitempty"`
}

func (in *DescribeLaunchTemplatesInput) do(c *Cloud) (*DescribeLaunchTemplatesOutput, error) {
	name := func(t *Template) string { return t.Name }
	part, next, err := listing[*Template]{
		items: c.templates, key: name, filters: in.Filters, bounds: bounds{least: 1, most: 200, size: 200},
		named: []named[*Template]{
			{in.IDs, func(t *Template) string { return t.ID }, "InvalidLaunchTemplateId.NotFound", "specified launch template"},
			{in.Names, name, "InvalidLaunchTemplateName.NotFoundException", "specified launch template"},
		},
		attributes: attributes[*Template]{
			"launch-template-name": one(name),
			"create-time":          one(func(t *Template) string { return t.Created.Format(time.RFC3339) }),
		},
		tags: func(t *Template) Tags { return t.Tags },
	}.page(in.Page)
	return &DescribeLaunchTemplatesOutput{NextToken: next, Templates: each(part, c.templateInfo)}, err
}

// DescribeLaunchTemplateVersionsInput asks what launch templates say.
type DescribeLaunchTemplateVersionsInput struct {
	Common
	Page
	LaunchTemplateID   string `query:"LaunchTemplateId"`
	LaunchTemplateName string
	Versions           []string `query:"LaunchTemplateVersion"`
	MinVersion         string
	MaxVersion         string
	ResolveAlias       bool
	Filters            []Filter `query:"Filter"`
}

// TemplateVersion is a version of a launch template.
type TemplateVersion struct {
	ID          string       `xml:"launchTemplateId"`
	Name        string       `xml:"launchTemplateName"`
	Number      int64        `xml:"versionNumber"`
	Description string       `xml:"versionDescription,omitempty"`
	Created     time.Time    `xml:"createTime"`
	CreatedBy   string       `xml:"createdBy"`
	Default     bool         `xml:"defaultVersion"`
	Data        TemplateData `xml:"launchTemplateData"`
}

// DescribeLaunchTemplateVersionsOutput lists versions of launch templates.
type DescribeLaunchTemplateVersionsOutput struct {
	Response
	Versions  Set[TemplateVersion] `xml:"launchTemplateVersionSet"`
	NextToken string               `xml:"nextToken,omitempty"`
}

func (in *DescribeLaunchTemplateVersionsInput) do(c *Cloud) (*DescribeLaunchTemplateVersionsOutput, error) {
	templates := c.templates
	if in.LaunchTemplateID != "" || in.LaunchTemplateName != "" {
		versions := in.Versions
		if len(versions) == 0 {
			versions = []string{"$Latest"}
		}
		for _, v := range versions {
			t, err := c.resolve(TemplateRef{in.LaunchTemplateID, in.LaunchTemplateName, v})
			if err != nil {
				return nil, err
			}
			templates = []*Template{t}
		}
	}
	part, next, err := listing[*Template]{
		items: templates, key: func(t *Template) string { return t.Name }, filters: in.Filters, bounds: bounds{least: 1, most: 200, size: 200},
		attributes: attributes[*Template]{
			"image-id":           one(func(t *Template) string { return t.Data.ImageID }),
			"instance-type":      one(func(t *Template) string { return t.Data.InstanceType }),
			"is-default-version": one(func(*Template) string { return strconv.FormatBool(true) }),
		},
	}.page(in.Page)
	return &DescribeLaunchTemplateVersionsOutput{NextToken: next, Versions: each(part, func(t *Template) TemplateVersion {
		return TemplateVersion{ID: t.ID, Name: t.Name, Number: 1, Description: t.Description,
			Created: t.Created, CreatedBy: c.caller(), Default: true, Data: t.Data}
	})}, err
}

// caller is the identity that every call has.
func (c *Cloud) caller() string {
	return fmt.Sprintf("arn:aws:sts::%s:assumed-role/karpenter/simulated", c.opt.Account)
}
