package class

import (
	"karpenter/internal/aws/catalog"
	"karpenter/internal/aws/family"
)

// Shape is what the class says about the size of its machines: the part of a
// catalogue's input that is not region, price or setting.
func (c *Class) Shape() catalog.Input {
	f, _ := family.Named(c.Family)
	in := catalog.Input{Family: f, RAID0: c.RAID0, Rules: catalog.OldRules}
	if c.Newer() {
		in.Rules = catalog.NewRules
	}
	for _, d := range c.Devices() {
		in.BlockDevices = append(in.BlockDevices, catalog.BlockDevice{Name: d.Device, Bytes: d.SizeGiB << 30, Root: d.Root})
	}
	return in
}
