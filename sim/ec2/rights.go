package ec2

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// access is one right that a call needs, as IAM policies speak of it: an action
// on a resource, in a context.
type access struct {
	action   string
	resource string            // ARN; empty if it is not known or there is none
	keys     map[string]string // of the context, such as aws:ResourceTag/x
}

// guarded is a request that needs other rights than its own name on anything.
type guarded interface{ accesses(c *Cloud) []access }

// authorize refuses a request for which a right is missing. Who one is may be
// asked by everybody.
func (c *Cloud) authorize(in any, service, action string) *Error {
	if c.policy == nil || action == "GetCallerIdentity" {
		return nil
	}
	needed := []access{{action: service + ":" + action}}
	if g, ok := in.(guarded); ok {
		needed = g.accesses(c)
	}
	for _, a := range needed {
		if !c.may(a) {
			return errorf(unauthorized(service), "You are not authorized to perform this operation: %s", a)
		}
	}
	return nil
}

func (a access) String() string {
	if a.resource == "" {
		return a.action
	}
	return a.action + " on resource " + a.resource
}

// may asks for a right and remembers what gave it.
func (c *Cloud) may(a access) bool {
	if c.policy == nil {
		return true
	}
	entry, ok := c.policy.allows(a, map[string]string{"aws:RequestedRegion": c.opt.Region})
	if ok {
		c.used[entry] = true
	}
	return ok
}

// mayLaunch refuses to start a machine for which a right is missing: the
// choice of a fleet is refused then, not the call.
func (c *Cloud) mayLaunch(i *Instance, specs []TagSpec) *Error {
	needed := []access{{action: "ec2:RunInstances", resource: c.arn("ec2", "instance/*"), keys: requestTags(tagsFor(specs, "instance"))}}
	if i.InstanceProfile != "" {
		needed = append(needed, c.passRole(c.roleOf(i.InstanceProfile)))
	}
	for _, a := range needed {
		if !c.may(a) {
			return errorf("UnauthorizedOperation", "You are not authorized to perform this operation: %s", a)
		}
	}
	return nil
}

// roleOf returns the role in an instance profile; empty if it is not known.
func (c *Cloud) roleOf(profile string) string {
	if p := c.profiles[profile[strings.LastIndex(profile, "/")+1:]]; p != nil {
		return p.role
	}
	return ""
}

func (c *Cloud) passRole(role string) access {
	a := access{action: "iam:PassRole", keys: map[string]string{"iam:PassedToService": "ec2.amazonaws.com"}}
	if role != "" {
		a.resource = c.roleInfo(role).ARN
	}
	return a
}

// arn names a resource of the account in the region.
func (c *Cloud) arn(service, resource string) string {
	return fmt.Sprintf("arn:aws:%s:%s:%s:%s", service, c.opt.Region, c.opt.Account, resource)
}

func requestTags(t Tags) map[string]string  { return tagKeys("aws:RequestTag/", t) }
func resourceTags(t Tags) map[string]string { return tagKeys("aws:ResourceTag/", t) }

func tagKeys(prefix string, t Tags) map[string]string {
	keys := map[string]string{}
	for k, v := range t {
		keys[prefix+k] = v
	}
	return keys
}

// making are the rights to make a resource and, where it is tagged at once, to
// tag it.
func (c *Cloud) making(action, kind string, specs []TagSpec) []access {
	out := []access{{action: "ec2:" + action, resource: c.arn("ec2", kind+"/*"), keys: requestTags(tagsFor(specs, kind))}}
	for _, s := range specs {
		keys := requestTags(s.Tags)
		keys["ec2:CreateAction"] = action
		out = append(out, access{action: "ec2:CreateTags", resource: c.arn("ec2", s.ResourceType+"/*"), keys: keys})
	}
	return out
}

func (in *CreateFleetInput) accesses(c *Cloud) []access {
	return c.making("CreateFleet", "fleet", in.TagSpecs)
}

func (in *RunInstancesInput) accesses(c *Cloud) []access {
	out := c.making("RunInstances", "instance", in.TagSpecs)
	if p := in.Profile; p != nil {
		out = append(out, c.passRole(c.roleOf(cmp.Or(p.Name, p.ARN))))
	}
	return out
}

func (in *CreateLaunchTemplateInput) accesses(c *Cloud) []access {
	return c.making("CreateLaunchTemplate", "launch-template", in.TagSpecs)
}

