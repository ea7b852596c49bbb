package ec2

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"karpenter/internal/aws/catalog"
)

// State of an instance.
type State string

// The states of an instance.
const (
	Pending      State = "pending"
	Running      State = "running"
	ShuttingDown State = "shutting-down"
	Terminated   State = "terminated"
	Stopping     State = "stopping"
	Stopped      State = "stopped"
)

var stateCodes = map[State]int{Pending: 0, Running: 16, ShuttingDown: 32, Terminated: 48, Stopping: 64, Stopped: 80}

// Market is how an instance is paid for.
type Market string

// The markets.
const (
	OnDemand Market = "on-demand"
	Spot     Market = "spot"
)

// Tags of a resource.
type Tags map[string]string

// Instance is a machine. Values handed out are copies.
type Instance struct {
	ID     string      `json:"id"`
	Type   string      `json:"type"`
	Row    catalog.Row `json:"-"`
	Zone   string      `json:"zone"`
	Market Market      `json:"market"`
	State  State       `json:"state"`
	// Reason says who ended it, as EC2 writes it.
	Reason     string    `json:"reason,omitempty"`
	ReasonCode string    `json:"reasonCode,omitempty"`
	Launched   time.Time `json:"launched"`
	// Since is the time of the last change of State.
	Since time.Time `json:"since"`

	ImageID          string   `json:"imageId"`
	SubnetID         string   `json:"subnetId"`
	VPCID            string   `json:"vpcId"`
	SecurityGroups   []string `json:"securityGroups"`
	PrivateIP        string   `json:"privateIp,omitempty"`
	PrivateDNS       string   `json:"privateDns,omitempty"`
	NetworkInterface string   `json:"networkInterface"`
	InstanceProfile  string   `json:"instanceProfile,omitempty"`
	// UserData is decoded: what the machine would read at boot.
	UserData    string          `json:"-"`
	Metadata    MetadataOptions `json:"metadata"`
	Monitoring  bool            `json:"monitoring,omitempty"`
	Volumes     []string        `json:"volumes,omitempty"`
	Tags        Tags            `json:"tags"`
	NetworkTags Tags            `json:"networkTags,omitempty"`

	FleetID         string `json:"fleetId,omitempty"`
	TemplateID      string `json:"templateId,omitempty"`
	TemplateVersion int64  `json:"templateVersion,omitempty"`
	// Token is the client token of the request that started it.
	Token string `json:"clientToken,omitempty"`
	// NeverJoins is set by a fault on "boot": it runs, but nothing comes of it.
	NeverJoins bool `json:"neverJoins,omitempty"`

	seq     int       // launch order, from 1
	visible time.Time // to Describe calls
	shown   []shownTags
	due     time.Time // of the next transition; zero: none
	next    State     // "": forgotten
	addr    netip.Addr
	disks   []*Volume

	slow                   time.Duration // added to the boot
	ends                   time.Time     // announced; zero: not
	impaired, hostImpaired time.Time     // status checks fail since then
	planned                []PlannedEvent
}

// shownTags are the tags that Describe calls show from a time on.
type shownTags struct {
	from time.Time
	tags Tags
}

// ProviderID is the name of the machine in a Node: aws:///zone/id.
func (i *Instance) ProviderID() string { return "aws:///" + i.Zone + "/" + i.ID }

// Gone reports whether the instance will never run again.
func (i *Instance) Gone() bool { return i.State == ShuttingDown || i.State == Terminated }

func (i *Instance) clone() Instance {
	o := *i
	o.SecurityGroups, o.Volumes = slices.Clone(i.SecurityGroups), slices.Clone(i.Volumes)
	o.Tags, o.NetworkTags, o.shown, o.disks = maps.Clone(i.Tags), maps.Clone(i.NetworkTags), nil, nil
	return o
}

// tagsAt returns the tags that a Describe call sees.
func (i *Instance) tagsAt(now time.Time) Tags {
	for _, s := range slices.Backward(i.shown) {
		if !s.from.After(now) {
			return s.tags
		}
	}
	return i.Tags
}

