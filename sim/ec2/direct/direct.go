// Package direct lets the provider call the simulated EC2 in process: an
// aws.API without HTTP, without the AWS SDK, without goroutines and without
// waiting. The same calls at the same times give the same answers, so a test
// can run days on a virtual clock.
//
// It may import sim/ec2 and the plain types of internal/aws. What always
// holds: every method makes the same calls with the same parameters as
// awsapi does over the wire and gives the same answers and kinds of error
// (internal/aws/awsapi has the test), except that nothing is tried twice.
package direct

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"karpenter/internal/aws/class"
	"karpenter/internal/cloud"
	"karpenter/sim/ec2"
)

// API calls one simulated region. It is for one goroutine at a time.
type API struct {
	cloud *ec2.Cloud
	// queue remembers the address of the queue that was asked for last.
	queue struct{ name, url string }
}

// New returns the API of a region.
func New(c *ec2.Cloud) *API { return &API{cloud: c} }

// Region returns the region in which everything happens.
func (a *API) Region() string { return a.cloud.Region() }

// Account asks who we are: the id of the account.
func (a *API) Account(ctx context.Context) (string, error) {
	out, err := call(ctx, a, &ec2.GetCallerIdentityInput{})
	if err != nil {
		return "", kind("asking AWS who we are", err)
	}
	return out.Account, nil
}

// call makes one call, unless the caller has given up.
func call[Out any](ctx context.Context, a *API, in ec2.Request[Out]) (Out, error) {
	if err := ctx.Err(); err != nil {
		var none Out
		return none, err
	}
	return ec2.Call(a.cloud, in)
}

// pages asks for page after page: ask gets the token of one and returns that
// of the next.
func pages(ask func(token string) (next string, err error)) error {
	for token := ""; ; {
		next, err := ask(token)
		if err != nil || next == "" {
			return err
		}
		token = next
	}
}

// limit is the address of a page size, as requests want it.
func limit(n int) *int { return &n }

// kind wraps an error with what was being done and, where it has one, with its
// kind.
func kind(doing string, err error) error {
	if err == nil {
		return nil
	}
	wrapped := fmt.Errorf("%s: %w", doing, err)
	switch c := code(err); {
	case ec2.Throttled(c):
		return &cloud.ThrottledError{Err: wrapped}
	case c == "UnauthorizedOperation" || strings.HasPrefix(c, "AccessDenied"):
		return &cloud.ForbiddenError{Err: wrapped}
	}
	return wrapped
}

// code returns the error code of an answer, or nothing.
func code(err error) string {
	var answer *ec2.Error
	if errors.As(err, &answer) {
		return answer.Code
	}
	return ""
}

// notFound reports whether an error code says that the thing does not exist.
func notFound(code string) bool {
	return strings.HasSuffix(code, ".NotFound") || strings.HasSuffix(code, ".NotFoundException")
}

func filters(list []class.Filter) []ec2.Filter {
	out := make([]ec2.Filter, 0, len(list))
	for _, f := range list {
		out = append(out, ec2.Filter{Name: f.Name, Values: f.Values})
	}
	return out
}
