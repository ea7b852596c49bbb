package ec2

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// action is an entry of the table that the HTTP face dispatches on.
type action struct {
	input func() any
	call  func(c *Cloud, in any) (any, error)
}

// act makes the entry of the action whose input is In.
func act[In, Out any, P interface {
	*In
	Request[Out]
}]() action {
	return action{
		input: func() any { return P(new(In)) },
		call:  func(c *Cloud, in any) (any, error) { return Call(c, Request[Out](in.(P))) },
	}
}

// table lists actions by name.
func table(actions ...action) map[string]action {
	out := make(map[string]action, len(actions))
	for _, a := range actions {
		_, name := actionOf(a.input())
		out[name] = a
	}
	return out
}

var ec2Actions = table(
	act[CreateFleetInput, *CreateFleetOutput](),
	act[CreateLaunchTemplateInput, *LaunchTemplateOutput](),
	act[CreateTagsInput, *Done](),
	act[DeleteLaunchTemplateInput, *LaunchTemplateOutput](),
	act[DeleteTagsInput, *Done](),
	act[DescribeAvailabilityZonesInput, *DescribeAvailabilityZonesOutput](),
	act[DescribeImagesInput, *DescribeImagesOutput](),
	act[DescribeInstanceTypeOfferingsInput, *DescribeInstanceTypeOfferingsOutput](),
	act[DescribeInstanceTypesInput, *DescribeInstanceTypesOutput](),
	act[DescribeInstancesInput, *DescribeInstancesOutput](),
	act[DescribeLaunchTemplateVersionsInput, *DescribeLaunchTemplateVersionsOutput](),
	act[DescribeLaunchTemplatesInput, *DescribeLaunchTemplatesOutput](),
	act[DescribeRegionsInput, *DescribeRegionsOutput](),
	act[DescribeSecurityGroupsInput, *DescribeSecurityGroupsOutput](),
	act[DescribeSpotPriceHistoryInput, *DescribeSpotPriceHistoryOutput](),
	act[DescribeSubnetsInput, *DescribeSubnetsOutput](),
	act[DescribeTagsInput, *DescribeTagsOutput](),
	act[DescribeVolumesInput, *DescribeVolumesOutput](),
	act[DescribeVpcsInput, *DescribeVpcsOutput](),
	act[RunInstancesInput, *RunInstancesOutput](),
	act[TerminateInstancesInput, *TerminateInstancesOutput](),
)

var stsActions = table(act[GetCallerIdentityInput, *GetCallerIdentityOutput]())

// jsonActions are those of the JSON 1.1 protocol, by X-Amz-Target prefix.
var jsonActions = map[string]map[string]action{
	"AmazonSSM": table(
		act[GetParameterInput, *GetParameterOutput](),
		act[GetParametersInput, *GetParametersOutput](),
		act[GetParametersByPathInput, *GetParametersByPathOutput](),
	),
	"AWSPriceListService": table(act[GetProductsInput, *GetProductsOutput]()),
}

// Common is what every request to EC2 may carry.
type Common struct{ DryRun bool }

func (c Common) dryRun() bool { return c.DryRun }

// Response is what every answer carries.
type Response struct {
	RequestID string `xml:"requestId" json:"-"`
}

func (r *Response) setRequestID(id string) { r.RequestID = id }

// Done is an answer that says no more than that.
type Done struct {
	Response
	Return bool `xml:"return"`
}

// Handler returns the HTTP face: the AWS protocols on every path, and the
// control endpoint under /_sim/.
func (c *Cloud) Handler() http.Handler {
	mux := http.NewServeMux()
	c.addControl(mux)
	mux.HandleFunc("/", c.serveAWS)
	return mux
}

// Serve serves the handler on an address of the loopback interface such as
// "127.0.0.1:0", and ticks in real time, until the context ends. ready is
// called with the base URL.
func (c *Cloud) Serve(ctx context.Context, address string, ready func(url string)) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	if a, ok := l.Addr().(*net.TCPAddr); !ok || !a.IP.IsLoopback() {
		l.Close()
		return errors.New("sim/ec2: " + address + " is not a loopback address; use 127.0.0.1")
	}
	server := &http.Server{Handler: c.Handler(), ReadHeaderTimeout: 10 * time.Second}
	go c.Run(ctx)
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	if ready != nil {
		ready("http://" + l.Addr().String())
	}
	if err := server.Serve(l); ctx.Err() == nil {
		return err
	}
	return nil
}

// scope finds the service in a SigV4 header: Credential=KEY/date/region/SERVICE/aws4_request.
var scope = regexp.MustCompile(`Credential=[^/]+/\d+/[^/]+/([^/]+)/aws4_request`)

const bodyLimit = 1 << 20

