package archtest

// rule limits what the packages below one path may import.
type rule struct {
	// path of the packages, relative to the module; the longest matching rule
	// holds. "..." at the end takes the sub-packages in.
	path string
	// ours lists the packages of this module that may be imported. A trailing
	// "/..." takes the sub-packages in.
	ours []string
	// theirs lists prefixes of other modules' packages that may be imported;
	// the standard library always may.
	theirs []string
	// why the line is drawn here.
	why string
}

const (
	sdk      = "github.com/aws/"
	k8sTypes = "k8s.io/api"
	k8sMeta  = "k8s.io/apimachinery"
)

// kube is everything that a package may need to talk to a Kubernetes API.
var kube = []string{"k8s.io/", "sigs.k8s.io/controller-runtime", "sigs.k8s.io/yaml", "github.com/go-logr/logr", "github.com/prometheus/client_golang"}

var rules = []rule{
	{"internal/core/quantity", nil, nil, "amounts are the ground floor"},
	{"internal/core/label", nil, nil, "label algebra knows labels only"},
	{"internal/core/reason", nil, nil, "reasons are values made of words and numbers"},
	{"internal/core/world", []string{"internal/core/quantity", "internal/core/label", "internal/core/reason"}, nil,
		"the hub model is made of plain values"},
	{"internal/core/schedule", []string{"internal/core/world", "internal/core/quantity", "internal/core/label", "internal/core/reason"}, nil,
		"Solve is a function of a snapshot"},
	{"internal/core/lifecycle", []string{"internal/core/world", "internal/core/quantity", "internal/core/label", "internal/core/reason"}, nil,
		"the life of one machine does not depend on how it was chosen"},
	{"internal/core/brake", nil, nil, "what helped and what did not is counted without knowing why"},
	{"internal/core/disrupt", []string{"internal/core/schedule", "internal/core/world", "internal/core/quantity", "internal/core/label", "internal/core/reason"}, nil,
		"taking away asks Solve what would happen, and nobody else"},
	{"api/...", nil, []string{k8sTypes, k8sMeta, "k8s.io/apiextensions-apiserver", "sigs.k8s.io/yaml"}, "wire types belong to everybody, so they know nobody"},
	{"api/aws/...", []string{"api/v1alpha5"}, []string{k8sTypes, k8sMeta}, "wire types belong to everybody; the two generations share conditions"},
	{"internal/admission", []string{"api/...", "internal/core/label"}, []string{k8sTypes, k8sMeta, "sigs.k8s.io/yaml"}, "validation is pure"},
	{"test/admission", nil, []string{k8sMeta, "sigs.k8s.io/yaml"}, "objects are data; they know no rules"},
	{"internal/cloud", []string{"internal/core/world", "internal/core/quantity", "internal/core/label", "internal/core/reason"}, nil,
		"the boundary to the cloud holds for any provider"},
	{"internal/aws", []string{"internal/aws/family", "internal/aws/class", "internal/aws/catalog", "internal/aws/launch", "internal/aws/notice", "internal/cloud", "internal/core/..."}, []string{"golang.org/x/sync"},
		"the provider reaches AWS through small interfaces only"},
	{"internal/aws/...", []string{"internal/aws/...", "api/...", "internal/cloud", "internal/core/..."}, []string{k8sTypes, k8sMeta},
		"facts and requests are pure; no SDK type gets here"},
	{"internal/aws/family", []string{"internal/core/label"}, nil, "facts about operating systems are a table"},
	{"internal/aws/launch", []string{"internal/aws/family", "internal/aws/class", "internal/cloud", "internal/core/..."}, []string{"github.com/pelletier/go-toml/v2", "sigs.k8s.io/yaml"},
		"requests and user data are pure; user data is written by real encoders"},
	{"internal/aws/awsapi", []string{"internal/aws/...", "internal/cloud", "internal/core/..."}, []string{sdk},
		"the only importer of the AWS SDK; it knows no Kubernetes"},
	{"internal/kube/...", []string{"api/...", "internal/core/...", "internal/cloud", "internal/kube/..."}, []string{k8sTypes, k8sMeta},
		"translation needs types, not clients"},
	{"internal/kube/convert", []string{"api/...", "internal/admission", "internal/core/...", "internal/cloud", "internal/kube/dialect"}, []string{k8sTypes, k8sMeta, "github.com/robfig/cron/v3"},
		"translation is pure: types, rules and defaults, no clients"},
	{"internal/kube/migrate", []string{"api/...", "internal/admission", "internal/kube/dialect"}, []string{k8sTypes, k8sMeta},
		"manifests are turned into others without a cluster"},
	{"internal/kube/adopt", []string{"api/...", "internal/kube/convert", "internal/kube/dialect"}, []string{k8sTypes, k8sMeta}, "whose a machine is is decided without a cluster"},
	{"internal/kube/intent", []string{"api/...", "internal/core/...", "internal/kube/..."}, kube, "writes marks on claims"},
	{"internal/kube/nominate", []string{"api/...", "internal/core/...", "internal/kube/..."}, kube, "writes nominations on pods"},
	{"internal/kube/event", []string{"internal/core/..."}, kube, "publishes events"},
	{"internal/kube/logbook", []string{"internal/journal"}, kube, "keeps the journal in the cluster"},
	{"internal/kube/mirror", []string{"api/...", "internal/admission", "internal/core/...", "internal/cloud", "internal/kube/..."}, kube, "the mirror reads informers"},
	{"internal/kube/ledger", []string{"api/...", "internal/admission", "internal/core/...", "internal/cloud", "internal/kube/..."}, kube, "the ledger writes records"},
	{"internal/controller/...", []string{"api/...", "internal/core/...", "internal/cloud", "internal/kube/...", "internal/admission", "internal/settings", "internal/journal", "internal/dump"}, kube,
		"a controller reads, calls a function and acts; it knows neither AWS nor another controller"},
	{"internal/census", []string{"internal/core/..."}, append([]string{"github.com/prometheus/client_model"}, kube...), "what there is is counted from a snapshot"},
	{"internal/settings", []string{"internal/core/..."}, nil, "settings are plain values"},
	{"internal/dump", []string{"internal/core/..."}, nil, "a moment in a file is plain values; what is decided from it is a function"},
	{"internal/explain", []string{"internal/core/...", "internal/dump"}, nil, "explaining is asking the functions that decide"},
	{"internal/forecast", []string{"internal/core/...", "internal/dump", "internal/kube/convert", "internal/kube/dialect"}, nil,
		"what would be done is a function; what is bought is written as the controller writes it"},
	{"internal/live", []string{"api/...", "internal/core/...", "internal/dump", "internal/journal", "internal/scenario", "internal/kube/..."}, kube,
		"reads clusters, dumps and manifests, and writes nothing"},
	{"internal/journal", []string{"internal/core/...", "internal/dump"}, nil, "the journal keeps plain values"},
	{"internal/scenario", []string{"api/...", "internal/core/...", "internal/admission", "internal/kube/convert", "internal/kube/dialect", "internal/aws/class", "internal/aws/catalog", "internal/cloud"},
		[]string{k8sTypes, k8sMeta, "sigs.k8s.io/yaml"}, "scenario files reach the same functions as the controller, without a cluster"},
	{"internal/scenario/cases", []string{"internal/scenario", "api/...", "internal/core/...", "internal/kube/convert"}, []string{k8sTypes, k8sMeta, "go.yaml.in/yaml/v3"},
		"a case is data and what must be true of it; who plays it is somebody else"},
	{"internal/kube/feed", nil, kube, "says what wakes a reconciler, whatever it reconciles"},
	{"internal/assembly", []string{"api/...", "internal/admission", "internal/census", "internal/aws", "internal/aws/class", "internal/cloud", "internal/controller/...", "internal/core/...", "internal/dump", "internal/kube/...", "internal/journal", "internal/settings"}, kube,
		"one wiring for the process and the rig"},
	{"internal/app", []string{"..."}, append([]string{sdk, "github.com/prometheus/client_model"}, kube...), "the only place where things are wired together"},
	{"internal/reference", []string{"internal/app", "internal/assembly", "internal/aws", "internal/census", "internal/controller/notice", "internal/settings", "api/crds"},
		[]string{"k8s.io/apiextensions-apiserver", "github.com/prometheus/", "github.com/go-logr/logr", "go.yaml.in/yaml/v3"}, "docs are written from the code as it is put together; nothing that runs needs them"},
	{"internal/reference/cmd/reference", []string{"internal/reference"}, nil, "writes files only"},
	{"internal/archtest", nil, nil, "tests the others"},
	{"cmd/karpenter", []string{"internal/app"}, []string{"github.com/spf13/cobra", "sigs.k8s.io/controller-runtime"}, "flags and signals only"},
	{"cmd/karpctl", []string{"internal/scenario/...", "internal/core/...", "internal/dump", "internal/explain", "internal/forecast", "internal/journal", "internal/live", "internal/admission", "internal/kube/convert", "internal/kube/migrate", "internal/aws/class", "internal/aws/catalog", "sim/..."},
		[]string{"github.com/spf13/cobra", "sigs.k8s.io/yaml"}, "the offline front door never talks to AWS"},
	{"sim/ec2", []string{"internal/core/...", "internal/cloud", "internal/aws/catalog"}, nil, "the simulator must not share code with the client it tests"},
	{"sim/ec2/direct", []string{"sim/ec2", "internal/aws/class", "internal/aws/catalog", "internal/aws/launch", "internal/aws/notice", "internal/cloud", "internal/core/..."}, nil,
		"the client of a rig: the plain types of the provider, neither SDK nor HTTP"},
	{"sim/kube", nil, append([]string{"github.com/evanphx/json-patch/v5"}, kube...), "the API server knows nothing of what is tested on it"},
	{"sim/cluster", []string{"sim/kube", "internal/core/...", "internal/kube/convert"}, kube, "the cluster around the controllers shares the rules of kube-scheduler with the planner's checker, and knows no controller"},
	{"sim/rig/...", []string{"sim/...", "bench/usage", "api/...", "internal/assembly", "internal/scenario/...", "internal/admission", "internal/aws", "internal/aws/catalog", "internal/aws/class",
		"internal/aws/launch", "internal/aws/notice", "internal/cloud", "internal/controller/...", "internal/core/...", "internal/journal", "internal/kube/...", "internal/settings"}, kube,
		"the rig runs the product as it is; neither the process around it nor the SDK"},
	{"bench/...", []string{"bench/problem", "bench/usage", "internal/core/...", "internal/kube/convert", "internal/aws/catalog"}, []string{k8sTypes, k8sMeta}, "a benchmark takes the path of the controller"},
}

// pure are the packages that must be functions: no clock, chance, input,
// output, log, goroutine, context or package state that changes.
var pure = []string{"internal/core/"}

// forbiddenInPure are standard packages that no pure package may import.
var forbiddenInPure = map[string]string{
	"context":      "a function that may be cancelled has two answers",
	"log":          "only controllers log",
	"log/slog":     "only controllers log",
	"math/rand":    "chance is an argument",
	"math/rand/v2": "chance is an argument",
	"net":          "no network",
	"net/http":     "no network",
	"os":           "no files, no environment",
	"sync":         "no goroutines, so nothing to guard",
	"sync/atomic":  "no goroutines, so nothing to guard",
}

// clockCalls read the wall clock or wait for it.
var clockCalls = map[string]bool{"Now": true, "Since": true, "Until": true, "Sleep": true, "After": true, "AfterFunc": true, "Tick": true, "NewTimer": true, "NewTicker": true}
