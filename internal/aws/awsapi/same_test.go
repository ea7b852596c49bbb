package awsapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/config"
	ec2sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"

	"karpenter/sim/ec2"
)

// TestSameAnswers sends the same requests to moto and to a simulation of the
// same network, and compares the decoded answers field by field: what moto
// says, the simulation says too, or the difference is in the table with its
// reason. A line of the table that explains nothing fails as well.
func TestSameAnswers(t *testing.T) {
	endpoint := freshMoto(t)
	moto := newSide(t, endpoint)
	world := mirror(t, moto)
	server := httptest.NewServer(ec2.New(ec2.Options{Region: "us-east-1", World: &world, BootDelay: -1}).Handler())
	defer server.Close()
	sim := newSide(t, server.URL)
	used := map[string]bool{}
	fields := 0
	for _, r := range sameRequests {
		theirs, ours := moto.ask(t, r), sim.ask(t, r)
		for _, field := range slices.Sorted(maps.Keys(theirs)) {
			fields++
			if theirs[field] == ours[field] {
				continue
			}
			line := explained(r.name, field)
			used[line] = true
			if line == "" {
				t.Errorf("%s: %s\n moto %s\n sim  %s", r.name, field, theirs[field], ours[field])
			}
		}
	}
	lines := 0
	for _, d := range differences {
		for _, f := range d.fields {
			lines++
			if !used[d.request+": "+f] {
				t.Errorf("%s: %s: listed, but there is no such difference (any more)", d.request, f)
			}
		}
	}
	t.Logf("%d requests, %d fields compared, %d differences explained", len(sameRequests), fields, lines)
}

// freshMoto returns the endpoint of a moto_server on which nothing was done yet.
func freshMoto(t *testing.T) string {
	t.Helper()
	endpoint := os.Getenv("KARPENTER_TEST_EC2_ENDPOINT")
	if endpoint == "" || os.Getenv("KARPENTER_TEST_EC2_GAPS") != "moto" {
		t.Skip("KARPENTER_TEST_EC2_ENDPOINT does not name a moto_server")
	}
	r, err := http.Post(endpoint+"/moto-api/reset", "", nil)
	must(t, err)
	r.Body.Close()
	return endpoint
}

// explained returns the line of the table that is about a field.
func explained(request, field string) string {
	field = inList.ReplaceAllString(field, "")
	for _, d := range differences {
		if ok, _ := path.Match(d.request, request); !ok {
			continue
		}
		for _, f := range d.fields {
			if ok, _ := path.Match(f, field); ok {
				return d.request + ": " + f
			}
		}
	}
	return ""
}

var inList = regexp.MustCompile(`\[[^]]*\]`)

// side is one of the two servers, with what it was asked to remember.
type side struct {
	ec2 *ec2sdk.Client
	iam *iam.Client
	eks *eks.Client
	sqs *sqs.Client
	ssm *ssm.Client
	sts *sts.Client

	subnets, images []string // of the network, the same on both
	group           string
	instance        string
	queue, receipt  string
	names           map[string]string // ids of things, by the names that stand for them
}

func newSide(t *testing.T, endpoint string) *side {
	t.Helper()
	offline(t, endpoint)
	loaded, err := config.LoadDefaultConfig(t.Context())
	must(t, err)
	return &side{ec2: ec2sdk.NewFromConfig(loaded), iam: iam.NewFromConfig(loaded), eks: eks.NewFromConfig(loaded), sqs: sqs.NewFromConfig(loaded),
		ssm: ssm.NewFromConfig(loaded), sts: sts.NewFromConfig(loaded), names: map[string]string{}}
}

// offline lets the SDK speak to an endpoint, and to nobody else.
func offline(t *testing.T, endpoint string) {
	t.Helper()
	for key, value := range map[string]string{
		"AWS_ENDPOINT_URL": endpoint, "AWS_REGION": "us-east-1",
		"AWS_ACCESS_KEY_ID": "simulated", "AWS_SECRET_ACCESS_KEY": "simulated", "AWS_SESSION_TOKEN": "", "AWS_PROFILE": "",
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "AWS_EC2_METADATA_DISABLED": "true",
	} {
		t.Setenv(key, value)
	}
}

// sameRequest is something to ask both sides.
type sameRequest struct {
	name string
	ask  func(ctx context.Context, s *side) (any, error)
}

// ask returns the answer as fields by their path, or the error as one.
func (s *side) ask(t *testing.T, r sameRequest) map[string]string {
	t.Helper()
	out, err := r.ask(t.Context(), s)
	fields := map[string]string{}
	var refused smithy.APIError
	if errors.As(err, &refused) {
		fields["error"] = refused.ErrorCode()
		return fields
	}
	if err != nil {
		t.Fatalf("%s: %v", r.name, err)
	}
	fields["error"] = "none"
	b, err := json.Marshal(out)
	must(t, err)
	var tree any
	must(t, json.Unmarshal(b, &tree))
	s.flatten("", tree, fields)
	return fields
}

// flatten writes the leaves of an answer by their paths; empty ones and what the
// SDK adds are left out. Lists of tags are sets.
func (s *side) flatten(at string, v any, into map[string]string) {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if k != "ResultMetadata" {
				s.flatten(strings.TrimPrefix(at+"."+k, "."), v[k], into)
			}
		}
	case []any:
		for i, item := range v {
			index := fmt.Sprint(i)
			if m, ok := item.(map[string]any); ok && m["Key"] != nil && m["Value"] != nil {
				index = fmt.Sprint(m["Key"])
			}
			s.flatten(at+"["+index+"]", item, into)
		}
	case nil:
	default:
		if text := fmt.Sprint(v); text != "" {
			into[at] = s.normal(text)
		}
	}
}

var (
	madeID   = regexp.MustCompile(`\b(i|lt|vol|eni|r|eni-attach|fleet|sir)-[0-9a-f-]{8,40}\b|\bAIPA[A-Z0-9]+\b|\bAROA[A-Z0-9]+\b`)
	uuids    = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	instants = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)`)
)

// normal replaces what cannot be the same by a name: ids by the order in which
// they appear, times, addresses.
func (s *side) normal(text string) string {
	text = madeID.ReplaceAllStringFunc(text, func(id string) string {
		kind, _, _ := strings.Cut(id, "-")
		if s.names[id] == "" {
			s.names[id] = fmt.Sprintf("<%s>", kind[:min(len(kind), 4)])
		}
		return s.names[id]
	})
	text = uuids.ReplaceAllString(text, "<uuid>")
	text = instants.ReplaceAllString(text, "<time>")
	return text
}
