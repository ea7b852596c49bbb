package agreement

import (
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// Saved is a cluster on which plan and Kubernetes once did not agree, as it is
// kept in a file.
type Saved struct {
	// About says what was wrong, and with whom.
	About string `json:"about"`
	// Seed decides what the cloud picks, and the order of a story.
	Seed  uint64 `json:"seed"`
	Story bool   `json:"story,omitempty"`
	Cluster
}

// Save writes the smallest cluster that shows the disagreement into a file of
// the folder and returns its name.
func Save(folder string, f Found, smallest *Cluster) (string, error) {
	text, err := yaml.Marshal(Saved{About: f.Disagreement.String(), Seed: f.Seed, Story: f.Story, Cluster: *smallest})
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	name := filepath.Join(folder, fmt.Sprintf("%s-%s-%d.yaml", f.Property, f.Rule, f.Seed))
	return name, os.WriteFile(name, text, 0o644)
}

// Load reads what Save writes.
func Load(name string) (*Saved, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var s Saved
	if err := yaml.UnmarshalStrict(text, &s); err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	return &s, nil
}
