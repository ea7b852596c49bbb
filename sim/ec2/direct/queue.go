package direct

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"karpenter/internal/aws/notice"
	"karpenter/sim/ec2"
)

// mostMessages is how many messages one call of SQS gives or deletes.
const mostMessages = 10

// Receive returns up to ten messages that are in the queue now; it does not
// wait. They are hidden from others for notice.Visibility. Errors:
// *notice.UnknownQueueError.
func (a *API) Receive(ctx context.Context, queue string, wait time.Duration) ([]notice.Message, error) {
	url, err := a.findQueue(ctx, queue)
	if err != nil {
		return nil, err
	}
	out, err := call(ctx, a, &ec2.ReceiveMessageInput{
		QueueURL: url, MaxNumberOfMessages: limit(mostMessages), VisibilityTimeout: limit(int(notice.Visibility / time.Second)),
		WaitTimeSeconds: int(wait / time.Second), MessageSystemAttributeNames: []string{"SentTimestamp", "ApproximateReceiveCount"},
	})
	if err != nil {
		return nil, a.queueError("receiving messages of queue ", queue, err)
	}
	var list []notice.Message
	for _, m := range out.Messages {
		ms, _ := strconv.ParseInt(m.Attributes["SentTimestamp"], 10, 64)
		count, _ := strconv.Atoi(m.Attributes["ApproximateReceiveCount"])
		list = append(list, notice.Message{Body: m.Body, Receipt: m.Receipt, Sent: time.UnixMilli(ms).UTC(), Received: count})
	}
	return list, nil
}

// Delete deletes messages by their receipts. Those that could not be deleted
// are named in the error and come again.
func (a *API) Delete(ctx context.Context, queue string, receipts []string) error {
	url, err := a.findQueue(ctx, queue)
	var failed []error
	for err == nil && len(receipts) > 0 {
		n := min(len(receipts), mostMessages)
		in := &ec2.DeleteMessageBatchInput{QueueURL: url}
		for i, r := range receipts[:n] {
			in.Entries = append(in.Entries, ec2.DeleteEntry{ID: strconv.Itoa(i), ReceiptHandle: r})
		}
		var out *ec2.DeleteMessageBatchOutput
		if out, err = call(ctx, a, in); err != nil {
			return a.queueError("deleting messages of queue ", queue, err)
		}
		for _, f := range out.Failed {
			failed = append(failed, fmt.Errorf("message not deleted: %s: %s", f.Code, f.Message))
		}
		receipts = receipts[n:]
	}
	return errors.Join(append(failed, err)...)
}

// findQueue returns the address of a queue.
func (a *API) findQueue(ctx context.Context, name string) (string, error) {
	if a.queue.name == name && name != "" {
		return a.queue.url, nil
	}
	out, err := call(ctx, a, &ec2.GetQueueUrlInput{QueueName: name})
	if code(err) == unknownQueue {
		return "", &notice.UnknownQueueError{Name: name}
	}
	if err != nil {
		return "", kind("asking SQS for queue "+name, err)
	}
	a.queue.name, a.queue.url = name, out.QueueURL
	return a.queue.url, nil
}

const unknownQueue = "QueueDoesNotExist"

// queueError forgets the address of a queue that is not there any more.
func (a *API) queueError(doing, name string, err error) error {
	if code(err) != unknownQueue {
		return kind(doing+name, err)
	}
	a.queue.name, a.queue.url = "", ""
	return &notice.UnknownQueueError{Name: name}
}

// InstanceStatuses tells of running instances that are not well or for which
// something is planned.
func (a *API) InstanceStatuses(ctx context.Context) ([]notice.Status, error) {
	in := &ec2.DescribeInstanceStatusInput{Page: ec2.Page{MaxResults: limit(1000)}}
	var list []notice.Status
	err := pages(func(token string) (string, error) {
		in.NextToken = token
		out, err := call(ctx, a, in)
		if err != nil {
			return "", err
		}
		for _, s := range out.Statuses {
			got := notice.Status{ID: s.ID, InstanceImpaired: impaired(s.Instance), SystemImpaired: impaired(s.System)}
			for _, e := range s.Events {
				got.Events = append(got.Events, notice.StatusEvent{ID: e.ID, Code: e.Code, NotBefore: e.NotBefore})
			}
			if !got.InstanceImpaired.IsZero() || !got.SystemImpaired.IsZero() || len(got.Events) > 0 {
				list = append(list, got)
			}
		}
		return out.NextToken, nil
	})
	if err != nil {
		return nil, kind("asking EC2 how instances do", err)
	}
	return list, nil
}

func impaired(c ec2.Check) time.Time {
	for _, d := range c.Details {
		if d.Since != nil {
			return *d.Since
		}
	}
	return time.Time{}
}
