package scenario

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/yaml"

	awsv1 "karpenter/api/aws/v1"
	awsv1alpha1 "karpenter/api/aws/v1alpha1"
	karpv1 "karpenter/api/v1"
	"karpenter/api/v1alpha5"
	"karpenter/internal/admission"
	"karpenter/internal/kube/dialect"
)

// Manifests are the objects that a plan needs, sorted into kinds, in the order
// in which they were read.
type Manifests struct {
	// Pools are Provisioners and NodePools, Classes AWSNodeTemplates and
	// EC2NodeClasses.
	Pools, Classes []dialect.Object
	Claims         []*karpv1.NodeClaim
	Nodes          []*corev1.Node
	Pods           []*corev1.Pod
	DaemonSets     []*appsv1.DaemonSet
	Budgets        []*policyv1.PodDisruptionBudget
	// Referred are the objects that pods and nodes refer to: Namespaces,
	// PersistentVolumes and their claims, StorageClasses and CSINodes.
	Referred []runtime.Object
	Runtimes []*nodev1.RuntimeClass
	// Skipped names the objects that a plan does not need.
	Skipped []string
	// Doubled says which objects were given more than once.
	Doubled []string
	// Idle says which workloads have no pod, with the words for it.
	Idle []string
	// templates are the claims that StatefulSets would make for their pods.
	templates []*corev1.PersistentVolumeClaim
	// refused are the objects that could not be read.
	refused []refusal
	// places remembers where each object was found, for messages.
	places map[runtime.Object]Document
}

// At says where the object was found.
func (m *Manifests) At(o runtime.Object) string { return m.places[o].At() }

// Read reads manifests from files, directories and stdin ("-"). What can be
// read is returned beside the errors, each of which names file, line and
// object.
func Read(paths []string, stdin io.Reader) (*Manifests, error) {
	docs, err := Documents(paths, stdin)
	errs := []error{err}
	m := &Manifests{places: map[runtime.Object]Document{}}
	decoder := newDecoder()
	var all []found
	for _, d := range docs {
		objects, err := items(d)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, o := range objects {
			f, err := m.read(decoder, o)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", o.At(), err))
			} else if f.object != nil {
				all = append(all, f)
			}
		}
	}
	for _, f := range m.last(all) {
		if err := m.sort(f.object); err != nil {
			errs = append(errs, fmt.Errorf("%s: %s: %w", m.At(f.object), f.name, err))
		}
	}
	return m, errors.Join(errs...)
}

// found is an object with its kind and name, for messages.
type found struct {
	object runtime.Object
	name   string
}

// last keeps of objects of one kind and name the last, which is the one that
// stands when all are applied in turn.
func (m *Manifests) last(all []found) []found {
	at := map[string]int{}
	for i, f := range all {
		acc, err := meta.Accessor(f.object)
		if err != nil || acc.GetName() == "" {
			continue
		}
		if acc.GetNamespace() == "" && namespaced(f.object) {
			acc.SetNamespace(corev1.NamespaceDefault)
		}
		id := fmt.Sprintf("%T %s/%s", f.object, acc.GetNamespace(), acc.GetName())
		if first, twice := at[id]; twice {
			m.Doubled = append(m.Doubled, fmt.Sprintf("%s: %s: replaces the one of %s, as when both are applied; keep one of the two", m.At(f.object), f.name, m.At(all[first].object)))
			all[first].object = nil
		}
		at[id] = i
	}
	return slices.DeleteFunc(all, func(f found) bool { return f.object == nil })
}

// scheme holds the kinds that can be read; it does not change.
var scheme = dialect.Scheme(batchv1.AddToScheme, nodev1.AddToScheme)

// refusal is an object that could not be read, and why.
type refusal struct {
	kind, name string
	why        error
}

