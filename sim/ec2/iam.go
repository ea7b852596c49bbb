package ec2

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// iam makes a request one to IAM.
type iam struct{}

func (iam) service() string { return "iam" }

// profile is an instance profile that was made by a call.
type profile struct {
	name, path, id string
	created        time.Time
	tags           Tags
	role           string
	// shown is from when on others see the profile, roleShown its role.
	shown, roleShown time.Time
}

// role is an IAM role that was made by a call.
type role struct {
	path    string
	created time.Time
	trust   string // JSON
}

// InstanceProfileInfo is an instance profile.
type InstanceProfileInfo struct {
	Path    string     `xml:"Path"`
	Name    string     `xml:"InstanceProfileName"`
	ID      string     `xml:"InstanceProfileId"`
	ARN     string     `xml:"Arn"`
	Created time.Time  `xml:"CreateDate"`
	Roles   []RoleInfo `xml:"Roles>member"`
	Tags    []IAMTag   `xml:"Tags>member"`
}

// IAMTag is a tag as IAM writes it.
type IAMTag struct{ Key, Value string }

// RoleInfo is a role.
type RoleInfo struct {
	Path    string    `xml:"Path"`
	Name    string    `xml:"RoleName"`
	ID      string    `xml:"RoleId"`
	ARN     string    `xml:"Arn"`
	Created time.Time `xml:"CreateDate"`
	Trust   string    `xml:"AssumeRolePolicyDocument"`
	Session int       `xml:"MaxSessionDuration"`
}

// InstanceProfileOutput is one profile.
type InstanceProfileOutput struct {
	Profile InstanceProfileInfo `xml:"InstanceProfile"`
}

// RoleOutput is one role.
type RoleOutput struct {
	Role RoleInfo `xml:"Role"`
}

func (c *Cloud) profileInfo(p *profile) InstanceProfileInfo {
	out := InstanceProfileInfo{Path: p.path, Name: p.name, ID: p.id, Created: p.created,
		ARN: c.profileARN(p.path, p.name)}
	if p.role != "" && !p.roleShown.After(c.now()) {
		out.Roles = append(out.Roles, c.roleInfo(p.role))
	}
	for _, k := range slices.Sorted(maps.Keys(p.tags)) {
		out.Tags = append(out.Tags, IAMTag{k, p.tags[k]})
	}
	return out
}

func (c *Cloud) roleInfo(name string) RoleInfo {
	r := c.roles[name]
	path := cmp.Or(r.path, "/")
	return RoleInfo{Path: path, Name: name, ID: "AROASIMULATED", ARN: fmt.Sprintf("arn:aws:iam::%s:role%s%s", c.opt.Account, path, name), Created: r.created,
		Trust: url.QueryEscape(cmp.Or(r.trust, `{"Version":"2012-10-17"}`)), Session: 3600}
}

// hasRole reports whether a role exists.
func (c *Cloud) hasRole(name string) bool {
	_, made := c.roles[name]
	return made || c.world.Roles == nil || slices.Contains(c.world.Roles, name)
}

// profileNamed returns a profile, also one that is not shown yet.
func (c *Cloud) profileNamed(name string) (*profile, error) {
	if p := c.profiles[name]; p != nil {
		return p, nil
	}
	return nil, errorf("NoSuchEntity", "Instance Profile %s cannot be found.", name)
}

// profileFor checks the instance profile of a machine, as EC2 sees it.
func (c *Cloud) profileFor(p *Profile) (string, *Error) {
	name := cmp.Or(p.Name, p.ARN[strings.LastIndex(p.ARN, "/")+1:])
	made := c.profiles[name]
	known := c.world.InstanceProfiles
	switch {
	case made != nil && !made.shown.After(c.now()):
		if made.role == "" || made.roleShown.After(c.now()) {
			return "", invalid("iamInstanceProfile.name", name, "IAM Instance Profile has no associated IAM Roles")
		}
	case made != nil, c.deletedProfiles[name], known != nil && !slices.Contains(known, cmp.Or(p.Name, p.ARN)):
		return "", invalid("iamInstanceProfile.name", name, "Invalid IAM Instance Profile name")
	}
	return cmp.Or(p.Name, p.ARN), nil
}

// CreateInstanceProfileInput makes an instance profile.
type CreateInstanceProfileInput struct {
	iam
	InstanceProfileName string
	Path                string
	Tags                Tags
}

var (
	iamName = regexp.MustCompile(`^[\w+=,.@-]{1,128}$`)
	iamPath = regexp.MustCompile(`^(/|/[!-~]{1,510}/)$`)
)

