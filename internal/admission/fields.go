package admission

import (
	"encoding"
	stdjson "encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	awsv1 "karpenter/api/aws/v1"
	karpv1 "karpenter/api/v1"
	"karpenter/internal/core/label"
)

// renamed says, by kind and path, what fields of the other generation are called
// in this one.
var renamed = map[string]map[string]string{
	karpv1.KindNodePool: {
		"spec.provider":                              "a NodePool holds no cloud settings: write an EC2NodeClass and name it in spec.template.spec.nodeClassRef",
		"spec.providerRef":                           "it is spec.template.spec.nodeClassRef now, and names an EC2NodeClass",
		"spec.ttlSecondsAfterEmpty":                  "it is spec.disruption.consolidateAfter now, such as 30s, with consolidationPolicy: WhenEmpty",
		"spec.ttlSecondsUntilExpired":                "it is spec.template.spec.expireAfter now, such as 720h",
		"spec.consolidation":                         "it is spec.disruption.consolidationPolicy now: WhenEmptyOrUnderutilized, with consolidateAfter",
		"spec.disruption.expireAfter":                "it is spec.template.spec.expireAfter now",
		"spec.limits[resources]":                     "the resources stand in spec.limits itself now",
		"spec.labels":                                "it is spec.template.metadata.labels now",
		"spec.annotations":                           "it is spec.template.metadata.annotations now",
		"spec.taints":                                "it is spec.template.spec.taints now",
		"spec.startupTaints":                         "it is spec.template.spec.startupTaints now",
		"spec.requirements":                          "it is spec.template.spec.requirements now",
		"spec.kubeletConfiguration":                  "it is spec.kubelet of the EC2NodeClass now",
		"spec.template.spec.kubelet":                 "it is spec.kubelet of the EC2NodeClass now",
		"spec.template.spec.kubeletConfiguration":    "it is spec.kubelet of the EC2NodeClass now",
		"spec.template.spec.nodeClassRef.apiVersion": "it is group now, without the version: karpenter.k8s.aws",
	},
	awsv1.Kind: {
		"spec.subnetSelector":        "it is spec.subnetSelectorTerms now, a list such as [{tags: {Name: my-subnet}}, {id: subnet-0123456789abcdef0}]",
		"spec.securityGroupSelector": "it is spec.securityGroupSelectorTerms now, a list such as [{tags: {Name: my-group}}, {id: sg-0123456789abcdef0}]",
		"spec.amiSelector":           "it is spec.amiSelectorTerms now, a list such as [{alias: al2023@latest}] or [{id: ami-0123456789abcdef0}]",
		"spec.launchTemplate":        "an EC2NodeClass has none: describe image, user data, disks and instance profile in it",
	},
}

// Fields says which fields of an object do not fit a Go type, by name, in the
// words of people who write YAML. It is meant for what a decoder refused, and
// returns nil where it finds nothing itself.
func Fields(kind string, text []byte, into any) field.ErrorList {
	var raw map[string]any
	if err := json.Unmarshal(text, &raw); err != nil {
		return nil
	}
	w := &walker{renamed: renamed[kind]}
	w.walk(nil, raw, reflect.TypeOf(into).Elem())
	return w.errs
}

type walker struct {
	renamed map[string]string
	errs    field.ErrorList
}

func (w *walker) wrong(path *field.Path, value any, must string) {
	switch value.(type) {
	case map[string]any, []any:
		value = field.OmitValueType{}
	}
	if now := w.renamed[path.String()]; now != "" {
		must = now
	}
	w.errs = append(w.errs, field.Invalid(path, value, must))
}

var (
	ownJSON = reflect.TypeFor[stdjson.Unmarshaler]()
	ownText = reflect.TypeFor[encoding.TextUnmarshaler]()
)

