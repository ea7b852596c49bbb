package planner

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	apiv1 "karpenter/api/v1"
	"karpenter/internal/core/disrupt"
	"karpenter/internal/dump"
	"karpenter/internal/journal"
	"karpenter/internal/kube/dialect"
	"karpenter/internal/kube/intent"
	"karpenter/internal/kube/mirror"
	"karpenter/internal/settings"
)

// command waits for its last check.
type command struct {
	disrupt.Command
	id        string
	since     time.Time
	notBefore time.Time
}

// down looks for machines to remove, and marks them, until no more are found:
// each look is at a snapshot that has the marks of the ones before it. An answer
// that nothing can have changed is not asked for again.
func (p *Planner) down(ctx context.Context, set settings.Settings) error {
	if p.stands(ctx, set) {
		return nil
	}
	for {
		seen := p.noticed()
		v, err := p.view(ctx, set)
		if err != nil {
			return err
		}
		start := p.Now()
		d := disrupt.Decide(v.Snapshot, start, dump.Usual().Look())
		p.Metrics.Evaluated(p.Now().Sub(start))
		p.stays(v, d, start)
		marked := false
		for _, found := range d.Commands {
			p.serial++
			wait := settle
			if found.Method == disrupt.Consolidation {
				wait = validate
			}
			cmd := command{Command: found, since: start, notBefore: start.Add(wait),
				id: found.Remove[0].Claim + "-" + strconv.FormatInt(start.Unix(), 36) + "-" + strconv.Itoa(p.serial)}
			p.Journal.Add(journal.Chosen(v.Snapshot, d, &found, cmd.id, describe(found), dump.Usual(), start))
			any, err := p.mark(ctx, cmd)
			if err != nil {
				return err
			}
			marked = marked || any
		}
		if !marked {
			p.stand(set, v, d, seen, start)
			return nil
		}
	}
}

// mark writes the intent on the machines of a command and closes them to new
// pods. Those that changed meanwhile are left out; it reports whether any is
// left.
func (p *Planner) mark(ctx context.Context, cmd command) (bool, error) {
	in := intent.Intent{ID: cmd.id, Method: cmd.Method, Since: cmd.since}
	marked := cmd
	marked.Remove = nil
	for _, t := range cmd.Remove {
		claim, node, err := p.read(ctx, t)
		if err == nil {
			err = intent.Mark(ctx, p.Client, claim, node, in)
		}
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			// Somebody else was faster; the next look sees what it is now. A mark
			// written by half is taken back by the replace controller.
			p.Log.V(1).Info("could not be marked", "node", t.Node, "reason", err.Error())
			continue
		}
		if err != nil {
			return false, fmt.Errorf("marking node %s for %s: %w", t.Node, cmd.Method, err)
		}
		p.Mirror.Intent(t.Claim, cmd.Method, p.Now())
		marked.Remove = append(marked.Remove, t)
	}
	if len(marked.Remove) == 0 {
		return false, nil
	}
	p.commands = append(p.commands, marked)
	p.Log.Info("chosen to go", "method", cmd.Method, "command", cmd.id, "nodes", len(marked.Remove), "what", describe(marked.Command))
	return true, nil
}

// finish checks the commands whose time has come once more, and carries them
// out or takes them back.
func (p *Planner) finish(ctx context.Context, set settings.Settings) error {
	var failed error
	var later []command
	due := p.commands
	p.commands = nil
	for _, cmd := range due {
		if p.Now().Before(cmd.notBefore) {
			later = append(later, cmd)
			continue
		}
		if err := p.finishOne(ctx, set, cmd); err != nil {
			failed = errors.Join(failed, err)
		}
	}
	p.commands = append(later, p.commands...)
	return failed
}

func (p *Planner) finishOne(ctx context.Context, set settings.Settings, cmd command) error {
	v, err := p.view(ctx, set)
	if err != nil {
		cmd.notBefore = p.Now().Add(settle)
		p.commands = append(p.commands, cmd)
		return err
	}
	checked, kept := disrupt.Check(v.Snapshot, p.Now(), cmd.Command, disrupt.Options{})
	var failed error
	for _, k := range kept {
		p.Journal.Add(journal.Noted(journal.Dropped, k.Node+": "+k.Reason.String(), cmd.id, [][2]string{{"", k.Node}}, p.Now()))
		p.Metrics.Dropped(k.Method, k.Reason.Code())
		p.Log.Info("called off", "method", k.Method, "command", cmd.id, "node", k.Node, "reason", k.Reason.String())
		for _, t := range cmd.Remove {
			if t.Node == k.Node {
				failed = errors.Join(failed, p.unmark(ctx, t))
			}
		}
	}
	if len(checked.Replace) > 0 {
		return errors.Join(failed, p.replace(ctx, v, cmd, checked))
	}
	p.noteMoves(ctx, v, checked)
	for _, t := range checked.Remove {
		p.savedMoney(v, cmd.Method, t)
		failed = errors.Join(failed, p.remove(ctx, cmd, t))
	}
	return failed
}

