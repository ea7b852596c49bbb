package ec2

// action is an entry of the tables that the HTTP face dispatches on.
type action struct {
	input func() any
	call  func(c *Cloud, in any) (any, error)
}

// act makes the entry of the action whose input is In.
func act[In, Out any, P interface {
	*In
	Request[Out]
}]() action {
	return action{
		input: func() any { return P(new(In)) },
		call:  func(c *Cloud, in any) (any, error) { return Call(c, Request[Out](in.(P))) },
	}
}

// table lists actions by name.
func table(actions ...action) map[string]action {
	out := make(map[string]action, len(actions))
	for _, a := range actions {
		_, name := actionOf(a.input())
		out[name] = a
	}
	return out
}

// queryServices are those of the query protocol, by the name in the signature.
var queryServices = map[string]struct {
	namespace string
	actions   map[string]action
}{
	"ec2": {"http://ec2.amazonaws.com/doc/2016-11-15/", table(
		act[CreateFleetInput, *CreateFleetOutput](),
		act[CreateLaunchTemplateInput, *LaunchTemplateOutput](),
		act[CreateTagsInput, *Done](),
		act[DeleteLaunchTemplateInput, *LaunchTemplateOutput](),
		act[DeleteTagsInput, *Done](),
		act[DescribeAvailabilityZonesInput, *DescribeAvailabilityZonesOutput](),
		act[DescribeImagesInput, *DescribeImagesOutput](),
		act[DescribeInstanceStatusInput, *DescribeInstanceStatusOutput](),
		act[DescribeInstanceTypeOfferingsInput, *DescribeInstanceTypeOfferingsOutput](),
		act[DescribeInstanceTypesInput, *DescribeInstanceTypesOutput](),
		act[DescribeInstancesInput, *DescribeInstancesOutput](),
		act[DescribeLaunchTemplateVersionsInput, *DescribeLaunchTemplateVersionsOutput](),
		act[DescribeLaunchTemplatesInput, *DescribeLaunchTemplatesOutput](),
		act[DescribeRegionsInput, *DescribeRegionsOutput](),
		act[DescribeSecurityGroupsInput, *DescribeSecurityGroupsOutput](),
		act[DescribeSpotPriceHistoryInput, *DescribeSpotPriceHistoryOutput](),
		act[DescribeSubnetsInput, *DescribeSubnetsOutput](),
		act[DescribeTagsInput, *DescribeTagsOutput](),
		act[DescribeVolumesInput, *DescribeVolumesOutput](),
		act[DescribeVpcsInput, *DescribeVpcsOutput](),
		act[RunInstancesInput, *RunInstancesOutput](),
		act[TerminateInstancesInput, *TerminateInstancesOutput](),
	)},
	"sts": {"https://sts.amazonaws.com/doc/2011-06-15/", table(act[GetCallerIdentityInput, *GetCallerIdentityOutput]())},
	"iam": {"https://iam.amazonaws.com/doc/2010-05-08/", table(
		act[AddRoleToInstanceProfileInput, *Nothing](),
		act[CreateInstanceProfileInput, *InstanceProfileOutput](),
		act[CreateRoleInput, *RoleOutput](),
		act[CreateServiceLinkedRoleInput, *RoleOutput](),
		act[DeleteInstanceProfileInput, *Nothing](),
		act[GetInstanceProfileInput, *InstanceProfileOutput](),
		act[GetRoleInput, *RoleOutput](),
		act[ListInstanceProfilesInput, *ListInstanceProfilesOutput](),
		act[RemoveRoleFromInstanceProfileInput, *Nothing](),
		act[TagInstanceProfileInput, *Nothing](),
		act[UntagInstanceProfileInput, *Nothing](),
	)},
}

// jsonServices are those of the JSON protocol, by the prefix of X-Amz-Target.
var jsonServices = map[string]struct {
	version string
	actions map[string]action
}{
	"AmazonSSM": {"1.1", table(
		act[GetParameterInput, *GetParameterOutput](),
		act[GetParametersInput, *GetParametersOutput](),
		act[GetParametersByPathInput, *GetParametersByPathOutput](),
	)},
	"AWSPriceListService": {"1.1", table(act[GetProductsInput, *GetProductsOutput]())},
	"AmazonSQS": {"1.0", table(
		act[ChangeMessageVisibilityInput, *Nothing](),
		act[CreateQueueInput, *QueueURLOutput](),
		act[DeleteMessageBatchInput, *DeleteMessageBatchOutput](),
		act[DeleteMessageInput, *Nothing](),
		act[DeleteQueueInput, *Nothing](),
		act[GetQueueAttributesInput, *GetQueueAttributesOutput](),
		act[GetQueueUrlInput, *QueueURLOutput](),
		act[ReceiveMessageInput, *ReceiveMessageOutput](),
		act[SendMessageInput, *SendMessageOutput](),
	)},
}

// Common is what every request to EC2 may carry.
type Common struct{ DryRun bool }

func (c Common) dryRun() bool { return c.DryRun }

// Response is what every answer of EC2 carries.
type Response struct {
	RequestID string `xml:"requestId" json:"-"`
}

func (r *Response) setRequestID(id string) { r.RequestID = id }

// Done is an answer of EC2 that says no more than that.
type Done struct {
	Response
	Return bool `xml:"return"`
}

// Nothing is an answer of other services that says nothing.
type Nothing struct{}
