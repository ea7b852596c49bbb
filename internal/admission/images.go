package admission

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	awsv1 "karpenter/api/aws/v1"
)

const (
	mostTerms = 30
	// mostTermTags of one term.
	mostTermTags = 20
)

// terms checks the length of a list of terms.
func terms(path *field.Path, n int, example string) field.ErrorList {
	if n == 0 {
		return field.ErrorList{field.Required(path, "for example "+example)}
	}
	return most(path, n, mostTerms)
}

// one checks that a term has exactly one of the fields that are counted.
func one(path *field.Path, fields string, set ...bool) field.ErrorList {
	n := 0
	for _, s := range set {
		if s {
			n++
		}
	}
	if n == 1 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, n, "a term must have exactly one of "+fields)}
}

func termTags(path *field.Path, list awsv1.TagSelector) field.ErrorList {
	if list == nil {
		return nil
	}
	if len(list) == 0 {
		return field.ErrorList{field.Required(path, "tags must not be empty")}
	}
	errs := most(path, len(list), mostTermTags)
	for _, k := range sortedKeys(list) {
		if k == "" || list[k] == "" {
			errs = append(errs, field.Invalid(path.Key(k), list[k], "tags must not hold an empty key or value; use '*' for any value"))
		}
	}
	return errs
}

// id checks the form of an id of this kind.
func id(path *field.Path, text, kind string) field.ErrorList {
	form := "^" + kind + "-[0-9a-z]+$"
	if ok, _ := regexp.MatchString(form, text); ok || text == "" {
		return nil
	}
	return field.ErrorList{field.Invalid(path, text, "must match "+form)}
}

func subnetTerms(path *field.Path, list []awsv1.SubnetSelectorTerm) field.ErrorList {
	errs := terms(path, len(list), "[{tags: {karpenter.sh/discovery: my-cluster}}]")
	for i, t := range list {
		at := path.Index(i)
		errs = append(errs, one(at, "tags and id", t.Tags != nil, t.ID != "")...)
		errs = append(errs, termTags(at.Child("tags"), t.Tags)...)
		errs = append(errs, id(at.Child("id"), t.ID, "subnet")...)
	}
	return errs
}

func groupTerms(path *field.Path, list []awsv1.SecurityGroupSelectorTerm) field.ErrorList {
	errs := terms(path, len(list), "[{tags: {karpenter.sh/discovery: my-cluster}}]")
	for i, t := range list {
		at := path.Index(i)
		errs = append(errs, one(at, "tags, id and name", t.Tags != nil, t.ID != "", t.Name != "")...)
		errs = append(errs, termTags(at.Child("tags"), t.Tags)...)
		errs = append(errs, id(at.Child("id"), t.ID, "sg")...)
	}
	return errs
}

var families = []awsv1.AMIFamily{awsv1.AMIFamilyAL2, awsv1.AMIFamilyAL2023, awsv1.AMIFamilyBottlerocket, awsv1.AMIFamilyCustom}

// images checks the terms for images together with the family.
func images(spec *field.Path, s *awsv1.EC2NodeClassSpec) field.ErrorList {
	path, at := spec.Child("amiSelectorTerms"), spec.Child("amiFamily")
	errs := terms(path, len(s.AMISelectorTerms), "[{alias: al2023@latest}]")
	alias := ""
	for i, t := range s.AMISelectorTerms {
		errs = append(errs, imageTerm(path.Index(i), t)...)
		alias = alias + t.Alias
	}
	if alias != "" && len(s.AMISelectorTerms) > 1 {
		errs = append(errs, field.Invalid(path, len(s.AMISelectorTerms), "an alias must be the only one of amiSelectorTerms"))
	}
	switch f := s.AMIFamily; {
	case f == nil && alias == "":
		errs = append(errs, field.Required(at, "amiFamily is required where no alias says it, for example AL2023"))
	case f == nil:
	case strings.HasPrefix(string(*f), "Windows"):
		errs = append(errs, field.NotSupported(at, *f, families))
	case !slices.Contains(families, *f):
		errs = append(errs, field.NotSupported(at, *f, families))
	case alias != "" && *f != awsv1.AMIFamilyCustom && *f != aliasFamily(alias):
		errs = append(errs, field.Invalid(at, *f, "amiFamily must be that of the alias, or Custom, or left out"))
	}
	return errs
}

// family of the class, "" where it does not say.
func family(s *awsv1.EC2NodeClassSpec) awsv1.AMIFamily {
	if s.AMIFamily != nil {
		return *s.AMIFamily
	}
	for _, t := range s.AMISelectorTerms {
		if t.Alias != "" {
			return aliasFamily(t.Alias)
		}
	}
	return ""
}

func aliasFamily(alias string) awsv1.AMIFamily {
	name, _, _ := strings.Cut(alias, "@")
	for _, f := range families {
		if strings.ToLower(string(f)) == name {
			return f
		}
	}
	return ""
}

var (
	aliasForm    = regexp.MustCompile(`^((al2|al2023)@(latest|v[0-9]{8})|bottlerocket@(latest|v?[0-9]+[.][0-9]+[.][0-9]+))$`)
	windowsAlias = regexp.MustCompile(`^windows[0-9]*@`)
)

const longestAlias = 30

func imageTerm(path *field.Path, t awsv1.AMISelectorTerm) field.ErrorList {
	set := map[string]bool{"alias": t.Alias != "", "id": t.ID != "", "name": t.Name != "", "owner": t.Owner != "", "tags": t.Tags != nil, "ssmParameter": t.SSMParameter != ""}
	n := 0
	for _, s := range set {
		if s {
			n++
		}
	}
	var errs field.ErrorList
	if n == 0 || n == 1 && set["owner"] {
		errs = append(errs, field.Required(path, "a term needs one of alias, id, name, tags and ssmParameter; owner alone is not enough"))
	}
	for _, name := range []string{"alias", "id", "ssmParameter"} {
		if set[name] && n > 1 {
			errs = append(errs, field.Invalid(path.Child(name), n, fmt.Sprintf("%s must be the only field of its term", name)))
		}
	}
	switch at := path.Child("alias"); {
	case len(t.Alias) > longestAlias:
		errs = append(errs, field.TooLong(at, t.Alias, longestAlias))
	case windowsAlias.MatchString(t.Alias):
		errs = append(errs, field.Invalid(at, t.Alias, "Windows is not supported yet; use an alias of al2, al2023 or bottlerocket"))
	case t.Alias != "" && !aliasForm.MatchString(t.Alias):
		errs = append(errs, field.Invalid(at, t.Alias, "alias must be a family (al2, al2023, bottlerocket), '@' and a version: latest, or one such as v20240807 (al2, al2023) or v1.20.5 (bottlerocket)"))
	}
	errs = append(errs, id(path.Child("id"), t.ID, "ami")...)
	return append(errs, termTags(path.Child("tags"), t.Tags)...)
}
