package ec2

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
)

// queryCodes are the codes of errors as SQS used to write them, which the SDK
// still shows.
var queryCodes = map[string]string{
	"QueueDoesNotExist":      "AWS.SimpleQueueService.NonExistentQueue",
	"QueueNameExists":        "QueueAlreadyExists",
	"ReceiptHandleIsInvalid": "ReceiptHandleIsInvalid",
	"AccessDeniedException":  "AccessDenied",
	"ThrottlingException":    "ThrottlingException",
	"InternalError":          "InternalError",
}

// sqs makes a request one to SQS.
type sqs struct{}

func (sqs) service() string { return "sqs" }

// QueueURLOutput is the address of a queue.
type QueueURLOutput struct {
	QueueURL string `json:"QueueUrl"`
}

// CreateQueueInput makes a queue.
type CreateQueueInput struct {
	sqs
	QueueName  string
	Attributes map[string]string
}

func (in *CreateQueueInput) do(c *Cloud) (*QueueURLOutput, error) {
	q := &queue{name: in.QueueName, retention: 4 * 24 * time.Hour, visibility: 30 * time.Second}
	for name, into := range map[string]*time.Duration{"MessageRetentionPeriod": &q.retention, "VisibilityTimeout": &q.visibility} {
		if text, ok := in.Attributes[name]; ok {
			seconds, err := strconv.Atoi(text)
			if err != nil {
				return nil, errorf("InvalidAttributeValue", "Invalid value for the parameter %s.", name)
			}
			*into = time.Duration(seconds) * time.Second
		}
	}
	if old := c.queues[in.QueueName]; old == nil {
		c.queues[in.QueueName] = q
	} else if old.retention != q.retention || old.visibility != q.visibility {
		return nil, errorf("QueueNameExists", "A queue already exists with the same name and a different value for an attribute.")
	}
	return &QueueURLOutput{c.queueURL(in.QueueName)}, nil
}

// DeleteQueueInput deletes a queue.
type DeleteQueueInput struct {
	sqs
	QueueURL string `json:"QueueUrl"`
}

func (in *DeleteQueueInput) do(c *Cloud) (*Nothing, error) {
	q, err := c.queueAt(in.QueueURL)
	if err != nil {
		return nil, err
	}
	delete(c.queues, q.name)
	return &Nothing{}, nil
}

// GetQueueUrlInput asks for the address of a queue.
type GetQueueUrlInput struct {
	sqs
	QueueName              string
	QueueOwnerAWSAccountId string
}

func (in *GetQueueUrlInput) do(c *Cloud) (*QueueURLOutput, error) {
	if _, err := c.queueAt(in.QueueName); err != nil {
		return nil, err
	}
	return &QueueURLOutput{c.queueURL(in.QueueName)}, nil
}

// GetQueueAttributesInput asks about a queue.
type GetQueueAttributesInput struct {
	sqs
	QueueURL       string `json:"QueueUrl"`
	AttributeNames []string
}

// GetQueueAttributesOutput is what was asked for.
type GetQueueAttributesOutput struct{ Attributes map[string]string }

func (in *GetQueueAttributesInput) do(c *Cloud) (*GetQueueAttributesOutput, error) {
	q, err := c.queueAt(in.QueueURL)
	if err != nil {
		return nil, err
	}
	waiting, delayed, taken := 0, 0, 0
	for _, m := range q.messages {
		switch {
		case !m.visible.After(c.now()):
			waiting++
		case m.received == 0:
			delayed++
		default:
			taken++
		}
	}
	all := map[string]string{
		"ApproximateNumberOfMessages": strconv.Itoa(waiting), "ApproximateNumberOfMessagesNotVisible": strconv.Itoa(taken), "ApproximateNumberOfMessagesDelayed": strconv.Itoa(delayed),
		"MessageRetentionPeriod": strconv.Itoa(int(q.retention.Seconds())), "VisibilityTimeout": strconv.Itoa(int(q.visibility.Seconds())),
		"QueueArn": fmt.Sprintf("arn:aws:sqs:%s:%s:%s", c.opt.Region, c.opt.Account, q.name),
	}
	if !slices.Contains(in.AttributeNames, "All") {
		maps.DeleteFunc(all, func(k, _ string) bool { return !slices.Contains(in.AttributeNames, k) })
	}
	return &GetQueueAttributesOutput{all}, nil
}

// SendMessageInput sends a message.
type SendMessageInput struct {
	sqs
	QueueURL     string `json:"QueueUrl"`
	MessageBody  string
	DelaySeconds int
}

// SendMessageOutput names it.
type SendMessageOutput struct {
	MessageID string `json:"MessageId"`
	MD5       string `json:"MD5OfMessageBody"`
}

func (in *SendMessageInput) do(c *Cloud) (*SendMessageOutput, error) {
	q, err := c.queueAt(in.QueueURL)
	switch {
	case err != nil:
		return nil, err
	case in.MessageBody == "":
		return nil, errorf("MissingParameter", "The request must contain the parameter MessageBody.")
	case len(in.MessageBody) > mostBytes:
		return nil, errorf("InvalidParameterValue", "One or more parameters are invalid. Reason: Message must be shorter than %d bytes.", mostBytes)
	}
	m := c.put(q, in.MessageBody, c.now(), time.Duration(in.DelaySeconds)*time.Second)
	return &SendMessageOutput{m.id, digest(in.MessageBody)}, nil
}

