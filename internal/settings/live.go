package settings

import (
	"fmt"
	"reflect"
	"sync/atomic"
)

// Live holds the settings of a running process: those of flags and environment,
// changed by the ConfigMap karpenter-global-settings as it is now.
type Live struct {
	base Settings
	now  atomic.Pointer[Settings]
}

// NewLive starts with the settings of flags and environment. They may still
// lack what the ConfigMap has to add.
func NewLive(base Settings) *Live {
	l := &Live{base: base}
	l.now.Store(&base)
	return l
}

// Get returns the settings as they are now. Read it once at the top of a pass.
func (l *Live) Get() Settings { return *l.now.Load() }

// errRenamed: what was bought under the old name would not be known any more.
func errRenamed(from, to string) error {
	return fmt.Errorf("aws.clusterName: is %q and cannot become %q in a running process, because everything that was bought carries the old name; restart with the new name once nothing is left", from, to)
}

// Update applies the data of the ConfigMap (nil if there is none) to the
// settings of flags and environment. With an error nothing changes: the last
// good settings stay. It reports whether anything is different now, and the
// keys that were not understood.
func (l *Live) Update(data map[string]string) (changed bool, unknown []string, err error) {
	next, unknown, err := l.base.Apply(data)
	if err != nil {
		return false, unknown, err
	}
	if was := l.Get().ClusterName; was != "" && next.ClusterName != was {
		return false, unknown, errRenamed(was, next.ClusterName)
	}
	changed = !reflect.DeepEqual(next, l.Get())
	l.now.Store(&next)
	return changed, unknown, nil
}
