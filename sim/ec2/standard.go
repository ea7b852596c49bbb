package ec2

// StandardImages are the images of all families that a world has by default,
// and the SSM parameters that name the newest of each.
func StandardImages() ([]Image, map[string]string) {
	w := World{}
	w.addImages()
	return w.Images, w.Parameters
}
