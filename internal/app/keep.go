package app

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"karpenter/internal/journal"
	"karpenter/internal/kube/logbook"
	"karpenter/internal/settings"
)

// keep writes the journal down in the process's own namespace, while it leads. Its
// client has no cache: nobody else looks at these ConfigMaps.
func keep(mgr manager.Manager, proc settings.Process, j *journal.Journal, log logr.Logger) error {
	direct, err := client.New(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("preparing the journal: %w", err)
	}
	k := &logbook.Keeper{Live: direct, Client: direct, Journal: j, Namespace: proc.SystemNamespace}
	said := ""
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		err := k.Run(ctx, func(err error) {
			if text := err.Error(); text != said {
				said = text
				log.Error(err, "the journal cannot be written down; it is tried again")
			}
		})
		if err != nil {
			log.Info("the end of the journal was not written down", "error", err.Error())
		}
		return nil
	}))
}
