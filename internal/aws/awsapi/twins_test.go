package awsapi_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"karpenter/internal/aws"
	"karpenter/internal/aws/launch"
	"karpenter/internal/aws/notice"
	"karpenter/internal/cloud"
	"karpenter/sim/ec2"
	"karpenter/sim/ec2/direct"
)

// everything is all that can be asked of AWS.
type everything interface {
	aws.API
	Account(ctx context.Context) (string, error)
	Receive(ctx context.Context, queue string, wait time.Duration) ([]notice.Message, error)
	Delete(ctx context.Context, queue string, receipts []string) error
	InstanceStatuses(ctx context.Context) ([]notice.Status, error)
}

// twins are two simulations with the same seed and clock, one called over the
// wire with the SDK, one in process.
type twins struct {
	t      *testing.T
	wire   *region
	inside *ec2.Cloud
	direct *direct.API
}

func newTwins(t *testing.T, opt ec2.Options) *twins {
	t.Setenv("AWS_MAX_ATTEMPTS", "1") // nothing is tried twice in process either
	w := &twins{t: t, wire: newRegion(t, opt)}
	opt.Now = func() time.Time { return w.wire.now }
	w.inside = ec2.New(opt)
	w.direct = direct.New(w.inside)
	return w
}

// same asks both and compares answer and error.
func (w *twins) same(what string, ask func(context.Context, everything) (any, error)) any {
	w.t.Helper()
	overTheWire, wireErr := ask(w.t.Context(), w.wire.API)
	inProcess, err := ask(w.t.Context(), w.direct)
	if diff := cmp.Diff(overTheWire, inProcess, cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
		w.t.Errorf("%s: answers (-wire +direct):\n%.3000s", what, diff)
	}
	if kindOf(wireErr) != kindOf(err) {
		w.t.Errorf("%s: errors\n wire   %s\n direct %s", what, kindOf(wireErr), kindOf(err))
	}
	return inProcess
}

// kindOf writes what a caller can tell of an error: kind and words.
func kindOf(err error) string {
	if err == nil {
		return "none"
	}
	kind := "other"
	var throttled *cloud.ThrottledError
	var missing *cloud.NotFoundError
	var mismatch *launch.MismatchError
	var gone *launch.TemplateGoneError
	var unknown *launch.UnknownParameterError
	switch {
	case errors.As(err, &throttled):
		kind = "throttled"
	case errors.As(err, new(*cloud.ForbiddenError)):
		kind = "forbidden"
	case errors.As(err, &missing):
		kind = "missing " + missing.ID
	case errors.As(err, &mismatch):
		return "mismatch" // the words hold the id of the request
	case errors.As(err, &gone):
		return "template gone " + gone.Name
	case errors.As(err, &unknown):
		kind = "unknown parameter " + unknown.Name
	case errors.As(err, new(*launch.UnknownProfileError)), errors.As(err, new(*launch.UnknownRoleError)),
		errors.As(err, new(*launch.UnknownClusterError)), errors.As(err, new(*notice.UnknownQueueError)):
		kind = fmt.Sprintf("%T", err)
	}
	return kind + ": " + err.Error()
}

// each changes both simulations.
func (w *twins) each(f func(*ec2.Cloud)) {
	f(w.wire.cloud)
	f(w.inside)
}

func (w *twins) fault(f ec2.Fault) {
	w.t.Helper()
	w.each(func(c *ec2.Cloud) {
		if _, err := c.Inject(f); err != nil {
			w.t.Fatal(err)
		}
	})
}

// callsOf is the log of calls without what differs on purpose: the SDK gives
// requests tokens of its own.
func callsOf(c *ec2.Cloud) []string {
	var out []string
	for _, call := range c.Calls() {
		out = append(out, fmt.Sprint(call.Action, " ", call.Error, " ", call.Instances))
	}
	return out
}
