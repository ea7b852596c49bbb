package ec2

import (
	"fmt"
	"hash/fnv"
	"time"
)

// imageKinds are the images that exist for every Kubernetes version: the SSM
// parameter that names them and their own name. %v stands for the version,
// %d for the day of the build.
var imageKinds = []struct{ parameter, name, arch, alias, device string }{
	{"/aws/service/eks/optimized-ami/%v/amazon-linux-2/recommended/image_id", "amazon-eks-node-%v-v%d", "x86_64", "amazon", "/dev/xvda"},
	{"/aws/service/eks/optimized-ami/%v/amazon-linux-2-arm64/recommended/image_id", "amazon-eks-arm64-node-%v-v%d", "arm64", "amazon", "/dev/xvda"},
	{"/aws/service/eks/optimized-ami/%v/amazon-linux-2-gpu/recommended/image_id", "amazon-eks-gpu-node-%v-v%d", "x86_64", "amazon", "/dev/xvda"},
	{"/aws/service/eks/optimized-ami/%v/amazon-linux-2023/x86_64/standard/recommended/image_id", "amazon-eks-node-al2023-x86_64-standard-%v-v%d", "x86_64", "amazon", "/dev/xvda"},
	{"/aws/service/eks/optimized-ami/%v/amazon-linux-2023/arm64/standard/recommended/image_id", "amazon-eks-node-al2023-arm64-standard-%v-v%d", "arm64", "amazon", "/dev/xvda"},
	{"/aws/service/eks/optimized-ami/%v/amazon-linux-2023/x86_64/nvidia/recommended/image_id", "amazon-eks-node-al2023-x86_64-nvidia-%v-v%d", "x86_64", "amazon", "/dev/xvda"},
	{"/aws/service/eks/optimized-ami/%v/amazon-linux-2023/arm64/nvidia/recommended/image_id", "amazon-eks-node-al2023-arm64-nvidia-%v-v%d", "arm64", "amazon", "/dev/xvda"},
	{"/aws/service/eks/optimized-ami/%v/amazon-linux-2023/x86_64/neuron/recommended/image_id", "amazon-eks-node-al2023-x86_64-neuron-%v-v%d", "x86_64", "amazon", "/dev/xvda"},
	{"/aws/service/bottlerocket/aws-k8s-%v/x86_64/latest/image_id", "bottlerocket-aws-k8s-%v-x86_64-v%d", "x86_64", "amazon", "/dev/xvda"},
	{"/aws/service/bottlerocket/aws-k8s-%v/arm64/latest/image_id", "bottlerocket-aws-k8s-%v-aarch64-v%d", "arm64", "amazon", "/dev/xvda"},
	{"/aws/service/bottlerocket/aws-k8s-%v-nvidia/x86_64/latest/image_id", "bottlerocket-aws-k8s-%v-nvidia-x86_64-v%d", "x86_64", "amazon", "/dev/xvda"},
	{"/aws/service/bottlerocket/aws-k8s-%v-nvidia/arm64/latest/image_id", "bottlerocket-aws-k8s-%v-nvidia-aarch64-v%d", "arm64", "amazon", "/dev/xvda"},
	{"/aws/service/canonical/ubuntu/eks/20.04/%v/stable/current/amd64/hvm/ebs-gp2/ami-id", "ubuntu-eks/k8s_%v/images/hvm-ssd/ubuntu-focal-20.04-amd64-server-%d", "x86_64", "", "/dev/sda1"},
	{"/aws/service/canonical/ubuntu/eks/20.04/%v/stable/current/arm64/hvm/ebs-gp2/ami-id", "ubuntu-eks/k8s_%v/images/hvm-ssd/ubuntu-focal-20.04-arm64-server-%d", "arm64", "", "/dev/sda1"},
}

func (w *World) addImages() {
	w.Parameters = map[string]string{}
	for minor := 21; minor <= 39; minor++ {
		version := fmt.Sprintf("1.%d", minor)
		built := time.Date(2024, 1, 10, 0, 0, 0, 0, time.UTC).AddDate(0, 0, 45*(minor-21))
		for _, k := range imageKinds {
			h := fnv.New64a()
			fmt.Fprintf(h, k.parameter, version)
			id := fmt.Sprintf("ami-0%016x", h.Sum64())
			var day int
			fmt.Sscan(built.Format("20060102"), &day)
			owner := "602401143452"
			if k.alias == "" {
				owner = "099720109477"
			}
			w.Parameters[fmt.Sprintf(k.parameter, version)] = id
			w.Images = append(w.Images, Image{
				ID: id, Name: fmt.Sprintf(k.name, version, day), Description: "EKS worker node for Kubernetes " + version,
				Arch: k.arch, State: "available", Created: built.Format("2006-01-02T15:04:05.000Z"),
				Owner: owner, OwnerAlias: k.alias, RootDevice: k.device, RootGiB: 20,
			})
		}
	}
}
