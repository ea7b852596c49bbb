package label

// Op is the operator of a requirement, as written in the Kubernetes API.
type Op string

// The operators of node affinity, and the two inclusive bounds that pools of
// karpenter.sh/v1 have in addition.
const (
	In           Op = "In"
	NotIn        Op = "NotIn"
	Exists       Op = "Exists"
	DoesNotExist Op = "DoesNotExist"
	Gt           Op = "Gt"
	Lt           Op = "Lt"
	Gte          Op = "Gte"
	Lte          Op = "Lte"
)

// Requirement limits the values that one label may have.
type Requirement struct {
	Key    string   `json:"key"`
	Op     Op       `json:"operator"`
	Values []string `json:"values,omitempty"`
	// MinValues is the least number of different values of Key that the
	// instance types left over must have; 0 means no such rule.
	MinValues int `json:"minValues,omitempty"`
}