func (m *Manifests) read(decoder runtime.Decoder, d Document) (found, error) {
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct{ Namespace, Name, GenerateName string }
	}
	text, err := yaml.YAMLToJSONStrict(d.Data)
	if err == nil {
		err = yaml.Unmarshal(text, &head)
	}
	if err != nil {
		return found{}, fmt.Errorf("not readable as YAML: %w", err)
	}
	if head.APIVersion == "" || head.Kind == "" {
		return found{}, errors.New("apiVersion and kind: both are needed to know what the object is")
	}
	name := head.Kind + " " + strings.TrimPrefix(head.Metadata.Namespace+"/", "/") + head.Metadata.Name + head.Metadata.GenerateName
	obj, _, err := decoder.Decode(text, nil, nil)
	switch {
	case runtime.IsNotRegisteredError(err) && ours(head.APIVersion):
		err = fmt.Errorf("kind %s of %s is not known here; known are Provisioner (karpenter.sh/v1alpha5), NodePool and NodeClaim (karpenter.sh/v1), "+
			"AWSNodeTemplate (karpenter.k8s.aws/v1alpha1) and EC2NodeClass (karpenter.k8s.aws/v1)", head.Kind, head.APIVersion)
		m.refused = append(m.refused, refusal{head.Kind, head.Metadata.Name, err})
		return found{}, fmt.Errorf("%s: %w", name, err)
	case runtime.IsNotRegisteredError(err):
		m.Skipped = append(m.Skipped, name)
		return found{}, nil
	case err != nil:
		err = inWords(head.Kind, text, err)
		m.refused = append(m.refused, refusal{head.Kind, head.Metadata.Name, err})
		return found{}, fmt.Errorf("%s: %w", name, err)
	}
	m.places[obj] = d
	return found{obj, name}, nil
}

// newDecoder refuses fields that a kind does not have.
func newDecoder() runtime.Decoder {
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
}

func ours(apiVersion string) bool {
	gv, err := schema.ParseGroupVersion(apiVersion)
	return err == nil && (gv.Group == "karpenter.sh" || gv.Group == "karpenter.k8s.aws")
}

// inWords says which fields the decoder could not read; its own words name the
// types of this program.
func inWords(kind string, text []byte, err error) error {
	var head metav1.TypeMeta
	if json.Unmarshal(text, &head) != nil {
		return err
	}
	obj, unknown := scheme.New(head.GroupVersionKind())
	if unknown != nil {
		return err
	}
	if problems := admission.Fields(kind, text, obj); len(problems) > 0 {
		texts := make([]string, 0, len(problems))
		for _, p := range problems {
			texts = append(texts, p.Error())
		}
		return errors.New(strings.Join(texts, "; "))
	}
	return err
}

// sort puts an object into its list; workloads become their pods.
func (m *Manifests) sort(obj runtime.Object) error {
	acc, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	if acc.GetName() == "" {
		return errors.New("metadata.name: is needed")
	}
	switch o := obj.(type) {
	case *v1alpha5.Provisioner:
		m.Pools = append(m.Pools, o)
	case *karpv1.NodePool:
		m.Pools = append(m.Pools, o)
	case *awsv1alpha1.AWSNodeTemplate:
		m.Classes = append(m.Classes, o)
	case *awsv1.EC2NodeClass:
		m.Classes = append(m.Classes, o)
	case *karpv1.NodeClaim:
		m.Claims = append(m.Claims, o)
	case *corev1.Node:
		m.Nodes = append(m.Nodes, o)
	case *corev1.Pod:
		m.Pods = append(m.Pods, o)
	case *appsv1.DaemonSet:
		m.DaemonSets = append(m.DaemonSets, o)
	case *policyv1.PodDisruptionBudget:
		m.Budgets = append(m.Budgets, o)
	case *corev1.Namespace, *corev1.PersistentVolume, *corev1.PersistentVolumeClaim, *storagev1.StorageClass, *storagev1.CSINode:
		m.Referred = append(m.Referred, o)
	case *nodev1.RuntimeClass:
		m.Runtimes = append(m.Runtimes, o)
	default:
		w, ok := workloadOf(obj)
		if !ok {
			m.Skipped = append(m.Skipped, obj.GetObjectKind().GroupVersionKind().Kind+" "+acc.GetName())
			return nil
		}
		pods, err := w.pods()
		if err != nil {
			return err
		}
		if len(pods) == 0 {
			m.Idle = append(m.Idle, fmt.Sprintf("%s %s/%s: 0 replicas", obj.GetObjectKind().GroupVersionKind().Kind, w.meta.Namespace, w.meta.Name))
		}
		m.Pods = append(m.Pods, pods...)
		m.templates = append(m.templates, w.claims()...)
	}
	return nil
}

// namespaced reports whether objects of this kind live in a namespace.
func namespaced(obj runtime.Object) bool {
	switch obj.(type) {
	case *v1alpha5.Provisioner, *awsv1alpha1.AWSNodeTemplate, *karpv1.NodePool, *awsv1.EC2NodeClass, *karpv1.NodeClaim, *corev1.Node,
		*corev1.Namespace, *corev1.PersistentVolume, *storagev1.StorageClass, *storagev1.CSINode, *nodev1.RuntimeClass:
		return false
	}
	return true
}
