package app

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	apiv1 "karpenter/api/v1"
	"karpenter/internal/kube/dialect"
)

// lister is what is needed of the discovery of an API server.
type lister interface {
	ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error)
}

// served returns the kinds of pools that the API server knows together with
// their kind of class. A cluster may have the CRDs of one generation only; those
// of NodeClaims, the record of every machine, it must have.
func served(server lister) (out []dialect.Dialect, err error) {
	known := map[string]bool{} // group/version/kind
	ask := func(groupVersion, kind string) bool {
		if _, asked := known[groupVersion]; !asked {
			known[groupVersion] = true
			list, failed := server.ServerResourcesForGroupVersion(groupVersion)
			if failed != nil && !apierrors.IsNotFound(failed) {
				err = errors.Join(err, fmt.Errorf("asking the API server for the kinds of %s: %w", groupVersion, failed))
			}
			if list != nil {
				for _, r := range list.APIResources {
					known[groupVersion+"/"+r.Kind] = true
				}
			}
		}
		return known[groupVersion+"/"+kind]
	}
	if !ask(apiv1.GroupVersion.String(), apiv1.Kind) && err == nil {
		return nil, fmt.Errorf("the API server does not know %s of %s: install the CRDs", apiv1.Kind, apiv1.GroupVersion)
	}
	for _, d := range dialect.All() {
		class := schema.GroupVersion{Group: d.ClassGroup, Version: d.ClassVersion}
		if ask(d.APIVersion, d.Kind) && ask(class.String(), d.ClassKind) {
			out = append(out, d)
		}
	}
	if err == nil && len(out) == 0 {
		err = errors.New("the API server knows neither Provisioner with AWSNodeTemplate nor NodePool with EC2NodeClass: install the CRDs of one of the two")
	}
	return out, err
}

func same(a, b []dialect.Dialect) bool { return words(a) == words(b) }

func words(kinds []dialect.Dialect) string {
	var out []string
	for _, d := range kinds {
		out = append(out, d.Kind)
	}
	slices.Sort(out)
	return strings.Join(out, " and ")
}
