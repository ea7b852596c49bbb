package aws

import (
	"context"
	"time"

	"karpenter/internal/aws/catalog"
	"karpenter/internal/aws/class"
	"karpenter/internal/aws/launch"
	"karpenter/internal/cloud"
	"karpenter/internal/core/quantity"
)

// API is what the provider calls. awsapi.API has all of it.
type API interface {
	Region() string
	shopAPI
	priceAPI
	placeAPI
	imageAPI
	templateAPI
	machineAPI
	profileAPI
	clusterAPI
	rightsAPI
}

type shopAPI interface {
	InstanceTypes(ctx context.Context) ([]catalog.Row, error)
	Offerings(ctx context.Context) (map[string][]string, error)
}

type priceAPI interface {
	OnDemandPrices(ctx context.Context) (map[string]quantity.Price, error)
	SpotPrices(ctx context.Context, at time.Time) (map[catalog.TypeZone]quantity.Price, error)
}

type placeAPI interface {
	Subnets(ctx context.Context, match []class.Filter) ([]launch.Subnet, error)
	SecurityGroups(ctx context.Context, match []class.Filter) ([]launch.SecurityGroup, error)
}

type imageAPI interface {
	// Images takes [class.Owner] among the filters.
	Images(ctx context.Context, match []class.Filter) ([]launch.Image, error)
	Parameter(ctx context.Context, name string) (string, error)
}

type templateAPI interface {
	HasTemplate(ctx context.Context, name string) (bool, error)
	CreateTemplate(ctx context.Context, t launch.Template) error
	// Templates lists the launch templates that match all filters, by name.
	Templates(ctx context.Context, match []class.Filter) ([]launch.TemplateInfo, error)
	// DeleteTemplate is no error if there is no such template.
	DeleteTemplate(ctx context.Context, name string) error
}

type machineAPI interface {
	CreateFleet(ctx context.Context, token string, f launch.Fleet) (launch.Answer, error)
	Instances(ctx context.Context, ids []string, match []class.Filter) ([]cloud.Instance, error)
	// Terminate ends all of the instances, or none: one that EC2 does not know
	// is *cloud.NotFoundError.
	Terminate(ctx context.Context, ids ...string) error
	Tag(ctx context.Context, id string, tags []launch.Tag) error
	Untag(ctx context.Context, id string, keys []string) error
}

// profileAPI manages instance profiles. Every call may be repeated: what is
// already as asked is no error.
type profileAPI interface {
	// InstanceProfile returns the profile, or *launch.UnknownProfileError.
	InstanceProfile(ctx context.Context, name string) (launch.Profile, error)
	// InstanceProfiles lists the profiles below a path, by name.
	InstanceProfiles(ctx context.Context, path string) ([]launch.Profile, error)
	// CreateInstanceProfile makes the profile with its path and tags, without
	// roles.
	CreateInstanceProfile(ctx context.Context, p launch.Profile) error
	// AttachRole puts the role into the profile: *launch.UnknownRoleError if
	// there is no such role.
	AttachRole(ctx context.Context, profile, role string) error
	DetachRole(ctx context.Context, profile, role string) error
	// DeleteInstanceProfile deletes a profile that holds no role.
	DeleteInstanceProfile(ctx context.Context, name string) error
}

type clusterAPI interface {
	// Cluster is *launch.UnknownClusterError if EKS does not know it.
	Cluster(ctx context.Context, name string) (launch.EKSCluster, error)
}