// ReceiveMessageInput asks for messages. In process it never waits; over HTTP it
// waits in real time.
type ReceiveMessageInput struct {
	sqs
	QueueURL                    string `json:"QueueUrl"`
	MaxNumberOfMessages         *int
	VisibilityTimeout           *int
	WaitTimeSeconds             int
	AttributeNames              []string
	MessageSystemAttributeNames []string
	MessageAttributeNames       []string
}

// ReceivedMessage is a message that was received.
type ReceivedMessage struct {
	ID         string            `json:"MessageId"`
	Receipt    string            `json:"ReceiptHandle"`
	MD5        string            `json:"MD5OfBody"`
	Body       string            `json:"Body"`
	Attributes map[string]string `json:",omitempty"`
}

// ReceiveMessageOutput lists messages, the oldest first.
type ReceiveMessageOutput struct {
	Messages []ReceivedMessage `json:",omitempty"`
}

func (in *ReceiveMessageInput) do(c *Cloud) (*ReceiveMessageOutput, error) {
	q, err := c.queueAt(in.QueueURL)
	if err != nil {
		return nil, err
	}
	most, hidden, now := 1, q.visibility, c.now()
	if in.MaxNumberOfMessages != nil {
		most = *in.MaxNumberOfMessages
	}
	if in.VisibilityTimeout != nil {
		hidden = time.Duration(*in.VisibilityTimeout) * time.Second
	}
	switch {
	case most < 1 || most > 10:
		return nil, errorf("InvalidParameterValue", "Value %d for parameter MaxNumberOfMessages is invalid. Reason: Must be between 1 and 10, if provided.", most)
	case in.WaitTimeSeconds < 0 || in.WaitTimeSeconds > 20:
		return nil, errorf("InvalidParameterValue", "Value %d for parameter WaitTimeSeconds is invalid. Reason: Must be >= 0 and <= 20, if provided.", in.WaitTimeSeconds)
	}
	out := &ReceiveMessageOutput{}
	for _, m := range q.messages {
		if len(out.Messages) == most || m.visible.After(now) {
			continue
		}
		m.received++
		m.visible = now.Add(hidden)
		if m.first.IsZero() {
			m.first = now
		}
		out.Messages = append(out.Messages, m.handedOut(slices.Concat(in.AttributeNames, in.MessageSystemAttributeNames)))
	}
	return out, nil
}

// DeleteMessageInput deletes a message that was received.
type DeleteMessageInput struct {
	sqs
	QueueURL      string `json:"QueueUrl"`
	ReceiptHandle string
}

func (in *DeleteMessageInput) do(c *Cloud) (*Nothing, error) {
	q, err := c.queueAt(in.QueueURL)
	if err == nil {
		err = q.remove(in.ReceiptHandle)
	}
	if err != nil {
		return nil, err
	}
	return &Nothing{}, nil
}

// DeleteMessageBatchInput deletes at most ten messages.
type DeleteMessageBatchInput struct {
	sqs
	QueueURL string `json:"QueueUrl"`
	Entries  []DeleteEntry
}

// DeleteEntry is one of them, with a name of the caller's choice.
type DeleteEntry struct {
	ID            string `json:"Id"`
	ReceiptHandle string
}

// DeleteMessageBatchOutput says which of them were deleted.
type DeleteMessageBatchOutput struct {
	Successful []DeletedEntry
	Failed     []FailedEntry
}

// DeletedEntry is one that was.
type DeletedEntry struct {
	ID string `json:"Id"`
}

// FailedEntry is one that was not.
type FailedEntry struct {
	ID          string `json:"Id"`
	Code        string
	Message     string
	SenderFault bool
}

func (in *DeleteMessageBatchInput) do(c *Cloud) (*DeleteMessageBatchOutput, error) {
	q, err := c.queueAt(in.QueueURL)
	switch {
	case err != nil:
		return nil, err
	case len(in.Entries) == 0:
		return nil, errorf("EmptyBatchRequest", "There should be at least one DeleteMessageBatchRequestEntry in the request.")
	case len(in.Entries) > 10:
		return nil, errorf("TooManyEntriesInBatchRequest", "Maximum number of entries per request are 10. You have sent %d.", len(in.Entries))
	}
	out := &DeleteMessageBatchOutput{Successful: []DeletedEntry{}, Failed: []FailedEntry{}}
	for _, e := range in.Entries {
		if err := q.remove(e.ReceiptHandle); err != nil {
			refusal := asError(err)
			out.Failed = append(out.Failed, FailedEntry{e.ID, refusal.Code, refusal.Message, true})
		} else {
			out.Successful = append(out.Successful, DeletedEntry{e.ID})
		}
	}
	return out, nil
}

// ChangeMessageVisibilityInput says when a received message can be received
// again.
type ChangeMessageVisibilityInput struct {
	sqs
	QueueURL          string `json:"QueueUrl"`
	ReceiptHandle     string
	VisibilityTimeout int
}

func (in *ChangeMessageVisibilityInput) do(c *Cloud) (*Nothing, error) {
	q, err := c.queueAt(in.QueueURL)
	if err != nil {
		return nil, err
	}
	for _, m := range q.messages {
		if m.receipt() == in.ReceiptHandle {
			m.visible = c.now().Add(time.Duration(in.VisibilityTimeout) * time.Second)
			return &Nothing{}, nil
		}
	}
	return nil, errorf("ReceiptHandleIsInvalid", "The input receipt handle %q is not a valid receipt handle.", in.ReceiptHandle)
}
