package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"karpenter/sim/ec2"
)

// cloud talks to the simulated EC2: to its control endpoint for what only a
// simulator can tell, and through the AWS SDK for what anybody may ask.
type cloud struct {
	url    string
	region string
}

func (c *cloud) get(ctx context.Context, path string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+path, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", path, response.Status)
	}
	return json.NewDecoder(response.Body).Decode(into)
}

// instances lists every instance, those that have ended included.
func (c *cloud) instances(ctx context.Context) (all []ec2.Instance, err error) {
	return all, c.get(ctx, "/_sim/instances", &all)
}

// calls lists the calls that start or end machines, since the start of the lab.
func (c *cloud) calls(ctx context.Context) ([]ec2.APICall, error) {
	var log struct{ Calls []ec2.APICall }
	err := c.get(ctx, "/_sim/calls?action=CreateFleet&action=TerminateInstances", &log)
	return log.Calls, err
}

// describe asks with the AWS SDK for the instances with a tag.
func (c *cloud) describe(ctx context.Context, tag, value string) ([]types.Instance, error) {
	client := awsec2.New(awsec2.Options{
		Region: c.region, BaseEndpoint: aws.String(c.url),
		Credentials: credentials.NewStaticCredentialsProvider("lab", "lab", ""),
	})
	pages := awsec2.NewDescribeInstancesPaginator(client, &awsec2.DescribeInstancesInput{
		Filters: []types.Filter{{Name: aws.String("tag:" + tag), Values: []string{value}}},
	})
	var found []types.Instance
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, r := range page.Reservations {
			found = append(found, r.Instances...)
		}
	}
	return found, nil
}
