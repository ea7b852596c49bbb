package workshop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karpenter/internal/core/label"
	"karpenter/sim/ec2"
)

// scene goes further than the page.
type scene struct {
	title string
	play  func(*play, context.Context) (remark string, err error)
}

// scenes are played in this order; the Provisioner of the page is there, and has
// the label.
var scenes = []scene{
	{"helm 3 installs it again", (*play).olderHelm},
	{"the leader's pod is deleted, another one leads", (*play).leaderDeleted},
	{"a pod asks for a zone", (*play).zone},
	{"a second Provisioner with a weight comes first", (*play).weight},
	{"a limit is reached", (*play).limit},
	{"a spot machine is interrupted", (*play).spot},
	{"a machine is 30 days old (on virtual time)", (*play).expiry},
	{"500 replicas at once", (*play).many},
	{"uninstalled and installed again under 500 pods", (*play).reinstalled},
	{"the leader is killed while it buys for 500 pods", (*play).leaderKilled},
}

const crowd = 500

// kubectl runs it and fails with what it said.
func (p *play) kubectl(ctx context.Context, args string) error {
	out, err := p.shell.run(ctx, "kubectl "+args)
	p.output = out
	return err
}

// install runs the page's own command, with the helm of a folder.
func (p *play) install(ctx context.Context, helm string) error {
	text := fmt.Sprintf("export PATH=%q:$PATH\n%s", helm, p.steps[6].Blocks[0].Text)
	out, err := p.shell.run(ctx, text)
	p.output = out
	return err
}

func (p *play) olderHelm(ctx context.Context) (string, error) {
	if err := p.install(ctx, p.OlderHelm); err != nil {
		return "", err
	}
	if err := p.installed(ctx); err != nil {
		return "", err
	}
	return "", p.nothingLaunched(ctx, func() error { return nil })
}

// nothingLaunched holds when something changes nothing about the machines.
func (p *play) nothingLaunched(ctx context.Context, what func() error) error {
	before := p.ids()
	if err := what(); err != nil {
		return err
	}
	if after := p.ids(); !slices.Equal(before, after) {
		return fmt.Errorf("there were %d machines, and there are %d others", len(before), len(after))
	}
	return ctx.Err()
}

func (p *play) ids() (out []string) {
	for _, m := range p.machines("") {
		out = append(out, m.ID)
	}
	slices.Sort(out)
	return out
}

func (p *play) leaderDeleted(ctx context.Context) (string, error) {
	old, err := p.leader(ctx)
	if err != nil {
		return "", err
	}
	began := time.Now()
	if err := p.kubectl(ctx, "delete pod -n karpenter --wait=false "+old); err != nil {
		return "", err
	}
	err = until(ctx, time.Minute, func() error {
		now, err := p.leader(ctx)
		if err == nil && now == old {
			err = errors.New("the deleted pod still leads")
		}
		return err
	})
	took := time.Since(began)
	if err != nil {
		return "", err
	}
	if took > 15*time.Second {
		return "", fmt.Errorf("the next one led after %s", took)
	}
	return fmt.Sprintf("after %.1f s", took.Seconds()), p.kubectl(ctx, "rollout status deployment karpenter -n karpenter")
}

func (p *play) zone(ctx context.Context) (string, error) {
	if err := p.kubectl(ctx, "apply -f examples/scenes/zone.yaml"); err != nil {
		return "", err
	}
	err := until(ctx, time.Minute, func() error {
		pod, err := p.Lab.Client.CoreV1().Pods("default").Get(ctx, "in-zone-c", metav1.GetOptions{})
		if err == nil && pod.Status.Phase != corev1.PodRunning {
			err = errors.New("the pod does not run")
		}
		return err
	})
	if err != nil {
		return "", err
	}
	if all := p.machines("test"); len(all) != 1 || all[0].Zone != "us-west-2c" {
		return "", fmt.Errorf("bought %v, want one machine in us-west-2c", all)
	}
	return "", p.clear(ctx, "examples/scenes/zone.yaml")
}

