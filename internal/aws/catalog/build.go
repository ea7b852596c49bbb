package catalog

import (
	"karpenter/internal/core/world"
)

// Build makes the instance types of one pool from the facts about them, sorted
// by name. All types are returned, also those without an available offering,
// except types with programmable chips (FPGA) and the family g2, which current
// images do not support.
//
// An error names the kubelet setting that cannot be read.
func Build(rows []Row, in Input) ([]world.InstanceType, error) {
	return nil, nil
}
