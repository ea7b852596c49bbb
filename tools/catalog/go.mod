module karpenter/tools/catalog

go 1.26.6

require (
	github.com/LeanerCloud/ec2-instances-info v0.0.0
	github.com/aws/amazon-vpc-resource-controller-k8s v1.8.2
	karpenter v0.0.0
)

require (
	github.com/fxamacker/cbor/v2 v2.9.1 // indirect
	github.com/pkg/errors v0.9.1 // indirect
	github.com/x448/float16 v0.8.4 // indirect
	gopkg.in/inf.v0 v0.9.1 // indirect
	k8s.io/apimachinery v0.37.2 // indirect
	sigs.k8s.io/json v0.0.0-20250730193827-2d320260d730 // indirect
)

replace github.com/LeanerCloud/ec2-instances-info => github.com/cristim/ec2-instances-info v0.0.0-20250528091325-32acf84f42eb

replace karpenter => ../../
