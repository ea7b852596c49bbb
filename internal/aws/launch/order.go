// Package launch turns a class, what its selectors found and a launch request
// into what is sent to EC2: launch templates with user data, and a fleet
// request.
//
// It is pure: it may import aws/class, cloud and core, never the AWS SDK. What
// always holds: the same input gives the same bytes, whatever the order of
// lists and maps was.
package launch

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"karpenter/internal/cloud"
	"karpenter/internal/core/label"
	"karpenter/internal/core/quantity"
)

// Order is a launch with everything that is needed to send it, and to send it
// again, without asking anybody.
type Order struct {
	Fleet Fleet `json:"fleet"`
	// Templates are the launch templates that Fleet names, so that one that
	// was deleted can be made again. A template of the user is not among them.
	Templates []Template `json:"templates,omitempty"`
	// Types say what each instance type of Fleet promises, by name.
	Types map[string]Promise `json:"types"`
	// Together is set where the fleet is for several launches.
	Together *Together `json:"together,omitempty"`
}

// Together are the launches that one fleet is for.
type Together struct {
	// Token of the fleet, and a tag of its machines.
	Token string `json:"token"`
	// Members are the tokens of the launches, sorted. Machines, sorted by id, are
	// dealt to them in this order.
	Members []string `json:"members"`
}

// Promise is what a node of an instance type will have.
type Promise struct {
	Labels      map[string]string  `json:"labels"`
	Capacity    quantity.Resources `json:"capacity"`
	Allocatable quantity.Resources `json:"allocatable"`
}

// Fleet is a request for machines out of many offerings. The client token is not
// part of it.
type Fleet struct {
	// Count is how many machines; 0 means one.
	Count        int64    `json:"count,omitempty"`
	CapacityType string   `json:"capacityType"`
	Context      string   `json:"context,omitempty"`
	Configs      []Config `json:"configs"`
	// Tags go on the instance, its volumes and the fleet, sorted by key.
	Tags []Tag `json:"tags"`
}

// Config lists the offerings that use one launch template, cheapest first.
type Config struct {
	Template  string     `json:"template"`
	Version   string     `json:"version"`
	ImageID   string     `json:"imageID,omitempty"` // for the record; not sent
	Overrides []Override `json:"overrides"`
}

// Override is one place where a machine may be bought.
type Override struct {
	Type   string `json:"type"`
	Subnet string `json:"subnet"`
	Zone   string `json:"zone"`
}

// Tag is an EC2 tag.
type Tag struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// Answer is what EC2 Fleet said.
type Answer struct {
	Machines []Machine
	Errors   []Refusal
}

// Machine is one machine that the fleet launched.
type Machine struct {
	ID       string
	Override Override
}

// Refusal is an error about one override.
type Refusal struct {
	Code     string
	Message  string
	Override Override
}

const (
	// plainLimit is the size in bytes up to which an order is kept readable.
	plainLimit = 2 << 10
	gzipMark   = "gz:"
	// mostPrepared bytes fit beside what else is written on a NodeClaim, whose
	// annotations may have 256 KiB.
	mostPrepared = 192 << 10
)

// Encode writes the order as text, small enough for an annotation.
func Encode(o Order) (cloud.Prepared, error) {
	plain, err := json.Marshal(o)
	if err != nil {
		return "", fmt.Errorf("writing the launch order: %w", err)
	}
	if len(plain) <= plainLimit {
		return cloud.Prepared(plain), nil
	}
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	if _, err := zip.Write(plain); err != nil {
		return "", fmt.Errorf("packing the launch order: %w", err)
	}
	if err := zip.Close(); err != nil {
		return "", fmt.Errorf("packing the launch order: %w", err)
	}
	out := gzipMark + base64.StdEncoding.EncodeToString(packed.Bytes())
	if len(out) > mostPrepared {
		return "", fmt.Errorf("the launch order takes %d bytes, and %d can be written down: use fewer images, or shorter user data", len(out), mostPrepared)
	}
	return cloud.Prepared(out), nil
}

// Decode reads what Encode wrote.
func Decode(p cloud.Prepared) (Order, error) {
	plain := []byte(p)
	if packed, ok := strings.CutPrefix(string(p), gzipMark); ok {
		zip, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(packed)))
		if err != nil {
			return Order{}, fmt.Errorf("reading the stored launch order: %w", err)
		}
		if plain, err = io.ReadAll(zip); err != nil {
			return Order{}, fmt.Errorf("reading the stored launch order: %w", err)
		}
	}
	var o Order
	if err := json.Unmarshal(plain, &o); err != nil {
		return Order{}, fmt.Errorf("reading the stored launch order: %w", err)
	}
	return o, nil
}

// Shared is the fleet without what belongs to one launch, so that those that
// want the same are equal. Machines of no pool are not shared: nothing but their
// own tags would tell that they are ours.
func (f *Fleet) Shared() (Fleet, bool) {
	out, pooled := *f, false
	out.Tags = nil
	for _, t := range f.Tags {
		pooled = pooled || t.Key == label.Provisioner || t.Key == label.NodePool
		if t.Key != ClaimTag && t.Key != TokenTag {
			out.Tags = append(out.Tags, t)
		}
	}
	return out, pooled
}

// JoinFleet makes a shared fleet one for all these tokens.
func JoinFleet(f *Fleet, tokens []string) Together {
	t := Together{Members: slices.Sorted(slices.Values(tokens))}
	sum := sha256.Sum256([]byte(strings.Join(t.Members, "\n")))
	t.Token = hex.EncodeToString(sum[:16])
	f.Count = int64(len(t.Members))
	f.Tags = append(slices.Clone(f.Tags), Tag{TogetherTag, t.Token})
	slices.SortFunc(f.Tags, func(a, b Tag) int { return strings.Compare(a.Key, b.Key) })
	return t
}

// Keys returns the offerings that the fleet asks for, in its order.
func (f *Fleet) Keys() []cloud.OfferingKey {
	var keys []cloud.OfferingKey
	for _, c := range f.Configs {
		for _, o := range c.Overrides {
			keys = append(keys, f.key(o))
		}
	}
	return keys
}

func (f *Fleet) key(o Override) cloud.OfferingKey {
	return cloud.OfferingKey{Type: o.Type, Zone: o.Zone, CapacityType: f.CapacityType}
}

// Tag returns the value of a tag of the machine.
func (f *Fleet) Tag(key string) string { return f.TagMap()[key] }

// TagMap returns the tags of the machine.
func (f *Fleet) TagMap() map[string]string {
	out := make(map[string]string, len(f.Tags))
	for _, t := range f.Tags {
		out[t.Key] = t.Value
	}
	return out
}

// Complete fills in what an answer of EC2 leaves out of an override: the zone
// of its subnet.
func (f *Fleet) Complete(o Override) Override {
	for _, c := range f.Configs {
		for _, mine := range c.Overrides {
			if o.Subnet == mine.Subnet && o.Subnet != "" {
				o.Zone = mine.Zone
				return o
			}
		}
	}
	return o
}

// Image returns the image of a machine that was made at the override; empty if
// the template is not ours.
func (f *Fleet) Image(o Override) string {
	for _, c := range f.Configs {
		if slices.Contains(c.Overrides, o) {
			return c.ImageID
		}
	}
	return ""
}
