package class

import "karpenter/internal/aws/catalog"

// Shape is what the class says about the size of its machines: the part of a
// catalogue's input that is not region, price or setting.
func (c *Class) Shape() catalog.Input {
	family, _ := catalog.FamilyNamed(c.Family)
	in := catalog.Input{Family: family}
	for _, d := range c.Devices() {
		in.BlockDevices = append(in.BlockDevices, catalog.BlockDevice{Name: d.Device, Bytes: d.SizeGiB << 30})
	}
	return in
}