func (in *CreateInstanceProfileInput) do(c *Cloud) (*InstanceProfileOutput, error) {
	path := cmp.Or(in.Path, "/")
	_, taken := c.profiles[in.InstanceProfileName]
	switch {
	case !iamName.MatchString(in.InstanceProfileName):
		return nil, errorf("ValidationError", "The specified value for instanceProfileName is invalid. It must contain only alphanumeric characters and/or the following: +=,.@_-")
	case !iamPath.MatchString(path):
		return nil, errorf("ValidationError", "The specified value for path is invalid. It must begin and end with / and contain only alphanumeric characters and/or / characters.")
	case taken || slices.Contains(c.world.InstanceProfiles, in.InstanceProfileName):
		return nil, errorf("EntityAlreadyExists", "Instance Profile %s already exists.", in.InstanceProfileName)
	}
	if err := checkTags(in.Tags); err != nil {
		return nil, errorf("InvalidInput", "%v", err)
	}
	p := &profile{name: in.InstanceProfileName, path: path, id: strings.ToUpper(strings.Replace(c.newID("AIPA"), "-", "", 1)), created: c.now().Truncate(time.Second),
		tags: maps.Clone(in.Tags), shown: c.now().Add(c.opt.IAMLag)}
	c.profiles[p.name] = p
	delete(c.deletedProfiles, p.name)
	return &InstanceProfileOutput{c.profileInfo(p)}, nil
}

// GetInstanceProfileInput asks for one profile.
type GetInstanceProfileInput struct {
	iam
	InstanceProfileName string
}

func (in *GetInstanceProfileInput) do(c *Cloud) (*InstanceProfileOutput, error) {
	p, err := c.profileNamed(in.InstanceProfileName)
	if err == nil && p.shown.After(c.now()) {
		err = errorf("NoSuchEntity", "Instance Profile %s cannot be found.", in.InstanceProfileName)
	}
	if err != nil {
		return nil, err
	}
	return &InstanceProfileOutput{c.profileInfo(p)}, nil
}

// ListInstanceProfilesInput asks for the profiles below a path.
type ListInstanceProfilesInput struct {
	iam
	PathPrefix string
	Marker     string
	MaxItems   *int
}

// ListInstanceProfilesOutput lists profiles, without their tags as IAM does.
type ListInstanceProfilesOutput struct {
	Profiles  []InstanceProfileInfo `xml:"InstanceProfiles>member"`
	Truncated bool                  `xml:"IsTruncated"`
	Marker    string                `xml:"Marker,omitempty"`
}

func (in *ListInstanceProfilesInput) do(c *Cloud) (*ListInstanceProfilesOutput, error) {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(c.profiles)), func(n string) bool {
		p := c.profiles[n]
		return p.shown.After(c.now()) || !strings.HasPrefix(p.path, cmp.Or(in.PathPrefix, "/"))
	})
	part, next, err := page(names, Page{in.MaxItems, in.Marker}, bounds{least: 1, most: 1000, size: 100}, func(n string) string { return n })
	if err != nil {
		return nil, errorf("ValidationError", "%v", err)
	}
	out := &ListInstanceProfilesOutput{Truncated: next != "", Marker: next}
	for _, n := range part {
		info := c.profileInfo(c.profiles[n])
		info.Tags = nil
		out.Profiles = append(out.Profiles, info)
	}
	return out, nil
}

// DeleteInstanceProfileInput deletes a profile that holds no role.
type DeleteInstanceProfileInput struct {
	iam
	InstanceProfileName string
}

func (in *DeleteInstanceProfileInput) do(c *Cloud) (*Nothing, error) {
	p, err := c.profileNamed(in.InstanceProfileName)
	switch {
	case err != nil:
		return nil, err
	case p.role != "":
		return nil, errorf("DeleteConflict", "Cannot delete entity, must remove roles from instance profile first.")
	}
	delete(c.profiles, p.name)
	c.deletedProfiles[p.name] = true
	return &Nothing{}, nil
}

// AddRoleToInstanceProfileInput puts a role into a profile; there is room for
// one.
type AddRoleToInstanceProfileInput struct {
	iam
	InstanceProfileName string
	RoleName            string
}

func (in *AddRoleToInstanceProfileInput) do(c *Cloud) (*Nothing, error) {
	p, err := c.profileNamed(in.InstanceProfileName)
	switch {
	case err != nil:
		return nil, err
	case !c.hasRole(in.RoleName):
		return nil, errorf("NoSuchEntity", "The role with name %s cannot be found.", in.RoleName)
	case p.role != "":
		return nil, errorf("LimitExceeded", "Cannot exceed quota for InstanceSessionsPerInstanceProfile: 1")
	}
	p.role, p.roleShown = in.RoleName, c.now().Add(c.opt.IAMLag)
	return &Nothing{}, nil
}

