package rig

import (
	"context"
	"time"

	"karpenter/internal/aws/launch"
	"karpenter/internal/aws/notice"
	"karpenter/internal/scenario/cases"
)

func (f *face) InstanceProfile(ctx context.Context, name string) (launch.Profile, error) {
	return call(f, "GetInstanceProfile", cases.Call{}, func() (launch.Profile, error) { return f.to.InstanceProfile(ctx, name) })
}

func (f *face) InstanceProfiles(ctx context.Context, path string) ([]launch.Profile, error) {
	return call(f, "ListInstanceProfiles", cases.Call{}, func() ([]launch.Profile, error) { return f.to.InstanceProfiles(ctx, path) })
}

func (f *face) CreateInstanceProfile(ctx context.Context, p launch.Profile) error {
	return done(f, "CreateInstanceProfile", cases.Call{}, func() error { return f.to.CreateInstanceProfile(ctx, p) })
}

func (f *face) AttachRole(ctx context.Context, profile, role string) error {
	return done(f, "AddRoleToInstanceProfile", cases.Call{}, func() error { return f.to.AttachRole(ctx, profile, role) })
}

func (f *face) DetachRole(ctx context.Context, profile, role string) error {
	return done(f, "RemoveRoleFromInstanceProfile", cases.Call{}, func() error { return f.to.DetachRole(ctx, profile, role) })
}

func (f *face) DeleteInstanceProfile(ctx context.Context, name string) error {
	return done(f, "DeleteInstanceProfile", cases.Call{}, func() error { return f.to.DeleteInstanceProfile(ctx, name) })
}

func (f *face) Cluster(ctx context.Context, name string) (launch.EKSCluster, error) {
	return call(f, "DescribeCluster", cases.Call{}, func() (launch.EKSCluster, error) { return f.to.Cluster(ctx, name) })
}

// DryRun is noted under a name of its own, as it starts nothing.
func (f *face) DryRun(ctx context.Context, t launch.Template, fleet launch.Fleet) error {
	return done(f, "DryRun", cases.Call{}, func() error { return f.to.DryRun(ctx, t, fleet) })
}

// Receive implements the queue of interruption notices; it does not wait.
func (f *face) Receive(ctx context.Context, queue string, wait time.Duration) ([]notice.Message, error) {
	return call(f, "ReceiveMessage", cases.Call{}, func() ([]notice.Message, error) { return f.to.Receive(ctx, queue, wait) })
}

func (f *face) Delete(ctx context.Context, queue string, receipts []string) error {
	return done(f, "DeleteMessageBatch", cases.Call{}, func() error { return f.to.Delete(ctx, queue, receipts) })
}

func (f *face) InstanceStatuses(ctx context.Context) ([]notice.Status, error) {
	return call(f, "DescribeInstanceStatus", cases.Call{}, func() ([]notice.Status, error) { return f.to.InstanceStatuses(ctx) })
}
