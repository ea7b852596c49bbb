package awsapi

import (
	"context"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"karpenter/internal/aws/notice"
)

// InstanceStatuses tells of running instances that are not well or for which
// something is planned, in the order of EC2.
func (a *API) InstanceStatuses(ctx context.Context) ([]notice.Status, error) {
	pages := ec2.NewDescribeInstanceStatusPaginator(a.ec2, &ec2.DescribeInstanceStatusInput{MaxResults: aws.Int32(1000)})
	var out []notice.Status
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, kind("asking EC2 how instances do", err)
		}
		for _, s := range page.InstanceStatuses {
			got := notice.Status{ID: aws.ToString(s.InstanceId), InstanceImpaired: impaired(s.InstanceStatus), SystemImpaired: impaired(s.SystemStatus)}
			for _, e := range s.Events {
				// EC2 shows past events for a week, with a note in front.
				if d := aws.ToString(e.Description); !strings.HasPrefix(d, "[Completed]") && !strings.HasPrefix(d, "[Canceled]") {
					got.Events = append(got.Events, notice.StatusEvent{ID: aws.ToString(e.InstanceEventId), Code: string(e.Code), NotBefore: aws.ToTime(e.NotBefore)})
				}
			}
			if !got.InstanceImpaired.IsZero() || !got.SystemImpaired.IsZero() || len(got.Events) > 0 {
				out = append(out, got)
			}
		}
	}
	return out, nil
}

// impaired returns since when a check has failed; zero if it passes.
func impaired(s *types.InstanceStatusSummary) time.Time {
	if s == nil || s.Status != types.SummaryStatusImpaired {
		return time.Time{}
	}
	for _, d := range s.Details {
		if d.ImpairedSince != nil {
			return *d.ImpairedSince
		}
	}
	return time.Time{}
}
