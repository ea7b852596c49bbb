package ledger

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// conflictRetry is how soon a pass is repeated that lost a race.
const conflictRetry = 100 * time.Millisecond

// Result ends a pass: look again at the given time (zero: when something
// happens). Losing a race against another writer is no error; the next pass
// decides on what is there then.
func Result(now, again time.Time, err error) (reconcile.Result, error) {
	switch {
	case apierrors.IsConflict(err) || apierrors.IsNotFound(err):
		return reconcile.Result{RequeueAfter: conflictRetry}, nil
	case err != nil:
		return reconcile.Result{}, err
	case again.IsZero():
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: max(again.Sub(now), time.Millisecond)}, nil
}
