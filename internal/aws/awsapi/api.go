// Package awsapi makes the calls to AWS: EC2, IAM, EKS, SQS, SSM, STS and the
// price list.
//
// It is the only importer of the AWS SDK. It may import cloud, core and the
// structs of its siblings. What always holds: every method asks for all pages,
// answers with our own plain values, and turns error codes into the kinds of
// cloud and aws/launch.
package awsapi

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"
	smithymiddleware "github.com/aws/smithy-go/middleware"

	"karpenter/internal/cloud"
)

// Config says how AWS is reached. What is left empty comes from the
// environment, as with every program that uses the SDK: AWS_REGION,
// AWS_ENDPOINT_URL, credentials; the region at last from the instance.
type Config struct {
	Region   string
	Endpoint string
	// Version of this program, for the user agent.
	Version string
}

// API calls AWS in one region.
type API struct {
	region  string
	ec2     *ec2.Client
	ssm     *ssm.Client
	sts     *sts.Client
	iam     *iam.Client
	eks     *eks.Client
	sqs     *sqs.Client
	pricing *pricing.Client

	queue queueURL
}

// New prepares the clients; it calls AWS only if the region must be asked for.
func New(ctx context.Context, c Config) (*API, error) {
	options := []func(*config.LoadOptions) error{
		config.WithEC2IMDSRegion(),
		config.WithAPIOptions([]func(*smithymiddleware.Stack) error{
			middleware.AddUserAgentKey("karpenter.sh-" + c.Version),
		}),
	}
	if c.Region != "" {
		options = append(options, config.WithRegion(c.Region))
	}
	if c.Endpoint != "" {
		options = append(options, config.WithBaseEndpoint(c.Endpoint))
	}
	loaded, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("loading the AWS configuration: %w", err)
	}
	if loaded.Region == "" {
		return nil, errors.New("the AWS region is not known: set AWS_REGION")
	}
	loaded.HTTPClient = withWholeBodies(loaded.HTTPClient)
	return &API{
		region: loaded.Region,
		ec2:    ec2.NewFromConfig(loaded),
		ssm:    ssm.NewFromConfig(loaded),
		sts:    sts.NewFromConfig(loaded),
		iam:    iam.NewFromConfig(loaded),
		eks:    eks.NewFromConfig(loaded),
		sqs:    sqs.NewFromConfig(loaded),
		pricing: pricing.NewFromConfig(loaded, func(o *pricing.Options) {
			o.Region = priceListRegion(loaded.Region)
		}),
	}, nil
}

// Region returns the region in which everything happens.
func (a *API) Region() string { return a.region }

// Account asks who we are: the id of the account. It is the cheapest call that
// needs credentials, so it tells whether they work.
func (a *API) Account(ctx context.Context) (string, error) {
	out, err := a.sts.GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return "", kind("asking AWS who we are", err)
	}
	return aws.ToString(out.Account), nil
}

// kind wraps an error with what was being done and, where it has one, with its
// kind.
func kind(doing string, err error) error {
	if err == nil {
		return nil
	}
	var answer smithy.APIError
	if errors.As(err, &answer) {
		err = &answered{err, answer}
	}
	wrapped := fmt.Errorf("%s: %w", doing, err)
	switch c := code(err); {
	case throttled(c):
		return &cloud.ThrottledError{Err: wrapped}
	case forbidden(c):
		return &cloud.ForbiddenError{Err: wrapped}
	}
	return wrapped
}

// answered is an error that AWS answered with. Its text is the same every time
// the same thing goes wrong, so that conditions and events do not change with
// every try; the id of the request is found by unwrapping (ServiceRequestID).
type answered struct {
	error
	answer smithy.APIError
}

func (e *answered) Error() string { return e.answer.ErrorCode() + ": " + e.answer.ErrorMessage() }
func (e *answered) Unwrap() error { return e.error }

// code returns the error code of an AWS answer, or nothing.
func code(err error) string {
	var answer smithy.APIError
	if errors.As(err, &answer) {
		return answer.ErrorCode()
	}
	return ""
}

func throttled(code string) bool {
	_, known := retry.DefaultThrottleErrorCodes[code]
	return known
}

// forbidden reports whether an error code says that we lack a right.
func forbidden(code string) bool {
	return code == "UnauthorizedOperation" || strings.HasPrefix(code, "AccessDenied")
}

// notFound reports whether an error code says that the thing does not exist,
// for codes such as InvalidInstanceID.NotFound.
func notFound(code string) bool {
	return strings.HasSuffix(code, ".NotFound") || strings.HasSuffix(code, ".NotFoundException")
}
