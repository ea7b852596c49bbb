package catalog

import "strings"

// ebsDriver is the CSI driver of EBS volumes.
const ebsDriver = "ebs.csi.aws.com"

// Numbers of attachments where EC2 does not tell them, from the pages "EBS
// volume limits for EC2 instances" and "Instance types" of the EC2 User Guide.
const (
	nitroAttachments    = 27 // shared with network interfaces and local disks
	xenVolumes          = 39
	highMemoryMetal     = 19 // u-….metal
	denseStorageVolumes = 3  // the large sizes of d3 and d3en; taken for all
	interfacesOfNewNode = 2  // the first one, and the one that the VPC CNI keeps ready
	slotsOfGPU          = 2
	mostLocalDisks      = 16
	smallestOfSeveralGB = 900 // disks of types with several are seldom smaller
	fewestVolumes       = 1   // the driver always allows one
)

// ebsVolumes is how many EBS volumes of pods a new node of the type takes, as
// the EBS CSI driver counts it when it starts (its document "volume attach
// limits"): the attachments of the type, less those of the class's block devices
// (at least the root), and, where they share a number, less network interfaces,
// local disks and accelerators. Where a number is not known the result is rather
// too small: then a machine more is bought, instead of one that a pod cannot use.
func ebsVolumes(r *Row, devices int) int64 {
	n, shared := attachments(r)
	n -= int64(max(1, devices))
	if shared {
		n -= min(interfacesOfNewNode, max(1, r.MaxENIs)) + localDisks(r)
		for _, g := range r.GPUs {
			n -= slotsOfGPU * g.Count
		}
		for _, c := range r.Neuron {
			n -= c.Count
		}
	}
	return max(fewestVolumes, n)
}

func attachments(r *Row) (n int64, shared bool) {
	family, _, _ := strings.Cut(r.Name, ".")
	switch {
	case r.Hypervisor == "xen":
		return xenVolumes, false // EC2 calls it shared; the driver does not
	case r.EBSVolumes > 0:
		return r.EBSVolumes, !r.EBSDedicated
	case family == "d3", family == "d3en":
		return denseStorageVolumes, false
	case r.BareMetal && strings.HasPrefix(family, "u-"):
		return highMemoryMetal, false
	}
	return nitroAttachments, true
}

// localDisks is the number of local NVMe disks; guessed from their size if it is
// not known, rather too great.
func localDisks(r *Row) int64 {
	if r.LocalDisks > 0 || r.LocalNVMeGB == 0 {
		return r.LocalDisks
	}
	return min(mostLocalDisks, 1+(r.LocalNVMeGB+smallestOfSeveralGB-1)/smallestOfSeveralGB)
}
