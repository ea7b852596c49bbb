package launch

import "testing"

// A line of somebody's script that looks like a boundary cuts nothing off.
func TestPartsAreNotCutOff(t *testing.T) {
	for _, body := range []string{"echo a\n--//\nb\n", "--//--\n", "--///\n--//\n", "#!/bin/sh\n"} {
		text, err := join([]part{ofType(shellScript, body), ofType(nodeConfigType, "ours\n")})
		if err != nil {
			t.Fatal(err)
		}
		got, err := split(text)
		if err != nil || len(got) != 2 || string(got[0].body) != body || string(got[1].body) != "ours\n" {
			t.Errorf("%q: %d parts, %v", body, len(got), err)
		}
	}
}
