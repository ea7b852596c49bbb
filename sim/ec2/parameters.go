package ec2

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ssm makes a request one to SSM.
type ssm struct{}

func (ssm) service() string { return "ssm" }

// Parameter is a public parameter.
type Parameter struct {
	ARN, DataType, Name, Type, Value string
	LastModifiedDate                 float64
	Version                          int64
}

func (c *Cloud) parameter(name string) (Parameter, bool) {
	v, ok := c.world.Parameters[name]
	return Parameter{ARN: fmt.Sprintf("arn:aws:ssm:%s::parameter%s", c.opt.Region, name), DataType: "text", Name: name, Type: "String",
		Value: v, Version: 1, LastModifiedDate: 1704844800}, ok
}

// GetParameterInput asks for one parameter.
type GetParameterInput struct {
	ssm
	Name           string
	WithDecryption *bool
}

// GetParameterOutput is one parameter.
type GetParameterOutput struct{ Parameter Parameter }

func (in *GetParameterInput) do(c *Cloud) (*GetParameterOutput, error) {
	p, ok := c.parameter(in.Name)
	if !ok {
		return nil, errorf("ParameterNotFound", "Systems Manager could not find the parameter %s.", in.Name)
	}
	return &GetParameterOutput{p}, nil
}

// GetParametersInput asks for at most ten parameters.
type GetParametersInput struct {
	ssm
	Names          []string
	WithDecryption *bool
}

// GetParametersOutput lists those that exist and the names of those that do
// not.
type GetParametersOutput struct {
	Parameters        []Parameter
	InvalidParameters []string
}

func (in *GetParametersInput) do(c *Cloud) (*GetParametersOutput, error) {
	if len(in.Names) == 0 || len(in.Names) > 10 {
		return nil, errorf("ValidationException", "names must have 1 to 10 members, not %d", len(in.Names))
	}
	out := &GetParametersOutput{Parameters: []Parameter{}, InvalidParameters: []string{}}
	for _, n := range in.Names {
		if p, ok := c.parameter(n); ok {
			out.Parameters = append(out.Parameters, p)
		} else {
			out.InvalidParameters = append(out.InvalidParameters, n)
		}
	}
	return out, nil
}

// GetParametersByPathInput asks for the parameters below a path.
type GetParametersByPathInput struct {
	ssm
	Path           string
	Recursive      bool
	WithDecryption *bool
	MaxResults     *int
	NextToken      string
}

// GetParametersByPathOutput lists parameters.
type GetParametersByPathOutput struct {
	Parameters []Parameter
	NextToken  string `json:",omitempty"`
}

func (in *GetParametersByPathInput) do(c *Cloud) (*GetParametersByPathOutput, error) {
	under := strings.TrimSuffix(in.Path, "/") + "/"
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(c.world.Parameters)), func(n string) bool {
		rest, ok := strings.CutPrefix(n, under)
		return !ok || !in.Recursive && strings.Contains(rest, "/")
	})
	part, next, err := page(names, Page{in.MaxResults, in.NextToken}, bounds{least: 1, most: 10, size: 10}, func(n string) string { return n })
	if err != nil {
		return nil, errorf("ValidationException", "%v", err)
	}
	out := &GetParametersByPathOutput{Parameters: []Parameter{}, NextToken: next}
	for _, n := range part {
		p, _ := c.parameter(n)
		out.Parameters = append(out.Parameters, p)
	}
	return out, nil
}

// GetCallerIdentityInput asks who is calling.
type GetCallerIdentityInput struct{}

func (in *GetCallerIdentityInput) service() string { return "sts" }

// GetCallerIdentityOutput says it.
type GetCallerIdentityOutput struct {
	ARN     string `xml:"Arn"`
	UserID  string `xml:"UserId"`
	Account string `xml:"Account"`
}

func (in *GetCallerIdentityInput) do(c *Cloud) (*GetCallerIdentityOutput, error) {
	return &GetCallerIdentityOutput{ARN: c.caller(), UserID: "AROASIMULATED:simulated", Account: c.opt.Account}, nil
}
