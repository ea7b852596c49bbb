package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"karpenter/internal/journal"
	"karpenter/internal/kube/logbook"
)

// Journal returns what is known of the decisions so far, oldest first: what is
// written down in the cluster, and after that what the controller has not written
// down yet. notes say what is missing.
func (c Cluster) Journal(ctx context.Context) (entries []journal.Entry, notes []string, err error) {
	written, readErr := logbook.Read(ctx, c.Reader, c.Namespace)
	fresh, askErr := c.fresh(ctx)
	switch {
	case readErr != nil && askErr != nil:
		return nil, nil, fmt.Errorf("%w; nor could the controller be asked: %s; reading needs the rights in docs/karpctl.md, and the right --karpenter-namespace", readErr, firstLine(askErr.Error()))
	case readErr != nil:
		notes = append(notes, fmt.Sprintf("what is written down could not be read, so only what the controller has in memory is shown: %s", firstLine(readErr.Error())))
	case askErr != nil:
		notes = append(notes, fmt.Sprintf("the controller could not be asked, so the last seconds may be missing: %s", firstLine(askErr.Error())))
	}
	last := uint64(0)
	if len(written) > 0 {
		last = written[len(written)-1].Seq
	}
	for _, e := range fresh {
		if e.Seq > last {
			written = append(written, e.Short())
		}
	}
	return written, notes, nil
}

// fresh is what the controller has in memory.
func (c Cluster) fresh(ctx context.Context) (out []journal.Entry, err error) {
	if c.Controller == nil {
		return nil, errors.New("no controller was found")
	}
	data, err := c.Controller(ctx, "journal", nil)
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	return out, err
}
