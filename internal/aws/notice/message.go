package notice

import (
	"fmt"
	"time"
)

// Message is one that was received from the queue. It comes again unless it is
// deleted with its receipt in time.
type Message struct {
	Body    string
	Receipt string
	Sent    time.Time
	// Received counts how often it was received, this time included.
	Received int
}

// Visibility is how long a received message is hidden from others, so how long
// there is to act and delete it.
const Visibility = 20 * time.Second

// UnknownQueueError: there is no queue of that name.
type UnknownQueueError struct{ Name string }

func (e *UnknownQueueError) Error() string {
	return fmt.Sprintf("SQS has no queue %q in this account and region; make it, or correct the setting", e.Name)
}
