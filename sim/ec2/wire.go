package ec2

import (
	"bytes"
	"cmp"
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

// Handler returns the HTTP face: the AWS protocols on every path, and the
// control endpoint under /_sim/.
func (c *Cloud) Handler() http.Handler {
	mux := http.NewServeMux()
	c.addControl(mux)
	mux.HandleFunc("GET /clusters/{name}", c.serveEKS)
	mux.HandleFunc("POST /clusters", c.serveEKS)
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
		c.serveJSON(w, r, target, body)
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
	a, ok := queryServices[service].actions[name]
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
	var body []byte
	if err == nil {
		body, err = queryAnswer(service, name, out, id)
	}
	if err != nil {
		e := asError(err)
		dropped(e)
		writeXMLError(w, service, e, id)
		return
	}
	write(w, "text/xml;charset=UTF-8", http.StatusOK, id, body)
}

// queryAnswer writes <NameResponse>: with the fields of the answer for EC2,
// with <NameResult> and <ResponseMetadata> for the others.
func queryAnswer(service, name string, out any, id string) ([]byte, error) {
	element := func(name string) xml.StartElement { return xml.StartElement{Name: xml.Name{Local: name}} }
	start := element(name + "Response")
	start.Attr = []xml.Attr{{Name: xml.Name{Local: "xmlns"}, Value: queryServices[service].namespace}}
	var b bytes.Buffer
	b.WriteString(xml.Header)
	e := xml.NewEncoder(&b)
	if service == "ec2" {
		err := e.EncodeElement(withRequestID(out, id), start)
		return b.Bytes(), err
	}
	err := e.EncodeToken(start)
	if _, none := out.(*Nothing); !none {
		err = errors.Join(err, e.EncodeElement(out, element(name+"Result")))
	}
	type metadata struct {
		ID string `xml:"RequestId"`
	}
	err = errors.Join(err, e.EncodeElement(metadata{id}, element("ResponseMetadata")), e.EncodeToken(start.End()), e.Close())
	return b.Bytes(), err
}

// asError gives errors of encoding the form of an answer.
func asError(err error) *Error {
	var e *Error
	if !errors.As(err, &e) {
		e = errorf("InternalError", "%v", err)
	}
	return e
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

func (c *Cloud) serveJSON(w http.ResponseWriter, r *http.Request, target string, body []byte) {
	id := c.newRequestID()
	prefix, name, _ := strings.Cut(target, ".")
	service := jsonServices[prefix]
	answer := func(status int, v any) {
		b, _ := json.Marshal(v)
		write(w, "application/x-amz-json-"+cmp.Or(service.version, "1.1"), status, id, b)
	}
	refuse := func(e *Error) {
		dropped(e)
		if old := queryCodes[e.Code]; old != "" && prefix == "AmazonSQS" {
			w.Header().Set("X-Amzn-Query-Error", old+";Sender")
		}
		answer(e.status(), map[string]string{"__type": e.Code, "message": e.Message})
	}
	a, ok := service.actions[name]
	if !ok {
		refuse(errorf("UnknownOperationException", "The operation %s is not known.", target))
		return
	}
	in := a.input()
	if err := json.Unmarshal(body, in); err != nil {
		refuse(errorf("SerializationException", "%v", err))
		return
	}
	if p, ok := in.(*ReceiveMessageInput); ok {
		c.await(r.Context(), p)
	}
	out, err := a.call(c, in)
	if err != nil {
		refuse(asError(err))
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
