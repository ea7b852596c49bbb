package awsapi

import (
	"bytes"
	"fmt"
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
)

// wholeBody gives each request a body that nobody closes.
//
// The SDK closes the body of a request as soon as an answer begins. If the
// answer is there before the transport has looked for the end of that body, as
// happens with a server on the same machine, the transport takes the closed
// body for a failed request and drops the connection, with what is left of the
// answer.
type wholeBody struct{ inner aws.HTTPClient }

func withWholeBodies(c aws.HTTPClient) aws.HTTPClient {
	if c == nil {
		c = awshttp.NewBuildableClient()
	}
	return wholeBody{c}
}

func (c wholeBody) Do(r *http.Request) (*http.Response, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return c.inner.Do(r)
	}
	content, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, fmt.Errorf("reading the request: %w", err)
	}
	own := r.Clone(r.Context())
	own.Body = io.NopCloser(bytes.NewReader(content))
	return c.inner.Do(own)
}
