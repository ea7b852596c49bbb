package awsapi_test

// difference are fields in which the simulation does not follow moto 5.2.1, with
// the reason. Patterns of path.Match; places in lists are left out of fields.
type difference struct {
	request string
	fields  []string
	why     string
}

var differences = []difference{
	// Names that both make up.
	{"GetCallerIdentity", []string{"Arn", "UserId"}, "who calls is a role here, as the controller is, not a user"},
	{"*LaunchTemplate*", []string{"*.CreatedBy"}, "the same"},
	{"Describe*", []string{"*ZoneId"}, "zone ids are mapped to names anew in every account"},
	{"DescribeVpcs", []string{"*.AssociationId"}, "made-up ids"},
	{"*InstanceProfile*", []string{"*.InstanceProfileId"}, "made-up ids; those of AWS begin with AIPA"},
	{"*Cluster", []string{"Cluster.CertificateAuthority.Data", "Cluster.Endpoint", "Cluster.PlatformVersion"}, "made-up API servers"},
	{"*Queue*", []string{"QueueUrl"}, "moto names its own host, the simulation that of AWS; the SDK does not follow either"},

	// Where the simulation is closer to AWS.
	{"GetParameter", []string{"Parameter.ARN"}, "a public parameter belongs to no account: moto puts the caller's into its ARN"},
	{"*InstanceProfile*", []string{"*.AssumeRolePolicyDocument"}, "IAM encodes policies for URLs everywhere, moto only where it shows a role by itself"},
	{"ListInstanceProfiles elsewhere", []string{"InstanceProfiles.*"}, "moto lists all profiles, whatever the path"},
	{"ListInstanceProfiles", []string{"*.Tags.*"}, "IAM lists profiles without their tags"},
	{"CreateFleet", []string{"*.LaunchTemplateName"}, "EC2 Fleet answers with the id of the template alone"},
	{"DescribeLaunchTemplateVersions", []string{"*.TagSpecifications.*"}, "tags of the template itself are no part of its data"},
	{"DescribeInstances", []string{"*.HttpPutResponseHopLimit", "*.HttpTokens", "*.Monitoring.State"}, "moto drops what the launch template says"},
	{"DescribeInstances", []string{"*.BlockDeviceMappings.DeviceName"}, "the same"},
	{"DescribeVolumes", []string{"*.Device", "*.Encrypted", "*.Size", "*.VolumeType"}, "the same"},
	{"DescribeInstances", []string{"*.EbsOptimized"}, "types of today always are"},
	{"DescribeInstances", []string{"*.Attachment.DeleteOnTermination"}, "the interface that comes with a machine goes with it"},
	{"CreateTags none", []string{"error"}, "moto tags what does not exist"},
	{"DeleteLaunchTemplate again", []string{"error"}, "the template is unknown; the request is complete"},
	{"*Cluster", []string{"*.EndpointPublicAccess"}, "public unless the request says otherwise"},

	// What the catalogue of instance types does not hold.
	{"DescribeInstanceTypes*", []string{"*.CurrentGeneration", "*.AutoRecoverySupported", "*.DedicatedHostsSupported", "*.HibernationSupported", "*.NitroEnclavesSupport",
		"*.NitroTpmSupport", "*.NitroTpmInfo.*", "*.PhcSupport", "*.PlacementGroupInfo.*", "*.RebootMigrationSupport", "*.SupportedBootModes"}, "nothing chooses by it"},
	{"DescribeInstanceTypes*", []string{"*.VCpuInfo.DefaultCores", "*.VCpuInfo.DefaultThreadsPerCore", "*.VCpuInfo.ValidCores", "*.VCpuInfo.ValidThreadsPerCore"}, "nothing chooses by it"},
	{"DescribeInstanceTypes*", []string{"*.ConnectionTrackingConfiguration.*", "*.EnaSrdSupported", "*.FlexibleEnaQueuesSupport", "*.DefaultEnaQueueCountPerInterface",
		"*.SecondaryNetworkSupported"}, "nothing chooses by it"},
	{"DescribeInstanceTypes*", []string{"*.NetworkPerformance", "*.PeakBandwidthInGbps"}, "peaks; the catalogue holds the baseline"},
	{"DescribeInstanceTypes*", []string{"*.BaselineIops", "*.BaselineThroughputInMBps", "*.MaximumBandwidthInMbps", "*.MaximumIops", "*.MaximumThroughputInMBps"}, "the catalogue holds the baseline, in Mbit/s"},
	{"DescribeInstanceTypes gpu", []string{"*.GpuPartitionSize", "*.LogicalGpuCount", "*.Workloads"}, "the number of GPUs is what counts"},
	{"DescribeInstanceTypes chips", []string{"*.InferenceAcceleratorInfo.*"}, "the older of two descriptions of the same chips"},
	{"DescribeInstanceTypes chips", []string{"*.CoreInfo.*"}, "the catalogue counts chips"},

	// What is not simulated.
	{"DescribeVpcs", []string{"*.DhcpOptionsId"}, "name servers"},
	{"DescribeSecurityGroups", []string{"*.IpPermissionsEgress.*"}, "the rules of groups"},
	{"GetParameter", []string{"Parameter.Version"}, "the history of parameters"},
	{"DescribeImages", []string{"*.BootMode", "*.Ebs.*"}, "how machines boot, and snapshots: images have one gp2 volume that goes with its machine"},
	{"DescribeInstances", []string{"*.NetworkInterfaces.Description", "*.MacAddress", "*.SriovNetSupport"}, "network drivers"},
	{"*Cluster", []string{"*.ClientRequestToken", "*.Issuer", "*.Logging.*"}, "the control plane of EKS"},
}