// replace buys the replacements. The replace controller waits for them and
// finishes the job; if one cannot be bought the machine stays.
func (p *Planner) replace(ctx context.Context, v *mirror.View, cmd command, checked disrupt.Command) error {
	marks := p.marks(ctx, v, cmd.id, checked)
	for _, m := range checked.Replace {
		rec, err := p.buy(ctx, v, m, marks)
		if err != nil {
			p.tellPool(v, m, err)
			for _, t := range checked.Remove {
				err = errors.Join(err, p.unmark(ctx, t))
			}
			return err
		}
		p.Metrics.Created(cmd.Method, m.Pool)
		for _, t := range checked.Remove {
			p.Events.Event(nodeNamed(t.Node), corev1.EventTypeNormal, dialect.Of(t.PoolKind).Events.Launching, "replacement "+rec.Name+" was asked for: "+cmd.Method)
		}
	}
	in := intent.Intent{ID: cmd.id, Method: cmd.Method, Since: p.Now(), Replacements: len(checked.Replace), Bought: true}
	for _, t := range checked.Remove {
		claim, node, err := p.read(ctx, t)
		if err == nil {
			err = intent.Mark(ctx, p.Client, claim, node, in)
		}
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("writing down the replacements of node %s: %w", t.Node, errors.Join(err, p.unmark(ctx, t)))
		}
	}
	p.Metrics.Decided("replace", cmd.Method)
	return nil
}

// remove deletes the record; drain does the rest.
func (p *Planner) remove(ctx context.Context, cmd command, t disrupt.Target) error {
	claim, _, err := p.read(ctx, t)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err == nil {
		err = client.IgnoreNotFound(p.Client.Delete(ctx, claim, client.Preconditions{UID: &claim.UID}))
	}
	if err != nil {
		return fmt.Errorf("deleting NodeClaim %s: %w", t.Claim, err)
	}
	p.Mirror.Deleted(t.Claim, p.Now())
	p.Metrics.Decided("delete", cmd.Method)
	p.Metrics.Disrupted(cmd.Method, t.Pool)
	p.Events.Event(nodeNamed(t.Node), corev1.EventTypeNormal, dialect.Of(t.PoolKind).Events.Terminating, "the node goes: "+cmd.Method)
	p.Journal.Add(journal.Noted(journal.Removed, t.Node+" goes: "+cmd.Method, cmd.id, [][2]string{{t.Claim, t.Node}}, p.Now()))
	p.Log.Info("removing node", "method", cmd.Method, "command", cmd.id, "node", t.Node, "nodeclaim", t.Claim, poolWord(t.PoolKind), t.Pool)
	return nil
}

func (p *Planner) unmark(ctx context.Context, t disrupt.Target) error {
	claim, node, err := p.read(ctx, t)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err == nil {
		err = intent.Unmark(ctx, p.Client, claim, node)
	}
	if err != nil {
		return fmt.Errorf("opening node %s again: %w", t.Node, err) // the replace controller tries again
	}
	p.Mirror.Intent(t.Claim, "", p.Now())
	return nil
}

// read returns the claim and, if it has joined, the node of a target.
func (p *Planner) read(ctx context.Context, t disrupt.Target) (*apiv1.NodeClaim, *corev1.Node, error) {
	claim, node := &apiv1.NodeClaim{}, &corev1.Node{}
	if err := p.Client.Get(ctx, client.ObjectKey{Name: t.Claim}, claim); err != nil {
		return nil, nil, err
	}
	err := p.Client.Get(ctx, client.ObjectKey{Name: t.Node}, node)
	if apierrors.IsNotFound(err) {
		return claim, nil, nil
	}
	return claim, node, err
}

// nodeNamed stands for the node in events; as the kubelet does, its name stands
// for its UID.
func nodeNamed(name string) *corev1.Node {
	n := &corev1.Node{}
	n.Name, n.UID = name, types.UID(name)
	return n
}

func describe(c disrupt.Command) string {
	s := fmt.Sprintf("%s: remove", c.Method)
	for i, t := range c.Remove {
		if i == 5 {
			s += fmt.Sprintf(" and %d more", len(c.Remove)-i)
			break
		}
		s += " " + t.Node
	}
	if n := len(c.Replace); n > 0 {
		s += fmt.Sprintf(", after %d replacement(s)", n)
	}
	if c.Method == disrupt.Consolidation {
		s += fmt.Sprintf("; saves %s, disturbs %.1f", c.Saves, c.Disturbs)
	}
	return s
}
