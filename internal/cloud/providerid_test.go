package cloud

import "testing"

func TestInstanceID(t *testing.T) {
	for _, c := range []struct{ providerID, want string }{
		{"aws:///us-west-2a/i-0123456789abcdef0", "i-0123456789abcdef0"},
		{"", ""},
		{"i-1", ""},
		{"aws:///i-1", ""},
		{"aws:////i-1", ""},
		{"aws:///zone/", ""},
		{"aws:///zone/a/b", ""},
		{"kind://docker/lab/lab-control-plane", ""},
	} {
		got, err := InstanceID(c.providerID)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("InstanceID(%q) = %q, %v", c.providerID, got, err)
		}
	}
}
