// Package event publishes Kubernetes events without repeating itself: the same
// reason and text about the same object is sent once in a while, and reasons
// that come in floods are limited.
//
// It may import client-go; the recorder that writes to the API server and the
// clock are given to it.
package event

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
)

// Recorder writes an event; client-go's record.EventRecorder is one.
type Recorder interface {
	Event(object runtime.Object, eventtype, reason, message string)
}

// Limits of what is published.
const (
	// Quiet is how long the same event is not repeated.
	Quiet = 2 * time.Minute
	// limitedPerSecond and limitedBurst hold for the reasons in limited, each
	// over all objects.
	limitedPerSecond = 5
	limitedBurst     = 10
)

// limited are reasons that one plan may give for thousands of objects.
var limited = map[string]bool{"Nominated": true, "FailedScheduling": true}

// Once is a Recorder that passes an event on unless it was said just now. It is
// safe for concurrent use.
type Once struct {
	to  Recorder
	now func() time.Time

	mu      sync.Mutex
	said    map[key]time.Time
	swept   time.Time
	buckets map[string]bucket
}

type key struct {
	uid          string // or type/namespace/name where there is none
	reason, text string
}

type bucket struct {
	tokens float64
	at     time.Time
}

// NewOnce makes a Once that sends to the given recorder.
func NewOnce(to Recorder, now func() time.Time) *Once {
	return &Once{to: to, now: now, said: map[key]time.Time{}, buckets: map[string]bucket{}}
}

// Event publishes the event unless it was published within the last [Quiet], or
// its reason is over its limit; then it may be said the next time it is true.
func (o *Once) Event(object runtime.Object, eventtype, reason, message string) {
	if o.due(key{identity(object), reason, message}, o.now()) {
		o.to.Event(object, eventtype, reason, message)
	}
}

func (o *Once) due(k key, now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if at, ok := o.said[k]; ok && now.Sub(at) < Quiet {
		return false
	}
	if limited[k.reason] && !o.take(k.reason, now) {
		return false
	}
	o.said[k] = now
	if now.Sub(o.swept) >= Quiet {
		for old, at := range o.said {
			if now.Sub(at) >= Quiet {
				delete(o.said, old)
			}
		}
		o.swept = now
	}
	return true
}

// take is a token bucket per reason.
func (o *Once) take(reason string, now time.Time) bool {
	b, ok := o.buckets[reason]
	if !ok {
		b = bucket{limitedBurst, now}
	}
	b.tokens = min(limitedBurst, b.tokens+now.Sub(b.at).Seconds()*limitedPerSecond)
	b.at = now
	ok = b.tokens >= 1
	if ok {
		b.tokens--
	}
	o.buckets[reason] = b
	return ok
}

func identity(object runtime.Object) string {
	m, err := meta.Accessor(object)
	if err != nil {
		return ""
	}
	if m.GetUID() != "" {
		return string(m.GetUID())
	}
	return fmt.Sprintf("%T/%s/%s", object, m.GetNamespace(), m.GetName())
}
