package aws

import (
	"context"
	"time"

	"karpenter/internal/aws/notice"
	"karpenter/internal/cloud"
)

// Inbox is where AWS tells about machines: the interruption queue, and the
// status of instances.
type Inbox struct {
	api noticeAPI
	now func() time.Time
}

// noticeAPI is what the inbox calls; awsapi.API has all of it.
type noticeAPI interface {
	// Receive is *notice.UnknownQueueError if there is no such queue.
	Receive(ctx context.Context, queue string, wait time.Duration) ([]notice.Message, error)
	Delete(ctx context.Context, queue string, receipts []string) error
	InstanceStatuses(ctx context.Context) ([]notice.Status, error)
}

// NewInbox returns the inbox of a region.
func NewInbox(api noticeAPI, now func() time.Time) *Inbox { return &Inbox{api: api, now: now} }

// Receive waits until the queue holds messages, at most so long, and returns up
// to ten notices. What says nothing about machines is among them, as
// cloud.NoNotice, to be counted and acknowledged like the others. Errors:
// *cloud.ThrottledError, *cloud.ForbiddenError; others if the queue is missing
// or fails.
func (in *Inbox) Receive(ctx context.Context, queue string, wait time.Duration) ([]cloud.Delivery, error) {
	list, err := in.api.Receive(ctx, queue, wait)
	if err != nil {
		return nil, err
	}
	out := make([]cloud.Delivery, 0, len(list))
	for _, m := range list {
		out = append(out, cloud.Delivery{Notice: notice.Parse(m.Body), Receipt: m.Receipt, Sent: m.Sent, Received: m.Received})
	}
	return out, nil
}

// Acknowledge takes notices off the queue, so that they do not come again.
func (in *Inbox) Acknowledge(ctx context.Context, queue string, list []cloud.Delivery) error {
	if len(list) == 0 {
		return nil
	}
	receipts := make([]string, 0, len(list))
	for _, d := range list {
		receipts = append(receipts, d.Receipt)
	}
	return in.api.Delete(ctx, queue, receipts)
}

// Unwell returns notices about instances whose status checks have failed for
// two minutes, or for which something is planned. They are not only ours.
func (in *Inbox) Unwell(ctx context.Context) ([]cloud.Notice, error) {
	list, err := in.api.InstanceStatuses(ctx)
	if err != nil {
		return nil, err
	}
	return notice.FromStatus(list, in.now()), nil
}