// clear deletes what a file holds, and waits until no machine is left.
func (p *play) clear(ctx context.Context, file string) error {
	if err := p.kubectl(ctx, "delete --timeout=120s -f "+file); err != nil {
		return err
	}
	return until(ctx, 5*time.Minute, func() error { return p.noMachines(ctx) })
}

func (p *play) weight(ctx context.Context) (string, error) {
	if err := p.kubectl(ctx, "apply -f examples/scenes/weight.yaml"); err != nil {
		return "", err
	}
	if err := p.scale(ctx, 3); err != nil {
		return "", err
	}
	heavy, light := p.machines("preferred"), p.machines("test")
	if len(heavy) == 0 || len(light) > 0 {
		return "", fmt.Errorf("%d machines of the Provisioner with weight 50 and %d of the other, want some and none", len(heavy), len(light))
	}
	if err := p.kubectl(ctx, "delete deployment inflate"); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s from preferred", heavy[0].Type), p.clear(ctx, "examples/scenes/weight.yaml")
}

// scale gives inflate that many replicas and waits until they run.
func (p *play) scale(ctx context.Context, n int) error {
	if err := p.kubectl(ctx, fmt.Sprintf("apply -f examples/workshop/inflate.yaml && kubectl scale deployment inflate --replicas %d", n)); err != nil {
		return err
	}
	return until(ctx, 8*time.Minute, func() error { return p.run(ctx, "app=inflate", n) })
}

func (p *play) limit(ctx context.Context) (string, error) {
	const file = "examples/scenes/limit.yaml"
	if err := p.kubectl(ctx, "apply -f "+file); err != nil {
		return "", err
	}
	if err := until(ctx, 2*time.Minute, func() error { return p.run(ctx, "app=too-many", 6) }); err != nil {
		return "", err
	}
	said := ""
	err := until(ctx, 30*time.Second, func() (err error) {
		if said, err = p.event(ctx, "FailedScheduling", "app=too-many"); err == nil && !strings.Contains(said, "limit") {
			err = fmt.Errorf("the event on the seventh pod does not speak of the limit: %s", said)
		}
		return err
	})
	if err != nil {
		return "", err
	}
	if n := len(p.machines("limited")); n != 2 {
		return "", fmt.Errorf("%d machines of 4 CPUs under a limit of 8", n)
	}
	return "six of seven pods run", p.clear(ctx, file)
}

func (p *play) spot(ctx context.Context) (string, error) {
	const file = "examples/scenes/spot.yaml"
	if err := p.kubectl(ctx, "apply -f "+file); err != nil {
		return "", err
	}
	running := func() error { return p.run(ctx, "app=on-spot", 2) }
	if err := until(ctx, 2*time.Minute, running); err != nil {
		return "", err
	}
	all := p.machines("spot")
	if len(all) == 0 || all[0].Market != ec2.Spot {
		return "", fmt.Errorf("bought %v, want spot machines", all)
	}
	began := time.Now()
	if err := p.Lab.Cloud.Interrupt(all[0].ID); err != nil {
		return "", err
	}
	err := until(ctx, 2*time.Minute, func() error {
		if i, ok := p.Lab.Cloud.Instance(all[0].ID); ok && !i.Gone() {
			return errors.New("the interrupted machine runs")
		}
		return running()
	})
	if err != nil {
		return "", err
	}
	took := time.Since(began)
	return fmt.Sprintf("its pods run elsewhere %.0f s after the notice", took.Seconds()), p.clear(ctx, file)
}

// expiry is played on the rig, where days pass in no time.
func (p *play) expiry(ctx context.Context) (string, error) {
	out, err := p.shell.run(ctx, "CGO_ENABLED=0 go run ./cmd/karpctl run examples/scenes/expiry")
	p.output = out
	if err != nil {
		return "", err
	}
	return "", p.contains("ok   expiry", " 0 failed")
}

