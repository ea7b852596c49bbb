// Package front is one address for all of AWS: it hands each request to moto or
// to the simulated EC2, by the service for which the request was signed.
package front

import (
	"bytes"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
)

type front struct {
	sim, moto http.Handler
}

// motoServices are those for which moto answers.
var motoServices = map[string]bool{"cloudformation": true, "iam": true, "eks": true, "sts": true, "events": true}

var signedFor = regexp.MustCompile(`Credential=[^/]+/\d+/[^/]+/([^/]+)/aws4_request`)

// New returns the handler; sim and moto are URLs.
func New(sim, moto string) (http.Handler, error) {
	to := func(text string) (http.Handler, error) {
		u, err := url.Parse(text)
		if err != nil {
			return nil, err
		}
		return &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
			host := r.In.Host // it is signed, too
			r.SetURL(u)
			r.Out.Host = host
		}, ErrorLog: log.New(io.Discard, "", 0)}, nil // the client is told, that is enough
	}
	s, err := to(sim)
	if err != nil {
		return nil, err
	}
	m, err := to(moto)
	return &front{sim: s, moto: m}, err
}

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	service := ""
	if m := signedFor.FindStringSubmatch(r.Header.Get("Authorization")); m != nil {
		service = m[1]
	}
	form, _ := url.ParseQuery(string(body))
	if form.Get("Action") == "AssumeRoleWithWebIdentity" {
		service = "sts" // it is not signed
	}
	if service == "cloudformation" && form.Has("TemplateBody") {
		form.Set("TemplateBody", forMoto(form))
		body = []byte(form.Encode())
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	if motoServices[service] {
		f.moto.ServeHTTP(w, r)
		return
	}
	f.sim.ServeHTTP(w, r)
}

// forMoto returns the template as moto can take it: it wants a policy as an
// object, where CloudFormation also takes the text of one, with variables in it.
func forMoto(form url.Values) string {
	template := form.Get("TemplateBody")
	const asText = "PolicyDocument: !Sub |"
	before, policy, found := strings.Cut(template, asText)
	if !found {
		return template
	}
	// The text ends where the lines are not indented as deep.
	lines := strings.SplitAfter(policy, "\n")
	end := 1
	for end < len(lines) && (strings.TrimSpace(lines[end]) == "" || strings.HasPrefix(lines[end], "        ")) {
		end++
	}
	name := ""
	for key, value := range form {
		if n, ok := strings.CutSuffix(key, ".ParameterKey"); ok && value[0] == "ClusterName" {
			name = form.Get(n + ".ParameterValue")
		}
	}
	const account = "123456789012" // of moto, and of the simulated EC2
	object := strings.NewReplacer("${ClusterName}", name, "${AWS::Partition}", "aws", "${AWS::Region}", "us-west-2",
		"${AWS::AccountId}", account, "${AWS::URLSuffix}", "amazonaws.com",
		"${KarpenterNodeRole.Arn}", "arn:aws:iam::"+account+":role/KarpenterNodeRole-"+name,
		"${KarpenterInterruptionQueue.Arn}", "arn:aws:sqs:us-west-2:"+account+":"+name,
	).Replace(strings.Join(lines[:end], ""))
	return before + "PolicyDocument:" + object + strings.Join(lines[end:], "")
}
