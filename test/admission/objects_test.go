package admissiontest

import "testing"

// TestEnough: sixty wrong objects and more, of every kind, each with words of
// the answer, and no case twice.
func TestEnough(t *testing.T) {
	objects, err := All()
	if err != nil {
		t.Fatal(err)
	}
	wrong, right, seen := map[string]int{}, map[string]int{}, map[string]bool{}
	for _, o := range objects {
		if o.Wrong() {
			wrong[o.Kind]++
		} else {
			right[o.Kind]++
		}
		if seen[o.Kind+o.Case] {
			t.Errorf("%s: %q is there twice", o.Kind, o.Case)
		}
		seen[o.Kind+o.Case] = true
	}
	t.Log("wrong:", wrong, "right:", right)
	for _, kind := range []string{"Provisioner", "AWSNodeTemplate", "NodePool", "EC2NodeClass", "NodeClaim"} {
		if wrong[kind] < 12 || right[kind] == 0 {
			t.Errorf("%s: %d wrong objects, %d right ones", kind, wrong[kind], right[kind])
		}
	}
}
