package launch

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"karpenter/internal/aws/class"
	"karpenter/internal/aws/family"
	"karpenter/internal/cloud"
	"karpenter/internal/core/label"
)

// syncedTaints is a label that says that the kubelet puts all taints on its node
// itself: one that is taken off early must not come back.
const syncedTaints = "karpenter.sh/do-not-sync-taints"

// latest is the version of a launch template that fleets ask for.
const latest = "$Latest"

// Plan is all that an order is made of.
type Plan struct {
	Class   *class.Class
	Cluster *Cluster
	Request *cloud.LaunchRequest
	// CapacityType and Candidates come from Choose; offerings in zones without
	// a subnet are left out.
	CapacityType string
	Candidates   []Candidate
	Subnets      map[string]Subnet
	Groups       []string
	// Profile is the name of the instance profile.
	Profile string
}

// Order builds the launch: one launch template per image, and a fleet request
// that names every offering. Errors: *cloud.BadClassError about the tags or
// the user data, *cloud.NoCapacityError if no zone has a subnet.
func (p Plan) Order() (Order, error) {
	tags, err := p.tags()
	if err != nil {
		return Order{}, err
	}
	userData, err := p.userData()
	if err != nil {
		return Order{}, err
	}
	p.Candidates = fewer(p.Candidates, p.Subnets, MostOverrides)
	base := BaseTags(p.Class, p.Cluster, p.Request)
	o := Order{
		Fleet: Fleet{
			CapacityType: p.CapacityType,
			Context:      p.Class.Context,
			Tags:         tags,
		},
		Types: make(map[string]Promise, len(p.Candidates)),
	}
	for _, image := range p.images() {
		config := Config{Template: p.Class.LaunchTemplate, Version: latest, ImageID: image, Overrides: p.overrides(image)}
		if config.Template == "" {
			t, err := p.template(image, base, userData)
			if err != nil {
				return Order{}, err
			}
			config.Template = t.Name
			o.Templates = append(o.Templates, t)
		}
		o.Fleet.Configs = append(o.Fleet.Configs, config)
	}
	if len(o.Fleet.Configs) == 0 {
		return Order{}, &cloud.NoCapacityError{Detail: "no zone of the offerings has a subnet that can be used"}
	}
	for _, c := range p.Candidates {
		o.Types[c.Type.Name] = Promise{Labels: c.Type.Labels, Capacity: c.Type.Capacity, Allocatable: c.Type.Allocatable}
	}
	return o, nil
}

// images lists the images in the order in which the candidates need them.
func (p Plan) images() []string {
	var out []string
	for _, c := range p.Candidates {
		if !slices.Contains(out, c.ImageID) {
			out = append(out, c.ImageID)
		}
	}
	return out
}

func (p Plan) overrides(image string) []Override {
	var out []Override
	for _, c := range p.Candidates {
		if c.ImageID != image {
			continue
		}
		for _, o := range c.Offerings {
			out = append(out, Override{Type: c.Type.Name, Subnet: p.Subnets[o.Zone].ID, Zone: o.Zone})
		}
	}
	return out
}

// Check tells, without asking AWS, whether EC2 would take what class, settings
// and request say about a machine: *cloud.BadClassError about tags or user data.
func Check(c *class.Class, cl *Cluster, req *cloud.LaunchRequest) error {
	p := Plan{Class: c, Cluster: cl, Request: req, CapacityType: label.OnDemand}
	if _, err := p.tags(); err != nil {
		return err
	}
	_, err := p.userData()
	return err
}

func (p Plan) tags() ([]Tag, error) {
	tags := MachineTags(BaseTags(p.Class, p.Cluster, p.Request), p.Cluster, p.Request)
	if len(tags) > mostTags {
		return nil, &cloud.BadClassError{Class: p.Class.Ref, Field: p.Class.Field("tags"), Problem: fmt.Sprintf(
			"with those of the setting aws.tags and ours a machine has %d tags, and EC2 takes %d: take some off", len(tags), mostTags)}
	}
	return tags, nil
}

// userData is empty where the user's own launch template says it.
func (p Plan) userData() (string, error) {
	if p.Class.LaunchTemplate != "" {
		return "", nil
	}
	labels := map[string]string{label.CapacityType: p.CapacityType}
	maps.Copy(labels, p.Request.Labels)
	if p.Request.Pool != "" {
		labels[p.Request.PoolLabel] = p.Request.Pool
	}
	f, _ := family.Named(p.Class.Family)
	if p.Class.Newer() && f.Format != family.Verbatim {
		labels[syncedTaints] = "true"
	}
	text, err := UserData(Boot{
		Cluster:       p.Cluster,
		Family:        f,
		RAID0:         p.Class.RAID0,
		Kubelet:       p.Class.KubeletOf(p.Request.Kubelet),
		Labels:        labels,
		Taints:        p.Request.Taints,
		StartupTaints: p.Request.StartupTaints,
		Custom:        p.Class.UserData,
	})
	if err != nil {
		return "", &cloud.BadClassError{Class: p.Class.Ref, Field: p.Class.Field("userData"), Problem: err.Error()}
	}
	return text, nil
}

// Describe names, in words for errors, what was refused: the distinct codes
// and messages.
func Describe(refusals []Refusal) string {
	var out []string
	for _, r := range refusals {
		text := r.Code + ": " + strings.TrimSuffix(r.Message, ".")
		if !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	if len(out) == 0 {
		return "EC2 Fleet launched nothing and gave no reason"
	}
	slices.Sort(out)
	return strings.Join(out, "; ")
}
