package ec2

import (
	"maps"
	"slices"
	"strings"
)

// checkTags holds the rules for tags that a caller sets.
func checkTags(t Tags) error {
	for _, k := range slices.Sorted(maps.Keys(t)) {
		switch {
		case strings.HasPrefix(k, "aws:"):
			return errorf("InvalidParameterValue", "Tag keys starting with 'aws:' are reserved for internal use: '%s'", k)
		case k == "" || len(k) > 128:
			return errorf("InvalidParameterValue", "Tag keys must have 1 to 128 characters: '%s'", k)
		case len(t[k]) > 256:
			return errorf("InvalidParameterValue", "Tag value exceeds the maximum length of 256 characters: key '%s'", k)
		}
	}
	return countTags(t)
}

func countTags(t Tags) error {
	n := 0
	for k := range t {
		if !strings.HasPrefix(k, "aws:") {
			n++
		}
	}
	if n > 50 {
		return errorf("TagLimitExceeded", "The maximum number of Tags for a resource has been reached: %d of 50.", n)
	}
	return nil
}

func checkSpecs(specs []TagSpec) error {
	for _, s := range specs {
		if err := checkTags(s.Tags); err != nil {
			return err
		}
	}
	return nil
}

// resource is anything that carries tags.
type resource struct {
	id, kind string
	tags     Tags
	set      func(Tags)
}

// resources lists everything that carries tags.
func (c *Cloud) resources() []resource {
	var out []resource
	add := func(id, kind string, at *Tags) {
		out = append(out, resource{id, kind, *at, func(t Tags) { *at = t }})
	}
	for _, i := range c.visibleInstances() {
		out = append(out, resource{i.ID, "instance", i.Tags, func(t Tags) { c.retag(i, t) }})
		add(i.NetworkInterface, "network-interface", &i.NetworkTags)
	}
	for _, v := range c.volumes {
		add(v.ID, "volume", &v.Tags)
	}
	for _, t := range c.templates {
		add(t.ID, "launch-template", &t.Tags)
	}
	for _, s := range pointers(c.world.Subnets) {
		add(s.ID, "subnet", &s.Tags)
	}
	for _, g := range pointers(c.world.SecurityGroups) {
		add(g.ID, "security-group", &g.Tags)
	}
	for _, i := range pointers(c.world.Images) {
		add(i.ID, "image", &i.Tags)
	}
	for _, v := range pointers(c.world.VPCs) {
		add(v.ID, "vpc", &v.Tags)
	}
	for _, id := range slices.Sorted(maps.Keys(c.fleets)) {
		out = append(out, resource{id, "fleet", c.fleets[id], func(t Tags) { c.fleets[id] = t }})
	}
	return out
}

// retag changes an instance's tags; Describe calls see it after the lag.
func (c *Cloud) retag(i *Instance, t Tags) {
	if c.opt.Lag > 0 {
		now := c.now()
		i.shown = []shownTags{{from: now, tags: i.tagsAt(now)}, {from: now.Add(c.opt.Lag), tags: t}}
	}
	i.Tags = t
}

// edit changes the tags of resources: of all or of none.
func (c *Cloud) edit(ids []string, f func(Tags)) error {
	if len(ids) == 0 {
		return missing("ResourceId")
	}
	all := c.resources()
	var targets []resource
	for _, id := range ids {
		k := slices.IndexFunc(all, func(r resource) bool { return r.id == id })
		switch {
		case k < 0 && strings.HasPrefix(id, "i-"):
			return noInstances(id)
		case k < 0:
			return errorf("InvalidID", "The ID '%s' is not valid", id)
		}
		targets = append(targets, all[k])
	}
	for k := range targets {
		t := maps.Clone(targets[k].tags)
		if t == nil {
			t = Tags{}
		}
		f(t)
		if err := countTags(t); err != nil {
			return err
		}
		targets[k].tags = t
	}
	for _, r := range targets {
		r.set(r.tags)
	}
	return nil
}

// CreateTagsInput sets tags.
type CreateTagsInput struct {
	Common
	IDs  []string `query:"ResourceId"`
	Tags Tags     `query:"Tag"`
}

func (in *CreateTagsInput) do(c *Cloud) (*Done, error) {
	if len(in.Tags) == 0 {
		return nil, missing("Tag")
	}
	if err := checkTags(in.Tags); err != nil {
		return nil, err
	}
	return &Done{Return: true}, c.edit(in.IDs, func(t Tags) { maps.Copy(t, in.Tags) })
}

// DeleteTagsInput removes tags: those with the given value, or whatever the
// value if none is given; all tags if none is named.
type DeleteTagsInput struct {
	Common
	IDs  []string `query:"ResourceId"`
	Tags Tags     `query:"Tag"`
}

func (in *DeleteTagsInput) do(c *Cloud) (*Done, error) {
	return &Done{Return: true}, c.edit(in.IDs, func(t Tags) {
		maps.DeleteFunc(t, func(k, v string) bool {
			want, named := in.Tags[k]
			return !strings.HasPrefix(k, "aws:") && (len(in.Tags) == 0 || named && (want == "" || want == v))
		})
	})
}

// DescribeTagsInput asks for tags.
type DescribeTagsInput struct {
	Common
	Page
	Filters []Filter `query:"Filter"`
}

// TagInfo is a tag of a resource.
type TagInfo struct {
	ResourceID   string `xml:"resourceId"`
	ResourceType string `xml:"resourceType"`
	Key          string `xml:"key"`
	Value        string `xml:"value"`
}

// DescribeTagsOutput lists tags.
type DescribeTagsOutput struct {
	Response
	Tags      Set[TagInfo] `xml:"tagSet"`
	NextToken string       `xml:"nextToken,omitempty"`
}

func (t TagInfo) id() string { return t.ResourceID + "/" + t.Key }

func (in *DescribeTagsInput) do(c *Cloud) (*DescribeTagsOutput, error) {
	var all []TagInfo
	now := c.now()
	for _, r := range c.resources() {
		tags := r.tags
		if i := c.byID[r.id]; i != nil {
			tags = i.tagsAt(now)
		}
		for k, v := range tags {
			all = append(all, TagInfo{r.id, r.kind, k, v})
		}
	}
	part, next, err := listing[TagInfo]{
		items: all, key: TagInfo.id, filters: in.Filters, bounds: paged,
		attributes: attributes[TagInfo]{
			"resource-id":   one(func(t TagInfo) string { return t.ResourceID }),
			"resource-type": one(func(t TagInfo) string { return t.ResourceType }),
			"key":           one(func(t TagInfo) string { return t.Key }),
			"value":         one(func(t TagInfo) string { return t.Value }),
		},
		tags: func(t TagInfo) Tags { return Tags{t.Key: t.Value} },
	}.page(in.Page)
	return &DescribeTagsOutput{Tags: part, NextToken: next}, err
}