// Instance returns an instance by id, whether or not Describe shows it yet.
func (c *Cloud) Instance(id string) (Instance, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i, ok := c.byID[id]
	if !ok {
		return Instance{}, false
	}
	return i.clone(), true
}

// Instances returns all instances in launch order, terminated ones included
// until they are forgotten.
func (c *Cloud) Instances() []Instance {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]Instance, len(c.instances))
	for k, i := range c.instances {
		out[k] = i.clone()
	}
	return out
}

// Place adds a machine that was started by somebody else, as it is described:
// running unless State says otherwise, launched now unless Launched does, and
// without an address or volumes of its own. It is shown at once.
func (c *Cloud) Place(i Instance) error {
	c.mu.Lock()
	_, taken := c.byID[i.ID]
	row, known := c.types[i.Type]
	switch {
	case i.ID == "" || taken:
		c.mu.Unlock()
		return fmt.Errorf("placing instance %q: the id is empty or taken", i.ID)
	case known:
		i.Row = *row
	}
	i.State, i.Market = cmp.Or(i.State, Running), cmp.Or(i.Market, OnDemand)
	if i.Launched.IsZero() {
		i.Launched = c.now()
	}
	i.Tags = maps.Clone(i.Tags)
	c.launched++
	i.seq = c.launched
	c.instances = append(c.instances, &i)
	c.byID[i.ID] = &i
	c.move(&i, i.State, c.now())
	c.mu.Unlock()
	c.deliver()
	return nil
}

// Tick applies everything that has become due.
func (c *Cloud) Tick() {
	c.mu.Lock()
	c.advance()
	c.mu.Unlock()
	c.deliver()
}

// NextDue returns when Tick will next have something to do; false if nothing
// is under way.
func (c *Cloud) NextDue() (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nextDue, !c.nextDue.IsZero()
}

// Run ticks in real time until the context ends.
func (c *Cloud) Run(ctx context.Context) {
	t := time.NewTicker(50 * time.Millisecond)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			c.Tick()
		}
	}
}

// advance applies due transitions, the earliest first.
func (c *Cloud) advance() {
	now := c.now()
	for !c.nextDue.IsZero() && !c.nextDue.After(now) {
		first := slices.MinFunc(c.instances, func(a, b *Instance) int {
			if a.due.IsZero() != b.due.IsZero() {
				if a.due.IsZero() {
					return 1
				}
				return -1
			}
			return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.seq, b.seq))
		})
		if first.next == "" {
			c.forget(first)
		} else {
			c.move(first, first.next, first.due)
		}
		c.reschedule()
	}
}

func (c *Cloud) reschedule() {
	c.nextDue = time.Time{}
	for _, i := range c.instances {
		if !i.due.IsZero() && (c.nextDue.IsZero() || i.due.Before(c.nextDue)) {
			c.nextDue = i.due
		}
	}
}

// move puts an instance into a state and plans what follows from it.
func (c *Cloud) move(i *Instance, to State, at time.Time) {
	from := i.State
	i.State, i.Since, i.due, i.next = to, at, time.Time{}, ""
	switch to {
	case Pending:
		i.due, i.next = at.Add(c.jitter(c.opt.BootDelay)+i.slow), Running
	case ShuttingDown:
		i.due, i.next = at.Add(c.opt.ShutdownDelay), Terminated
		if i.ReasonCode == "" && !i.ends.IsZero() {
			i.ReasonCode, i.Reason = spotReason, spotReason+": Spot instance termination"
		}
	case Stopping:
		i.due, i.next = at.Add(c.opt.ShutdownDelay), Stopped
	case Terminated:
		i.due = at.Add(c.opt.KeepTerminated)
		c.release(i)
	}
	c.bound(i)
	c.reschedule()
	c.stateChanged(i)
	c.outbox = append(c.outbox, Event{Time: at, From: from, Instance: i.clone()})
}

