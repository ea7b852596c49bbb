package demo

import (
	"fmt"

	"karpenter/internal/core/label"
)

// Edition is how one generation of the API says what the demo plays.
type Edition struct {
	// API is the version, as on the command line.
	API string
	// manifests is the folder with the workshop's files, pool and class are those
	// of them that the page applies first.
	manifests, poolFile, classFile string
	// pool and class are the resources, as kubectl names them; poolKind is how the
	// API writes the first, and className the object of the second.
	pool, class, poolKind string
	// poolLabel is on nodes and instances, with the pool's name.
	poolLabel string
	// addLabel is the patch that makes the workshop's Deployment fit.
	addLabel string
	// emptyField says in the pool how long empty machines stay.
	emptyField string
	// tags are on the machines, beside those of every edition.
	tags map[string]string
}

// poolName is the name of the workshop's pool.
const poolName = "test"

var editions = []Edition{
	{
		API: "v1alpha5", manifests: "examples/workshop/", poolFile: "provisioner.yaml", classFile: "awsnodetemplate.yaml",
		pool: "provisioner", class: "awsnodetemplate", poolKind: "Provisioner", poolLabel: label.Provisioner,
		addLabel: `{"spec":{"labels":{"intent":"apps"}}}`, emptyField: "ttlSecondsAfterEmpty",
		tags: map[string]string{"Name": label.Provisioner + "/" + poolName},
	},
	{
		API: "v1", manifests: "examples/workshop-v1/", poolFile: "nodepool.yaml", classFile: "ec2nodeclass.yaml",
		pool: "nodepool", class: "ec2nodeclass", poolKind: "NodePool", poolLabel: label.NodePool,
		addLabel: `{"spec":{"template":{"metadata":{"labels":{"intent":"apps"}}}}}`, emptyField: "consolidateAfter",
		tags: map[string]string{"karpenter.k8s.aws/ec2nodeclass": "default"},
	},
}

// EditionOf returns the edition for a version of the API; an empty one is
// v1alpha5, which the workshop speaks.
func EditionOf(api string) (Edition, error) {
	for _, e := range editions {
		if api == e.API || api == "" {
			return e, nil
		}
	}
	return Edition{}, fmt.Errorf("API=%s: the demo speaks v1alpha5 and v1", api)
}
