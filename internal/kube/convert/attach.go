package convert

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"karpenter/internal/core/world"
)

// csiDrivers are the CSI drivers that serve the volumes of the provisioners that
// Kubernetes once had built in.
var csiDrivers = map[string]string{
	"kubernetes.io/aws-ebs":         ebsDriver,
	"kubernetes.io/gce-pd":          "pd.csi.storage.gke.io",
	"kubernetes.io/azure-disk":      "disk.csi.azure.com",
	"kubernetes.io/azure-file":      "file.csi.azure.com",
	"kubernetes.io/cinder":          "cinder.csi.openstack.org",
	"kubernetes.io/vsphere-volume":  "csi.vsphere.vmware.com",
	"kubernetes.io/portworx-volume": "pxd.portworx.com",
}

const ebsDriver = "ebs.csi.aws.com"

// attachment is what is attached to a node for a claim; false if nothing is
// that counts. A volume that is still to be made counts under its claim's name.
func (l *Lookups) attachment(c *corev1.PersistentVolumeClaim) (world.Attachment, bool) {
	if pv := l.volumes[c.Spec.VolumeName]; c.Spec.VolumeName != "" && pv != nil {
		s := &pv.Spec.PersistentVolumeSource
		if s.CSI != nil {
			return attached(s.CSI.Driver, s.CSI.VolumeHandle)
		}
		if s.Cinder != nil {
			return attached(csiDrivers["kubernetes.io/cinder"], s.Cinder.VolumeID)
		}
		return builtIn(s.AWSElasticBlockStore, s.GCEPersistentDisk, s.AzureDisk, s.VsphereVolume, s.PortworxVolume)
	}
	name := storageClass(c.Annotations, c.Spec.StorageClassName)
	if name == "" && c.Spec.StorageClassName == nil {
		name = l.defaultClass()
	}
	class := l.classes[name]
	if class == nil || class.Provisioner == noProvisioner {
		return world.Attachment{}, false
	}
	driver := class.Provisioner
	if csi, known := csiDrivers[driver]; known {
		driver = csi
	}
	a, ok := attached(driver, objectName(c.ObjectMeta).String())
	a.Unmade = driver == ebsDriver || len(class.AllowedTopologies) > 0
	return a, ok
}

// inline is what is attached for a volume that the pod describes itself.
func inline(v *corev1.Volume) (world.Attachment, bool) {
	if v.Cinder != nil {
		return attached(csiDrivers["kubernetes.io/cinder"], v.Cinder.VolumeID)
	}
	return builtIn(v.AWSElasticBlockStore, v.GCEPersistentDisk, v.AzureDisk, v.VsphereVolume, v.PortworxVolume)
}

func builtIn(ebs *corev1.AWSElasticBlockStoreVolumeSource, gce *corev1.GCEPersistentDiskVolumeSource, azure *corev1.AzureDiskVolumeSource,
	vsphere *corev1.VsphereVirtualDiskVolumeSource, portworx *corev1.PortworxVolumeSource,
) (world.Attachment, bool) {
	switch {
	case ebs != nil: // aws://zone/vol-… or vol-… alone
		return attached(ebsDriver, ebs.VolumeID[strings.LastIndex(ebs.VolumeID, "/")+1:])
	case gce != nil:
		return attached(csiDrivers["kubernetes.io/gce-pd"], gce.PDName)
	case azure != nil:
		return attached(csiDrivers["kubernetes.io/azure-disk"], azure.DataDiskURI)
	case vsphere != nil:
		return attached(csiDrivers["kubernetes.io/vsphere-volume"], vsphere.VolumePath)
	case portworx != nil:
		return attached(csiDrivers["kubernetes.io/portworx-volume"], portworx.VolumeID)
	}
	return world.Attachment{}, false
}

func attached(driver, volume string) (world.Attachment, bool) {
	return world.Attachment{Driver: driver, Volume: volume}, driver != "" && volume != ""
}
