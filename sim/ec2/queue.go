package ec2

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// queue is an SQS queue of the standard kind.
type queue struct {
	name       string
	retention  time.Duration
	visibility time.Duration
	messages   []*message // in the order in which they came
}

// message is one in a queue.
type message struct {
	id, body string
	sent     time.Time
	first    time.Time // received; zero: not yet
	received int
	visible  time.Time // from when on it can be received (again)
}

// receipt names one delivery of a message; only that of the last one deletes.
func (m *message) receipt() string { return fmt.Sprintf("%s#%d", m.id, m.received) }

// AddQueue makes a queue, as a stack does: messages are kept for five minutes.
func (c *Cloud) AddQueue(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queues[name] = &queue{name: name, retention: 5 * time.Minute, visibility: 30 * time.Second}
}

// queueURL is the address of a queue. It names the queue by its last part; the
// host is not asked.
func (c *Cloud) queueURL(name string) string {
	return fmt.Sprintf("https://sqs.%s.amazonaws.com/%s/%s", c.opt.Region, c.opt.Account, name)
}

func (c *Cloud) queueAt(url string) (*queue, error) {
	q := c.queues[url[strings.LastIndex(url, "/")+1:]]
	if q == nil {
		return nil, errorf("QueueDoesNotExist", "The specified queue does not exist.")
	}
	now := c.now()
	q.messages = slices.DeleteFunc(q.messages, func(m *message) bool { return now.Sub(m.sent) >= q.retention })
	return q, nil
}

// put adds a message of that time, which can be received after the delay.
func (c *Cloud) put(q *queue, body string, sent time.Time, delay time.Duration) *message {
	m := &message{id: uuid(c.rng), body: body, sent: sent, visible: sent.Add(delay)}
	q.messages = append(q.messages, m)
	return m
}

func digest(s string) string {
	sum := md5.Sum([]byte(s))
	return hex.EncodeToString(sum[:])
}

// mostBytes is the size of a message that SQS takes.
const mostBytes = 256 << 10

// handedOut is the message as it is handed out, with the attributes asked for.
func (m *message) handedOut(names []string) ReceivedMessage {
	all := map[string]string{
		"SentTimestamp":                    strconv.FormatInt(m.sent.UnixMilli(), 10),
		"ApproximateFirstReceiveTimestamp": strconv.FormatInt(m.first.UnixMilli(), 10),
		"ApproximateReceiveCount":          strconv.Itoa(m.received),
		"SenderId":                         "AIDASIMULATED",
	}
	if !slices.Contains(names, "All") {
		maps.DeleteFunc(all, func(k, _ string) bool { return !slices.Contains(names, k) })
	}
	return ReceivedMessage{ID: m.id, Receipt: m.receipt(), MD5: digest(m.body), Body: m.body, Attributes: all}
}

// await waits in real time until a request for messages has something to
// receive, at most as long as it says.
func (c *Cloud) await(ctx context.Context, in *ReceiveMessageInput) {
	ready := func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		q, err := c.queueAt(in.QueueURL)
		return err != nil || slices.ContainsFunc(q.messages, func(m *message) bool { return !m.visible.After(c.now()) })
	}
	end := time.After(time.Duration(in.WaitTimeSeconds) * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for in.WaitTimeSeconds > 0 && !ready() {
		select {
		case <-ctx.Done():
			return
		case <-end:
			return
		case <-tick.C:
		}
	}
}

// remove deletes the message of a receipt. An old receipt of a message that was
// received again deletes nothing, which is no error.
func (q *queue) remove(receipt string) error {
	if !strings.Contains(receipt, "#") {
		return errorf("ReceiptHandleIsInvalid", "The input receipt handle %q is not a valid receipt handle.", receipt)
	}
	q.messages = slices.DeleteFunc(q.messages, func(m *message) bool { return m.receipt() == receipt })
	return nil
}
