// Package intent is how a disruption is written down on the objects to go, so
// that a restart goes on where it was.
//
// It may import dialect and controller-runtime's client.
package intent

import (
	"encoding/json"
	"fmt"
	"time"

	"karpenter/internal/kube/dialect"
)

// Annotation of a NodeClaim that was chosen to go.
const Annotation = dialect.AnnotationDisruptionIntent

// ReplacesAnnotation of a NodeClaim that was bought as a replacement holds the
// id of the command.
const ReplacesAnnotation = dialect.AnnotationReplaces

// Intent says why a machine goes and what it waits for.
type Intent struct {
	// ID is the command; the replacements carry it in [ReplacesAnnotation].
	ID     string    `json:"id"`
	Method string    `json:"method"`
	Since  time.Time `json:"since"`
	// Replacements is how many machines must be ready before this one goes.
	Replacements int `json:"replacements"`
	// Bought: the replacements were bought; before that the command is still
	// being checked, and after a restart it is given up.
	Bought bool `json:"bought,omitempty"`
}

// Read returns the intent in the annotations; ok is false if there is none. An
// unreadable one is an error and counts as one that must be rolled back.
func Read(annotations map[string]string) (in Intent, ok bool, err error) {
	text, ok := annotations[Annotation]
	if !ok {
		return Intent{}, false, nil
	}
	if err := json.Unmarshal([]byte(text), &in); err != nil {
		return Intent{}, true, fmt.Errorf("annotation %s: %w", Annotation, err)
	}
	return in, true, nil
}

// String is the form that is stored.
func (in Intent) String() string {
	b, err := json.Marshal(in)
	if err != nil { // a time outside of years 0 to 9999
		return "{}"
	}
	return string(b)
}
