package lifecycle

import (
	"encoding/json"
	"testing"
)

// equal compares two values by their JSON form, which is also what is shown.
func equal(t *testing.T, got, want any) {
	t.Helper()
	g, _ := json.MarshalIndent(got, "", " ")
	w, _ := json.MarshalIndent(want, "", " ")
	if string(g) != string(w) {
		t.Errorf("got %s\nwant %s", g, w)
	}
}
