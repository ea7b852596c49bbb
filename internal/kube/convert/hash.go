package convert

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	awsv1 "karpenter/api/aws/v1"
	karpv1 "karpenter/api/v1"
	"karpenter/internal/admission"
)

// PoolHashVersion says how [PoolHash] is computed. Hashes of other versions,
// and of other programs, are not compared with ours.
const PoolHashVersion = "k1"

// PoolHash stands for the template of a NodePool, requirements aside: a machine
// that was made from another one has drifted. Order in lists does not matter,
// and what is not set is left out, so that a field that is added to the API
// later does not change it.
func PoolHash(p *karpv1.NodePool) string {
	t := admission.DefaultNodePool(p).Spec.Template
	t.Spec.Requirements = nil
	order := func(a, b karpv1.Taint) int {
		return strings.Compare(a.Key+" "+string(a.Effect)+" "+a.Value, b.Key+" "+string(b.Effect)+" "+b.Value)
	}
	slices.SortFunc(t.Spec.Taints, order)
	slices.SortFunc(t.Spec.StartupTaints, order)
	return hash(t)
}

// ClassHashVersion says how [ClassHash] is computed.
const ClassHashVersion = "k1"

// ClassHash stands for what an EC2NodeClass says itself. What its terms select is
// compared by what they find; how many prefixes a network interface gets does not
// matter to machines that run.
func ClassHash(c *awsv1.EC2NodeClass) string {
	s := admission.DefaultEC2NodeClass(c).Spec
	if s.AMIFamily == nil && len(s.AMISelectorTerms) == 1 { // the alias says it
		family, _, _ := strings.Cut(s.AMISelectorTerms[0].Alias, "@")
		for _, f := range []awsv1.AMIFamily{awsv1.AMIFamilyAL2, awsv1.AMIFamilyAL2023, awsv1.AMIFamilyBottlerocket} {
			if strings.EqualFold(string(f), family) {
				s.AMIFamily = &f
			}
		}
	}
	s.SubnetSelectorTerms, s.SecurityGroupSelectorTerms, s.AMISelectorTerms, s.CapacityReservationSelectorTerms, s.IPPrefixCount = nil, nil, nil, nil, nil
	return hash(s)
}

func hash(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return "" // plain values always marshal
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}