// jitter varies d by the configured percentage in both directions.
func (c *Cloud) jitter(d time.Duration) time.Duration {
	span := int64(d) * int64(c.opt.JitterPercent) / 100
	if span <= 0 {
		return d
	}
	return d + time.Duration(c.rng.Int64N(2*span+1)-span)
}

// release gives back what a terminated instance held.
func (c *Cloud) release(i *Instance) {
	if s := c.subnet(i.SubnetID); s != nil { // it may have been deleted
		s.release(i.addr)
	}
	i.PrivateIP, i.PrivateDNS, i.disks = "", "", nil
	c.volumes = slices.DeleteFunc(c.volumes, func(v *Volume) bool {
		return v.Instance == i.ID && v.DeleteOnTermination
	})
}

// forget removes an instance from the account, and with it client tokens that
// are as old.
func (c *Cloud) forget(i *Instance) {
	c.instances = slices.DeleteFunc(c.instances, func(o *Instance) bool { return o == i })
	delete(c.byID, i.ID)
	old := c.now().Add(-max(24*time.Hour, c.opt.KeepTerminated))
	maps.DeleteFunc(c.answers, func(_ string, a answer) bool { return a.at.Before(old) })
}

// terminate starts the end of an instance; it is no error if it has begun.
func (c *Cloud) terminate(i *Instance, code, reason string) {
	if i.Gone() {
		return
	}
	i.Reason, i.ReasonCode = reason, code
	c.move(i, ShuttingDown, c.now())
}

const spotReason = "Server.SpotInstanceTermination"

// Terminate ends an instance from outside, as an operator, a spot reclaim or a
// failing host does. Unknown ids are an *[Error].
func (c *Cloud) Terminate(id string) error {
	return c.change(id, func(i *Instance) error {
		if i.Market == Spot {
			c.terminate(i, spotReason, spotReason+": Spot instance termination")
		} else {
			c.terminate(i, "Client.UserInitiatedShutdown", "User initiated ("+c.now().Format("2006-01-02 15:04:05 MST")+")")
		}
		return nil
	})
}

// Stop stops a running instance from outside.
func (c *Cloud) Stop(id string) error {
	return c.change(id, func(i *Instance) error {
		if i.State != Running {
			return errorf("IncorrectInstanceState", "The instance '%s' is not in a state from which it can be stopped.", id)
		}
		i.Reason, i.ReasonCode = "User initiated ("+c.now().Format("2006-01-02 15:04:05 MST")+")", "Client.UserInitiatedShutdown"
		c.move(i, Stopping, c.now())
		return nil
	})
}

// Start starts a stopped instance from outside.
func (c *Cloud) Start(id string) error {
	return c.change(id, func(i *Instance) error {
		if i.State != Stopped {
			return errorf("IncorrectInstanceState", "The instance '%s' is not in a state from which it can be started.", id)
		}
		i.Reason, i.ReasonCode = "", ""
		c.move(i, Pending, c.now())
		return nil
	})
}

func (c *Cloud) change(id string, f func(*Instance) error) error {
	c.mu.Lock()
	c.advance()
	i, ok := c.byID[id]
	err := error(noInstances(id))
	if ok {
		err = f(i)
	}
	c.mu.Unlock()
	c.deliver()
	return err
}

func noInstances(ids ...string) *Error {
	if len(ids) == 1 {
		return errorf("InvalidInstanceID.NotFound", "The instance ID '%s' does not exist", ids[0])
	}
	return errorf("InvalidInstanceID.NotFound", "The instance IDs '%s' do not exist", strings.Join(ids, ", "))
}

// privateDNS is the IP-based host name of an address.
func (c *Cloud) privateDNS(a netip.Addr) string {
	domain := c.opt.Region + ".compute.internal"
	if c.opt.Region == "us-east-1" {
		domain = "ec2.internal"
	}
	return fmt.Sprintf("ip-%s.%s", strings.ReplaceAll(a.String(), ".", "-"), domain)
}
