// Package migrate turns manifests of one API generation into those of the other,
// and says what changes in meaning on the way.
//
// It imports the API types, admission and dialect, and no client. All
// functions are pure. What always holds: what is returned passes admission; what
// has no counterpart is named in a note or an error, never left out in silence.
package migrate

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "karpenter/api/aws/v1"
	awsv1alpha1 "karpenter/api/aws/v1alpha1"
	karpv1 "karpenter/api/v1"
	"karpenter/api/v1alpha5"
	"karpenter/internal/kube/dialect"
)

// Object is an object of any kind.
type Object = dialect.Object

// Options say what the objects do not.
type Options struct {
	// Role and InstanceProfile are for classes that name neither: an EC2NodeClass
	// must have one of the two, an AWSNodeTemplate can have the second.
	Role, InstanceProfile string
	// Adopt lets each NodePool take over the machines of the Provisioner that it
	// is made of.
	Adopt bool
}

// Result is what the objects become.
type Result struct {
	// Objects are classes, then pools, each in the order in which they were given.
	Objects []dialect.Object
	Notes   []Note
}

// Note is something that a person should know who moves from one to the other.
type Note struct {
	// Object that was converted, as kind/name, and the field that it is about.
	Object string `json:"object"`
	Field  string `json:"field,omitempty"`
	// Lost: the field has no counterpart and was left out.
	Lost bool   `json:"lost,omitempty"`
	Text string `json:"text"`
}

// String writes the note in one line.
func (n Note) String() string {
	at := n.Object
	if n.Field != "" {
		at += ": " + n.Field
	}
	if n.Lost {
		at += " is left out"
	}
	return at + ": " + n.Text
}

// job is one conversion.
type job struct {
	opt     Options
	out     Result
	classes []dialect.Object
	pools   []dialect.Object
	errs    []error
}

func (j *job) note(object, field, format string, args ...any) {
	j.add(Note{Object: object, Field: field, Text: fmt.Sprintf(format, args...)})
}

func (j *job) lost(object, field, format string, args ...any) {
	j.add(Note{Object: object, Field: field, Lost: true, Text: fmt.Sprintf(format, args...)})
}

// add keeps a note once: of one object several may be made.
func (j *job) add(n Note) {
	if !slices.Contains(j.out.Notes, n) {
		j.out.Notes = append(j.out.Notes, n)
	}
}

func (j *job) fail(object, field, format string, args ...any) {
	j.errs = append(j.errs, fmt.Errorf("%s: %s: %s", object, field, fmt.Sprintf(format, args...)))
}

// made reports whether a class of this name is among what is returned.
func (j *job) made(class string) bool {
	return slices.ContainsFunc(j.classes, func(o dialect.Object) bool { return o.GetName() == class })
}

// waits says that a pool is left out with its class, which was given and could
// not be converted: without it the pool would buy nothing.
func (j *job) waits(pool, class string) {
	j.note(pool, "", "is left out, because %s, to which it refers, could not be converted; correct that first", class)
}

func (j *job) result() (Result, error) {
	j.out.Objects = slices.Concat(j.classes, j.pools)
	return j.out, errors.Join(j.errs...)
}

// ToV1 turns Provisioners and AWSNodeTemplates into NodePools and EC2NodeClasses;
// other objects are not touched. What can be converted is returned beside the
// errors, each of which names object and field.
func ToV1(objects []dialect.Object, opt Options) (Result, error) {
	j := &job{opt: opt}
	var pools []*v1alpha5.Provisioner
	templates := map[string]*awsv1alpha1.AWSNodeTemplate{}
	for _, o := range objects {
		switch o := o.(type) {
		case *v1alpha5.Provisioner:
			pools = append(pools, o)
		case *awsv1alpha1.AWSNodeTemplate:
			templates[o.Name] = o
		}
	}
	shared := newShared(pools, templates)
	for _, o := range objects {
		if t, ok := o.(*awsv1alpha1.AWSNodeTemplate); ok {
			for _, v := range shared.of(t.Name) {
				j.nodeClass(t, v)
			}
		}
	}
	for _, p := range pools {
		j.nodePool(p, shared)
	}
	return j.result()
}

// FromV1 is the way back: NodePools and EC2NodeClasses become Provisioners and
// AWSNodeTemplates.
func FromV1(objects []dialect.Object, opt Options) (Result, error) {
	j := &job{opt: opt}
	kubelets := map[string]*awsv1.KubeletConfiguration{}
	for _, o := range objects {
		if c, ok := o.(*awsv1.EC2NodeClass); ok {
			kubelets[c.Name] = c.Spec.Kubelet
			j.nodeTemplate(c)
		}
	}
	for _, o := range objects {
		if p, ok := o.(*karpv1.NodePool); ok {
			j.provisioner(p, kubelets)
		}
	}
	return j.result()
}

// metadata keeps what people wrote.
func metadata(m metav1.ObjectMeta, name string) metav1.ObjectMeta {
	out := metav1.ObjectMeta{Name: name, Labels: maps.Clone(m.Labels)}
	for k, v := range m.Annotations {
		if k != corev1.LastAppliedConfigAnnotation && !dialect.Control(k) {
			metav1.SetMetaDataAnnotation(&out, k, v)
		}
	}
	return out
}

func value[T any](p *T) T {
	if p == nil {
		var none T
		return none
	}
	return *p
}