// changing are the rights to change resources that exist; the others need none,
// as the call fails without them.
func (c *Cloud) changing(action string, ids []string, keys map[string]string) []access {
	var out []access
	for _, r := range c.resources() {
		if slices.Contains(ids, r.id) {
			context := resourceTags(r.tags)
			maps.Copy(context, keys)
			out = append(out, access{action: "ec2:" + action, resource: c.arn("ec2", r.kind+"/"+r.id), keys: context})
		}
	}
	return out
}

func (in *TerminateInstancesInput) accesses(c *Cloud) []access {
	return c.changing("TerminateInstances", in.IDs, nil)
}

func (in *CreateTagsInput) accesses(c *Cloud) []access {
	return c.changing("CreateTags", in.IDs, requestTags(in.Tags))
}

func (in *DeleteTagsInput) accesses(c *Cloud) []access { return c.changing("DeleteTags", in.IDs, nil) }

func (in *DeleteLaunchTemplateInput) accesses(c *Cloud) []access {
	t, err := c.resolve(TemplateRef{LaunchTemplateID: in.LaunchTemplateID, LaunchTemplateName: in.LaunchTemplateName})
	if err != nil {
		return nil
	}
	return c.changing("DeleteLaunchTemplate", []string{t.ID}, nil)
}

// onProfile are the rights to do something with an instance profile. One that
// does not exist is looked for without a path.
func (c *Cloud) onProfile(action, name string) []access {
	path, tags := "/", Tags(nil)
	if p := c.profiles[name]; p != nil {
		path, tags = p.path, p.tags
	}
	return []access{{action: "iam:" + action, resource: c.profileARN(path, name), keys: resourceTags(tags)}}
}

func (c *Cloud) profileARN(path, name string) string {
	return fmt.Sprintf("arn:aws:iam::%s:instance-profile%s%s", c.opt.Account, path, name)
}

func (in *CreateInstanceProfileInput) accesses(c *Cloud) []access {
	one := access{action: "iam:CreateInstanceProfile", resource: c.profileARN(cmp.Or(in.Path, "/"), in.InstanceProfileName), keys: requestTags(in.Tags)}
	out := []access{one}
	if len(in.Tags) > 0 {
		one.action = "iam:TagInstanceProfile"
		out = append(out, one)
	}
	return out
}

func (in *GetInstanceProfileInput) accesses(c *Cloud) []access {
	return c.onProfile("GetInstanceProfile", in.InstanceProfileName)
}

func (in *ListInstanceProfilesInput) accesses(c *Cloud) []access {
	return []access{{action: "iam:ListInstanceProfiles", resource: c.profileARN(cmp.Or(in.PathPrefix, "/"), "")}}
}

func (in *DeleteInstanceProfileInput) accesses(c *Cloud) []access {
	return c.onProfile("DeleteInstanceProfile", in.InstanceProfileName)
}

func (in *TagInstanceProfileInput) accesses(c *Cloud) []access {
	return c.onProfile("TagInstanceProfile", in.InstanceProfileName)
}

func (in *AddRoleToInstanceProfileInput) accesses(c *Cloud) []access {
	return append(c.onProfile("AddRoleToInstanceProfile", in.InstanceProfileName), c.passRole(in.RoleName))
}

func (in *RemoveRoleFromInstanceProfileInput) accesses(c *Cloud) []access {
	return c.onProfile("RemoveRoleFromInstanceProfile", in.InstanceProfileName)
}

func (in *DescribeClusterInput) accesses(c *Cloud) []access {
	return []access{{action: "eks:DescribeCluster", resource: c.arn("eks", "cluster/"+in.Name)}}
}

func (in *GetParameterInput) accesses(c *Cloud) []access {
	p, _ := c.parameter(in.Name)
	return []access{{action: "ssm:GetParameter", resource: p.ARN}}
}

// onQueue are the rights to do something with a queue, by its name or address.
func (c *Cloud) onQueue(action, url string) []access {
	return []access{{action: "sqs:" + action, resource: c.arn("sqs", url[strings.LastIndex(url, "/")+1:])}}
}

func (in *GetQueueUrlInput) accesses(c *Cloud) []access {
	return c.onQueue("GetQueueUrl", in.QueueName)
}

func (in *ReceiveMessageInput) accesses(c *Cloud) []access {
	return c.onQueue("ReceiveMessage", in.QueueURL)
}

func (in *DeleteMessageInput) accesses(c *Cloud) []access {
	return c.onQueue("DeleteMessage", in.QueueURL)
}

// accesses of a batch are those of what it is a batch of.
func (in *DeleteMessageBatchInput) accesses(c *Cloud) []access {
	return c.onQueue("DeleteMessage", in.QueueURL)
}