// RemoveRoleFromInstanceProfileInput takes a role out of a profile.
type RemoveRoleFromInstanceProfileInput struct {
	iam
	InstanceProfileName string
	RoleName            string
}

func (in *RemoveRoleFromInstanceProfileInput) do(c *Cloud) (*Nothing, error) {
	p, err := c.profileNamed(in.InstanceProfileName)
	if err == nil && p.role != in.RoleName {
		err = errorf("NoSuchEntity", "The role with name %s cannot be found.", in.RoleName)
	}
	if err != nil {
		return nil, err
	}
	p.role = ""
	return &Nothing{}, nil
}

// TagInstanceProfileInput sets tags of a profile.
type TagInstanceProfileInput struct {
	iam
	InstanceProfileName string
	Tags                Tags
}

func (in *TagInstanceProfileInput) do(c *Cloud) (*Nothing, error) {
	p, err := c.profileNamed(in.InstanceProfileName)
	if err != nil {
		return nil, err
	}
	tags := maps.Clone(p.tags)
	if tags == nil {
		tags = Tags{}
	}
	maps.Copy(tags, in.Tags)
	if err := checkTags(tags); err != nil {
		return nil, errorf("InvalidInput", "%v", err)
	}
	p.tags = tags
	return &Nothing{}, nil
}

// UntagInstanceProfileInput removes tags of a profile.
type UntagInstanceProfileInput struct {
	iam
	InstanceProfileName string
	Keys                []string `query:"TagKeys"`
}

func (in *UntagInstanceProfileInput) do(c *Cloud) (*Nothing, error) {
	p, err := c.profileNamed(in.InstanceProfileName)
	if err != nil {
		return nil, err
	}
	p.tags = maps.Clone(p.tags)
	maps.DeleteFunc(p.tags, func(k, _ string) bool { return slices.Contains(in.Keys, k) })
	return &Nothing{}, nil
}

// GetRoleInput asks for a role.
type GetRoleInput struct {
	iam
	RoleName string
}

func (in *GetRoleInput) do(c *Cloud) (*RoleOutput, error) {
	if !c.hasRole(in.RoleName) {
		return nil, errorf("NoSuchEntity", "The role with name %s cannot be found.", in.RoleName)
	}
	return &RoleOutput{c.roleInfo(in.RoleName)}, nil
}

// CreateRoleInput makes a role; what it may do is not simulated.
type CreateRoleInput struct {
	iam
	RoleName                 string
	Path                     string
	AssumeRolePolicyDocument string
	Description              string
	Tags                     Tags
}

func (in *CreateRoleInput) do(c *Cloud) (*RoleOutput, error) {
	if _, made := c.roles[in.RoleName]; made || slices.Contains(c.world.Roles, in.RoleName) {
		return nil, errorf("EntityAlreadyExists", "Role with name %s already exists.", in.RoleName)
	}
	if !iamName.MatchString(in.RoleName) {
		return nil, errorf("ValidationError", "The specified value for roleName is invalid. It must contain only alphanumeric characters and/or the following: +=,.@_-")
	}
	c.roles[in.RoleName] = role{path: cmp.Or(in.Path, "/"), created: c.now().Truncate(time.Second), trust: in.AssumeRolePolicyDocument}
	return &RoleOutput{c.roleInfo(in.RoleName)}, nil
}

// CreateServiceLinkedRoleInput makes the role of a service such as
// spot.amazonaws.com; there is one of each.
type CreateServiceLinkedRoleInput struct {
	iam
	AWSServiceName string
	Description    string
	CustomSuffix   string
}

func (in *CreateServiceLinkedRoleInput) do(c *Cloud) (*RoleOutput, error) {
	service, ok := strings.CutSuffix(in.AWSServiceName, ".amazonaws.com")
	if !ok || service == "" {
		return nil, errorf("InvalidInput", "%s is not a service.", in.AWSServiceName)
	}
	name := "AWSServiceRoleForEC2" + strings.ToUpper(service[:1]) + service[1:]
	if _, made := c.roles[name]; made {
		return nil, errorf("InvalidInput", "Service role name %s has been taken in this account, please try a different suffix.", name)
	}
	c.roles[name] = role{path: "/aws-service-role/" + in.AWSServiceName + "/", created: c.now().Truncate(time.Second)}
	return &RoleOutput{c.roleInfo(name)}, nil
}
