package ec2

import (
	"encoding/xml"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// param is a node of the tree that the dotted names of a query request form:
// Filter.1.Value.2=x.
type param struct {
	value string
	under map[string]*param
}

func parseParams(values url.Values) *param {
	root := &param{}
	for name, v := range values {
		at := root
		for _, part := range strings.Split(name, ".") {
			if at.under == nil {
				at.under = map[string]*param{}
			}
			if at.under[part] == nil {
				at.under[part] = &param{}
			}
			at = at.under[part]
		}
		at.value = v[len(v)-1]
	}
	return root
}

// decodeQuery fills a request struct. A field is named by its tag `query`, or
// as it is called in Go; a parameter without a field is refused, so that
// nothing which a caller relies on is ignored in silence.
func decodeQuery(values url.Values, into any) error {
	root := parseParams(values)
	delete(root.under, "Action")
	delete(root.under, "Version")
	return root.decode(reflect.ValueOf(into).Elem(), "")
}

var timeType = reflect.TypeFor[time.Time]()

func (p *param) decode(v reflect.Value, path string) error {
	if t, ok := v.Addr().Interface().(*Tags); ok {
		return p.decodeTags(t, path)
	}
	bad := func(err error) error {
		if err != nil {
			return invalid(path, p.value, "Expected a value of type "+v.Kind().String()+".")
		}
		return nil
	}
	switch {
	case v.Type() == timeType:
		t, err := time.Parse(time.RFC3339Nano, p.value)
		v.Set(reflect.ValueOf(t))
		return bad(err)
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return p.decode(v.Elem(), path)
	case v.Kind() == reflect.Struct:
		return p.decodeStruct(v, path)
	case v.Kind() == reflect.Slice:
		return p.decodeList(v, path)
	case v.Kind() == reflect.Bool:
		b, err := strconv.ParseBool(p.value)
		v.SetBool(b)
		return bad(err)
	case v.CanInt():
		n, err := strconv.ParseInt(p.value, 10, 64)
		v.SetInt(n)
		return bad(err)
	case v.CanFloat():
		f, err := strconv.ParseFloat(p.value, 64)
		v.SetFloat(f)
		return bad(err)
	}
	v.SetString(p.value)
	return nil
}

func (p *param) decodeStruct(v reflect.Value, path string) error {
	for _, name := range slices.Sorted(maps.Keys(p.under)) {
		full := strings.TrimPrefix(path+"."+name, ".")
		field := slices.IndexFunc(reflect.VisibleFields(v.Type()), func(f reflect.StructField) bool {
			tag, tagged := f.Tag.Lookup("query")
			return !f.Anonymous && f.IsExported() && (tagged && tag == name || !tagged && f.Name == name)
		})
		if field < 0 {
			return errorf("UnknownParameter", "The parameter %s is not recognized", full)
		}
		f := v.FieldByIndex(reflect.VisibleFields(v.Type())[field].Index)
		if err := p.under[name].decode(f, full); err != nil {
			return err
		}
	}
	return nil
}

// decodeList reads name.1, name.2, … in the order of their numbers; IAM writes
// name.member.1.
func (p *param) decodeList(v reflect.Value, path string) error {
	if m := p.under["member"]; m != nil && len(p.under) == 1 {
		p = m
	}
	numbers := make([]int, 0, len(p.under))
	items := make(map[int]*param, len(p.under))
	for name, item := range p.under {
		n, err := strconv.Atoi(name)
		if err != nil || strconv.Itoa(n) != name {
			return errorf("UnknownParameter", "The parameter %s.%s is not recognized", path, name)
		}
		numbers = append(numbers, n)
		items[n] = item
	}
	slices.Sort(numbers)
	v.Set(reflect.MakeSlice(v.Type(), len(numbers), len(numbers)))
	for i, n := range numbers {
		if err := items[n].decode(v.Index(i), path+"."+strconv.Itoa(n)); err != nil {
			return err
		}
	}
	return nil
}

func (p *param) decodeTags(into *Tags, path string) error {
	var list []struct{ Key, Value string }
	if err := p.decode(reflect.ValueOf(&list).Elem(), path); err != nil {
		return err
	}
	*into = Tags{}
	for _, t := range list {
		if _, twice := (*into)[t.Key]; twice {
			return errorf("InvalidParameterValue", "Duplicate tag key '%s' specified.", t.Key)
		}
		(*into)[t.Key] = t.Value
	}
	return nil
}

// Set is a list in an answer. Unlike a plain slice it is written even when it
// is empty, as EC2 does.
type Set[T any] []T

// MarshalXML writes <name><item>…</item>…</name>.
func (s Set[T]) MarshalXML(e *xml.Encoder, start xml.StartElement) error {
	if err := e.EncodeToken(start); err != nil {
		return err
	}
	for _, item := range s {
		if err := e.EncodeElement(item, xml.StartElement{Name: xml.Name{Local: "item"}}); err != nil {
			return err
		}
	}
	return e.EncodeToken(start.End())
}

type tagItem struct {
	Key   string `xml:"key"`
	Value string `xml:"value"`
}

// MarshalXML writes the tags as a list sorted by key.
func (t Tags) MarshalXML(e *xml.Encoder, start xml.StartElement) error {
	list := make(Set[tagItem], 0, len(t))
	for _, k := range slices.Sorted(maps.Keys(t)) {
		list = append(list, tagItem{k, t[k]})
	}
	return list.MarshalXML(e, start)
}