func (p *play) many(ctx context.Context) (string, error) {
	began := time.Now()
	if err := p.scale(ctx, crowd); err != nil {
		return "", err
	}
	took := time.Since(began)
	all := p.machines("")
	if want := (crowd + 2) / 3; len(all) != want {
		return "", fmt.Errorf("%d machines for %d pods, of which three fit on each, want %d", len(all), crowd, want)
	}
	return fmt.Sprintf("%d machines, all pods run after %.0f s", len(all), took.Seconds()), nil
}

// reinstalled holds when machines and pods outlive the controller, also when
// the one that comes is a stranger.
func (p *play) reinstalled(ctx context.Context) (string, error) {
	err := p.nothingLaunched(ctx, func() error {
		if err := p.block(ctx, p.steps[16].Blocks[0]); err != nil {
			return err
		}
		if err := p.uninstalled(ctx); err != nil {
			return err
		}
		if err := p.install(ctx, p.Helm); err != nil {
			return err
		}
		if err := p.installed(ctx); err != nil {
			return err
		}
		time.Sleep(30 * time.Second) // long enough for every loop to have looked
		return p.run(ctx, "app=inflate", crowd)
	})
	if err != nil {
		return "", err
	}
	if err := p.oneEach(ctx); err != nil {
		return "", err
	}
	return "", p.clear(ctx, "examples/workshop/inflate.yaml")
}

func (p *play) leaderKilled(ctx context.Context) (string, error) {
	before := len(p.Lab.Cloud.Calls("CreateFleet"))
	if err := p.kubectl(ctx, fmt.Sprintf("apply -f examples/workshop/inflate.yaml && kubectl scale deployment inflate --replicas %d", crowd)); err != nil {
		return "", err
	}
	err := until(ctx, time.Minute, func() error {
		if n := len(p.machines("")); n < 10 {
			return fmt.Errorf("%d machines were bought", n)
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	leader, err := p.leader(ctx)
	if err != nil {
		return "", err
	}
	killed := time.Now()
	if err := syscall.Kill(p.Lab.Pods.Processes()[leader].PID, syscall.SIGKILL); err != nil {
		return "", err
	}
	bought := len(p.machines(""))
	if err := until(ctx, 8*time.Minute, func() error { return p.run(ctx, "app=inflate", crowd) }); err != nil {
		return "", err
	}
	if err := p.oneEach(ctx); err != nil {
		return "", err
	}
	if all := len(p.machines("")); all != (crowd+2)/3 {
		return "", fmt.Errorf("%d machines for %d pods, want %d", all, crowd, (crowd+2)/3)
	}
	var next time.Duration
	for _, c := range p.Lab.Cloud.Calls("CreateFleet")[before:] {
		if d := c.Time.Sub(killed); d > time.Second && next == 0 { // those before were on their way
			next = d
		}
	}
	if next == 0 {
		return "", fmt.Errorf("the leader was killed too late: %d machines were bought already", bought)
	}
	if next > 20*time.Second {
		return "", fmt.Errorf("the next leader bought only %s after the kill", next)
	}
	return fmt.Sprintf("at %d machines; the next one buys after %.1f s", bought, next.Seconds()), p.clear(ctx, "examples/workshop/inflate.yaml")
}

// oneEach holds when every machine has one NodeClaim and every NodeClaim one
// machine: none twice, none lost.
func (p *play) oneEach(ctx context.Context) error {
	return until(ctx, 30*time.Second, func() error {
		claims, err := p.claims(ctx)
		if err != nil {
			return err
		}
		claimed := map[string]string{}
		for _, c := range claims {
			status, _ := c.Object["status"].(map[string]any)
			id, _ := status["providerID"].(string)
			if other, twice := claimed[id]; twice {
				return fmt.Errorf("NodeClaims %s and %s have the machine %q", c.GetName(), other, id)
			}
			claimed[id] = c.GetName()
		}
		all := p.machines("")
		for _, m := range all {
			if _, ok := claimed[m.ProviderID()]; !ok {
				return fmt.Errorf("machine %s of %s has no NodeClaim", m.ID, m.Tags[label.Provisioner])
			}
		}
		if len(all) != len(claims) {
			return fmt.Errorf("%d machines and %d NodeClaims", len(all), len(claims))
		}
		return nil
	})
}
