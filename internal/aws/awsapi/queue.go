package awsapi

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"karpenter/internal/aws/notice"
)

// mostMessages is how many messages one call of SQS gives or deletes.
const mostMessages = 10

// queueURL remembers the address of the queue that was asked for last.
type queueURL struct {
	mu        sync.Mutex
	name, url string
}

// Receive waits until messages are in the queue, at most so long (20 s is the
// most that SQS does, whole seconds), and returns up to ten. They are hidden
// from others for notice.Visibility. Errors: *notice.UnknownQueueError.
func (a *API) Receive(ctx context.Context, queue string, wait time.Duration) ([]notice.Message, error) {
	url, err := a.findQueue(ctx, queue)
	if err != nil {
		return nil, err
	}
	out, err := a.sqs.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl: aws.String(url), MaxNumberOfMessages: mostMessages,
		WaitTimeSeconds: int32(wait / time.Second), VisibilityTimeout: int32(notice.Visibility / time.Second),
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameSentTimestamp, types.MessageSystemAttributeNameApproximateReceiveCount},
	})
	if err != nil {
		return nil, a.queueError("receiving messages of queue ", queue, err)
	}
	var list []notice.Message
	for _, m := range out.Messages {
		got := notice.Message{Body: aws.ToString(m.Body), Receipt: aws.ToString(m.ReceiptHandle)}
		if ms, err := strconv.ParseInt(m.Attributes[string(types.MessageSystemAttributeNameSentTimestamp)], 10, 64); err == nil {
			got.Sent = time.UnixMilli(ms).UTC()
		}
		got.Received, _ = strconv.Atoi(m.Attributes[string(types.MessageSystemAttributeNameApproximateReceiveCount)]) // 0 if SQS does not say
		list = append(list, got)
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
		in := &sqs.DeleteMessageBatchInput{QueueUrl: aws.String(url)}
		for i, r := range receipts[:n] {
			in.Entries = append(in.Entries, types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: aws.String(r)})
		}
		var out *sqs.DeleteMessageBatchOutput
		if out, err = a.sqs.DeleteMessageBatch(ctx, in); err != nil {
			return a.queueError("deleting messages of queue ", queue, err)
		}
		for _, f := range out.Failed {
			failed = append(failed, fmt.Errorf("message not deleted: %s: %s", aws.ToString(f.Code), aws.ToString(f.Message)))
		}
		receipts = receipts[n:]
	}
	return errors.Join(append(failed, err)...)
}

// findQueue returns the address of a queue.
func (a *API) findQueue(ctx context.Context, name string) (string, error) {
	a.queue.mu.Lock()
	defer a.queue.mu.Unlock()
	if a.queue.name == name && name != "" {
		return a.queue.url, nil
	}
	out, err := a.sqs.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String(name)})
	if err != nil {
		if unknownQueue(err) {
			return "", &notice.UnknownQueueError{Name: name}
		}
		return "", kind("asking SQS for queue "+name, err)
	}
	a.queue.name, a.queue.url = name, aws.ToString(out.QueueUrl)
	return a.queue.url, nil
}

// queueError forgets the address of a queue that is not there any more.
func (a *API) queueError(doing, name string, err error) error {
	if !unknownQueue(err) {
		return kind(doing+name, err)
	}
	a.queue.mu.Lock()
	defer a.queue.mu.Unlock()
	a.queue.name, a.queue.url = "", ""
	return &notice.UnknownQueueError{Name: name}
}

func unknownQueue(err error) bool {
	var missing *types.QueueDoesNotExist
	return errors.As(err, &missing)
}