func (w *walker) walk(path *field.Path, raw any, t reflect.Type) {
	if raw == nil {
		return
	}
	if p := reflect.PointerTo(t); p.Implements(ownJSON) || p.Implements(ownText) {
		w.read(path, raw, t)
		return
	}
	switch t.Kind() {
	case reflect.Pointer:
		w.walk(path, raw, t.Elem())
	case reflect.Struct:
		if m, ok := raw.(map[string]any); ok {
			w.fields(path, m, t)
		} else {
			w.wrong(path, raw, "must hold fields, such as "+strings.Join(names(t), ", "))
		}
	case reflect.Map:
		m, ok := raw.(map[string]any)
		if !ok {
			w.wrong(path, raw, "must hold names with values")
		}
		for _, k := range sortedKeys(m) {
			w.walk(path.Key(k), m[k], t.Elem())
		}
	case reflect.Slice:
		list, ok := raw.([]any)
		if !ok && t.Elem().Kind() != reflect.Uint8 {
			w.wrong(path, raw, "must be a list: put it in [ ], or begin each line with '-'")
		}
		for i := range list {
			w.walk(path.Index(i), list[i], t.Elem())
		}
	default:
		w.plain(path, raw, t)
	}
}

// plain checks a text, a number or a truth.
func (w *walker) plain(path *field.Path, raw any, t reflect.Type) {
	_, isText := raw.(string)
	_, isTruth := raw.(bool)
	whole, isWhole := raw.(int64)
	part, isPart := raw.(float64)
	switch {
	case t.Kind() == reflect.String && !isText:
		must := "must be text"
		if isTruth || isWhole || isPart {
			must = "must be text: put it in quotes"
		}
		w.wrong(path, raw, must)
	case t.Kind() == reflect.Bool && !isTruth:
		w.wrong(path, raw, "must be true or false, without quotes")
	case reflect.Int <= t.Kind() && t.Kind() <= reflect.Int64:
		switch {
		case isPart && part != float64(int64(part)) || !isPart && !isWhole:
			w.wrong(path, raw, "must be a whole number, without quotes")
		case isPart || t.OverflowInt(whole):
			w.wrong(path, raw, "is a greater number than fits")
		}
	}
}

// read lets a type that reads itself do so.
func (w *walker) read(path *field.Path, raw any, t reflect.Type) {
	text, err := json.Marshal(raw)
	if err == nil {
		err = json.Unmarshal(text, reflect.New(t).Interface())
	}
	switch {
	case err == nil:
	case t == reflect.TypeFor[resource.Quantity]():
		w.wrong(path, raw, "must be a quantity, such as 500m, 2 or 4Gi")
	default:
		w.wrong(path, raw, "cannot be read: it must be a "+strings.ToLower(t.Name()))
	}
}

func (w *walker) fields(path *field.Path, m map[string]any, t reflect.Type) {
	known := map[string]reflect.Type{}
	collect(t, known)
	for _, k := range sortedKeys(m) {
		if ft, ok := known[k]; ok {
			w.walk(path.Child(k), m[k], ft)
			continue
		}
		at := path.Child(k)
		remedy := "correct its name or take it out"
		if now := w.renamed[at.String()]; now != "" {
			remedy = now
		} else if meant := near(k, sortedKeys(known)); meant != "" {
			remedy = fmt.Sprintf("did you mean %s?", meant)
		}
		w.errs = append(w.errs, field.Forbidden(at, "unknown field; "+remedy))
	}
}

// near is the name that differs least, in letters that are not more than a third
// of it; empty if there is none.
func near(name string, known []string) (best string) {
	least := len(name)/3 + 1
	for _, k := range known {
		if d := label.Distance(strings.ToLower(name), strings.ToLower(k)); d < least {
			least, best = d, k
		}
	}
	return best
}

func names(t reflect.Type) []string {
	known := map[string]reflect.Type{}
	collect(t, known)
	all := sortedKeys(known)
	return slices.Clip(all[:min(3, len(all))])
}

// collect the fields of a struct by their name in JSON, those of structs that
// are part of it included.
func collect(t reflect.Type, into map[string]reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case name == "-" || !f.IsExported():
		case name == "" && (f.Anonymous || strings.Contains(options, "inline")) && inner.Kind() == reflect.Struct:
			collect(inner, into)
		case name != "":
			into[name] = f.Type
		}
	}
}