func (c *Cloud) serveAWS(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyLimit))
	if err != nil {
		writeXMLError(w, "ec2", errorf("RequestEntityTooLarge", "The request is larger than %d bytes.", bodyLimit), c.newRequestID())
		return
	}
	if target := r.Header.Get("X-Amz-Target"); target != "" {
		c.serveJSON(w, target, body)
		return
	}
	values, err := url.ParseQuery(string(body))
	if err != nil {
		writeXMLError(w, "ec2", errorf("MalformedQueryString", "The request body is not a query string: %v", err), c.newRequestID())
		return
	}
	for k, v := range r.URL.Query() {
		values[k] = v
	}
	service := "ec2"
	if m := scope.FindStringSubmatch(r.Header.Get("Authorization")); m != nil {
		service = m[1]
	} else if stsActions[values.Get("Action")].call != nil {
		service = "sts"
	}
	c.serveQuery(w, service, values)
}

func (c *Cloud) newRequestID() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return uuid(c.requests)
}

// dropped ends a request without an answer if the error asks for it.
func dropped(e *Error) {
	if e.Code == "ConnectionReset" {
		panic(http.ErrAbortHandler)
	}
}

func (c *Cloud) serveQuery(w http.ResponseWriter, service string, values url.Values) {
	id, name := c.newRequestID(), values.Get("Action")
	actions := map[string]map[string]action{"ec2": ec2Actions, "sts": stsActions}[service]
	a, ok := actions[name]
	if !ok {
		writeXMLError(w, service, errorf("InvalidAction", "The action %s is not valid for this web service (%s).", name, service), id)
		return
	}
	in := a.input()
	err := decodeQuery(values, in)
	var out any
	if err == nil {
		out, err = a.call(c, in)
	}
	if err != nil {
		var e *Error
		errors.As(err, &e)
		dropped(e)
		writeXMLError(w, service, e, id)
		return
	}
	start := xml.StartElement{Name: xml.Name{Local: name + "Response"}}
	namespace := "http://ec2.amazonaws.com/doc/2016-11-15/"
	var content any
	if service == "sts" {
		namespace = "https://sts.amazonaws.com/doc/2011-06-15/"
		content = struct {
			Result   any    `xml:"GetCallerIdentityResult"`
			Metadata string `xml:"ResponseMetadata>RequestId"`
		}{out, id}
	} else {
		content = withRequestID(out, id)
	}
	start.Attr = []xml.Attr{{Name: xml.Name{Local: "xmlns"}, Value: namespace}}
	var b bytes.Buffer
	b.WriteString(xml.Header)
	if err := xml.NewEncoder(&b).EncodeElement(content, start); err != nil {
		writeXMLError(w, service, errorf("InternalError", "encoding the answer: %v", err), id)
		return
	}
	write(w, "text/xml;charset=UTF-8", http.StatusOK, id, b.Bytes())
}

// withRequestID returns a shallow copy of an answer with the id set; the
// answer itself may be shared with others that sent the same client token.
func withRequestID(out any, id string) any {
	v := reflect.New(reflect.TypeOf(out).Elem())
	v.Elem().Set(reflect.ValueOf(out).Elem())
	v.Interface().(interface{ setRequestID(string) }).setRequestID(id)
	return v.Interface()
}

func writeXMLError(w http.ResponseWriter, service string, e *Error, id string) {
	type fault struct{ Code, Message string }
	var content any = struct {
		XMLName xml.Name `xml:"Response"`
		Errors  []fault  `xml:"Errors>Error"`
		ID      string   `xml:"RequestID"`
	}{Errors: []fault{{e.Code, e.Message}}, ID: id}
	if service != "ec2" {
		content = struct {
			XMLName xml.Name `xml:"ErrorResponse"`
			Error   fault
			ID      string `xml:"RequestId"`
		}{Error: fault{e.Code, e.Message}, ID: id}
	}
	b, _ := xml.Marshal(content)
	write(w, "text/xml;charset=UTF-8", e.status(), id, append([]byte(xml.Header), b...))
}

func (c *Cloud) serveJSON(w http.ResponseWriter, target string, body []byte) {
	id := c.newRequestID()
	prefix, name, _ := strings.Cut(target, ".")
	answer := func(status int, v any) {
		b, _ := json.Marshal(v)
		write(w, "application/x-amz-json-1.1", status, id, b)
	}
	refuse := func(e *Error) {
		answer(e.status(), map[string]string{"__type": e.Code, "message": e.Message})
	}
	a, ok := jsonActions[prefix][name]
	if !ok {
		refuse(errorf("UnknownOperationException", "The operation %s is not known.", target))
		return
	}
	in := a.input()
	if err := json.Unmarshal(body, in); err != nil {
		refuse(errorf("SerializationException", "%v", err))
		return
	}
	out, err := a.call(c, in)
	if err != nil {
		var e *Error
		errors.As(err, &e)
		dropped(e)
		refuse(e)
		return
	}
	answer(http.StatusOK, out)
}

// roundTrip is the least time to a long answer. The SDK closes the body of a
// request as soon as an answer begins; if the answer is there before the
// request's writer has looked for the end of that body, which no real network
// is fast enough for, the connection is torn down and the rest of the answer
// lost. Short answers arrive with their header and are safe.
const (
	roundTrip  = 5 * time.Millisecond
	longAnswer = 2 << 10
)

func write(w http.ResponseWriter, contentType string, status int, id string, body []byte) {
	if len(body) > longAnswer {
		time.Sleep(roundTrip)
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("X-Amzn-Requestid", id)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
