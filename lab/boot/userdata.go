package boot

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// bootstrapProgram joins an Amazon Linux 2 machine to a cluster.
const bootstrapProgram = "/etc/eks/bootstrap.sh"

// Bootstrap is what user data tells the machine to do.
type Bootstrap struct {
	Cluster          string
	Endpoint         string
	CA               string // base64
	UseMaxPods       bool   // let the number of network interfaces decide
	ContainerRuntime string
	DNS              string
	LocalDisks       string
	KubeletArgs      []string
}

// ParseUserData reads user data the way cloud-init does, finds the call of the
// EKS bootstrap program in its shell scripts and returns its arguments. A
// machine whose user data never calls it does not join, which is an error here.
func ParseUserData(data string) (Bootstrap, error) {
	scripts, err := shellScripts(data)
	if err != nil {
		return Bootstrap{}, fmt.Errorf("user data: %w", err)
	}
	for _, script := range scripts {
		words, err := callOf(script, bootstrapProgram)
		if err != nil {
			return Bootstrap{}, fmt.Errorf("user data: %w", err)
		}
		if words != nil {
			return parseBootstrap(words)
		}
	}
	return Bootstrap{}, fmt.Errorf("user data: none of %d shell scripts calls %s; the machine does not join", len(scripts), bootstrapProgram)
}

// shellScripts returns the shell scripts of user data in order.
func shellScripts(data string) ([]string, error) {
	parts, err := partsOf(data)
	if err != nil {
		return nil, err
	}
	var scripts []string
	for _, p := range parts {
		if p.kind == shellScript {
			scripts = append(scripts, p.text)
		}
	}
	return scripts, nil
}

// Content types of parts that machines act on.
const (
	shellScript = "text/x-shellscript"
	nodeConfig  = "application/node.eks.aws"
)

// part is a piece of user data.
type part struct{ kind, text string }

// partsOf takes user data apart: a MIME multipart document, or a script.
func partsOf(data string) ([]part, error) {
	if strings.HasPrefix(data, "#!") {
		return []part{{shellScript, data}}, nil
	}
	message, err := mail.ReadMessage(strings.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("neither a script nor a MIME document: %w", err)
	}
	kind, params, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	if err != nil {
		return nil, fmt.Errorf("Content-Type: %w", err)
	}
	if !strings.HasPrefix(kind, "multipart/") {
		return nil, fmt.Errorf("Content-Type %q is not multipart", kind)
	}
	var out []part
	parts := multipart.NewReader(message.Body, params["boundary"])
	for {
		next, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("MIME part %d: %w", len(out)+1, err)
		}
		var body io.Reader = next
		if strings.EqualFold(next.Header.Get("Content-Transfer-Encoding"), "base64") {
			body = base64.NewDecoder(base64.StdEncoding, next)
		}
		text, err := io.ReadAll(body)
		if err != nil {
			return nil, fmt.Errorf("MIME part %d: %w", len(out)+1, err)
		}
		kind, _, _ := mime.ParseMediaType(next.Header.Get("Content-Type"))
		out = append(out, part{kind, string(text)})
	}
}

// callOf returns the words of the first call of a program in a shell script,
// without the program's own name; nil if there is none. Nothing is run.
func callOf(script, program string) ([]string, error) {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(script), "")
	if err != nil {
		return nil, fmt.Errorf("shell script: %w", err)
	}
	var words []string
	syntax.Walk(file, func(node syntax.Node) bool {
		call, ok := node.(*syntax.CallExpr)
		if !ok || len(call.Args) == 0 || words != nil || err != nil || call.Args[0].Lit() != program {
			return true
		}
		words = []string{}
		for _, arg := range call.Args[1:] {
			var literal string
			if literal, err = expand.Literal(nil, arg); err != nil {
				return false
			}
			words = append(words, literal)
		}
		return true
	})
	return words, err
}

// parseBootstrap reads the arguments of the bootstrap program. It takes
// options as two words, and refuses what it does not know, as the program does.
func parseBootstrap(words []string) (Bootstrap, error) {
	b := Bootstrap{UseMaxPods: true, ContainerRuntime: "containerd"}
	for i := 0; i < len(words); i++ {
		option := words[i]
		if !strings.HasPrefix(option, "--") {
			if b.Cluster != "" {
				return b, fmt.Errorf("%s: second cluster name %q", bootstrapProgram, option)
			}
			b.Cluster = option
			continue
		}
		if i++; i == len(words) {
			return b, fmt.Errorf("%s: %s needs a value", bootstrapProgram, option)
		}
		value := words[i]
		switch option {
		case "--apiserver-endpoint":
			b.Endpoint = value
		case "--b64-cluster-ca":
			b.CA = value
		case "--use-max-pods":
			b.UseMaxPods = value == "true"
		case "--container-runtime":
			b.ContainerRuntime = value
		case "--dns-cluster-ip":
			b.DNS = value
		case "--local-disks":
			b.LocalDisks = value
		case "--kubelet-extra-args":
			b.KubeletArgs = strings.Fields(value)
		case "--ip-family", "--service-ipv6-cidr", "--pause-container-version", "--docker-config-json":
		default:
			return b, fmt.Errorf("%s: unknown option %s", bootstrapProgram, option)
		}
	}
	if b.Cluster == "" {
		return b, fmt.Errorf("%s: no cluster name", bootstrapProgram)
	}
	return b, nil
}
