package drain

import (
	"errors"

	"karpenter/internal/cloud"
	"karpenter/internal/core/lifecycle"
)

// instance reads an answer of the cloud. "Not found" is an answer, not an
// error.
func instance(i cloud.Instance, err error) (*lifecycle.Instance, error) {
	if notFound(err) {
		return &lifecycle.Instance{State: lifecycle.Absent}, nil
	}
	if err != nil {
		return nil, err
	}
	out := &lifecycle.Instance{ID: i.ID, ProviderID: i.ProviderID, Claim: i.Claim, Token: i.Token, Launched: i.Launched, State: lifecycle.Alive}
	switch i.State {
	case cloud.ShuttingDown:
		out.State = lifecycle.Ending
	case cloud.Terminated:
		out.State = lifecycle.Ended
	}
	return out, nil
}

func notFound(err error) bool {
	var e *cloud.NotFoundError
	return errors.As(err, &e)
}

func throttled(err error) bool {
	var e *cloud.ThrottledError
	return errors.As(err, &e)
}
