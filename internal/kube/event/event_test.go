package event

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

type heard []string

func (h *heard) Event(o runtime.Object, _, reason, message string) {
	*h = append(*h, reason+" "+message)
}

func pod(uid string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: uid, UID: types.UID(uid)}}
}

func TestTheSameIsSaidOnceInTwoMinutes(t *testing.T) {
	var h heard
	now := time.Unix(0, 0)
	o := NewOnce(&h, func() time.Time { return now })
	say := func(want int, uid, reason, text string) {
		t.Helper()
		if o.Event(pod(uid), "Normal", reason, text); len(h) != want {
			t.Fatalf("%d events, want %d: %v", len(h), want, h)
		}
	}
	say(1, "a", "Evicted", "x")
	say(1, "a", "Evicted", "x")
	say(2, "a", "Evicted", "y")
	say(3, "b", "Evicted", "x")
	now = now.Add(Quiet)
	say(4, "a", "Evicted", "x")
	if len(o.said) > 2 {
		t.Errorf("%d old entries are kept", len(o.said))
	}
}

func TestFloodsAreLimited(t *testing.T) {
	var h heard
	now := time.Unix(0, 0)
	o := NewOnce(&h, func() time.Time { return now })
	for i := range 100 {
		o.Event(pod(fmt.Sprint(i)), "Normal", "Nominated", "n")
	}
	if len(h) != limitedBurst {
		t.Errorf("%d events at once, want %d", len(h), limitedBurst)
	}
	now = now.Add(time.Second)
	for i := range 100 {
		o.Event(pod(fmt.Sprint(i)), "Normal", "Nominated", "n")
	}
	if want := limitedBurst + limitedPerSecond; len(h) != want {
		t.Errorf("%d events after a second, want %d", len(h), want)
	}
}
