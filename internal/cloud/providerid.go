package cloud

import (
	"fmt"
	"strings"
)

// InstanceID reads the ID of an instance out of a provider ID, which has the
// form <provider>:///<zone>/<id>.
func InstanceID(providerID string) (string, error) {
	_, path, found := strings.Cut(providerID, ":///")
	zone, id, ok := strings.Cut(path, "/")
	if !found || !ok || zone == "" || id == "" || strings.Contains(id, "/") {
		return "", fmt.Errorf("provider ID %q does not have the form <provider>:///<zone>/<id>", providerID)
	}
	return id, nil
}
