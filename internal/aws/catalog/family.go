package catalog

// Family holds what an image family means for the capacity of its nodes.
type Family struct {
	Name string
	// EphemeralDevice is the volume that holds pods' files; empty: the last
	// volume of the class.
	EphemeralDevice string
	// PodsPerCore and EvictionSoft tell whether the family's kubelet knows
	// these settings.
	PodsPerCore  bool
	EvictionSoft bool
	// ENIMemory: the memory reserved for kubelet counts the pods that the
	// network interfaces allow, even where fewer or more pods may run.
	ENIMemory bool
}

// Families returns the image families.
func Families() []Family {
	return []Family{
		{Name: "AL2", EphemeralDevice: "/dev/xvda", PodsPerCore: true, EvictionSoft: true, ENIMemory: true},
		{Name: "AL2023", EphemeralDevice: "/dev/xvda", PodsPerCore: true, EvictionSoft: true},
		{Name: "Bottlerocket", EphemeralDevice: "/dev/xvdb"},
		{Name: "Ubuntu", EphemeralDevice: "/dev/sda1", PodsPerCore: true, EvictionSoft: true, ENIMemory: true},
		{Name: "Custom", PodsPerCore: true, EvictionSoft: true, ENIMemory: true},
	}
}

// FamilyNamed returns the family of that name; the empty name means AL2.
func FamilyNamed(name string) (Family, bool) {
	if name == "" {
		name = "AL2"
	}
	for _, f := range Families() {
		if f.Name == name {
			return f, true
		}
	}
	return Family{}, false
}
