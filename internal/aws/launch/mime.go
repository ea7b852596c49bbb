package launch

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"net/textproto"
	"strings"
)

// boundaryOf is what stands between the parts of our MIME documents: "//", or
// longer where a line of a part would be taken for it.
func boundaryOf(parts []part) string {
	boundary := "//"
	for _, p := range parts {
		for line := range bytes.Lines(p.body) {
			for bytes.HasPrefix(line, []byte("--"+boundary)) {
				boundary += "/" // no earlier line begins with it, as none began with what is shorter
			}
		}
	}
	return boundary
}

// part is one part of a MIME document.
type part struct {
	header textproto.MIMEHeader
	body   []byte
}

// ofType is a part with nothing in its header but its type.
func ofType(contentType, body string) part {
	return part{textproto.MIMEHeader{"Content-Type": {contentType}}, []byte(body)}
}

// join writes parts as one MIME document, with plain line ends.
func join(parts []part) (string, error) {
	var body bytes.Buffer
	boundary := boundaryOf(parts)
	w := multipart.NewWriter(&body)
	if err := w.SetBoundary(boundary); err != nil {
		return "", fmt.Errorf("writing user data: %w", err)
	}
	for _, p := range parts {
		to, err := w.CreatePart(p.header)
		if err == nil {
			_, err = to.Write(p.body)
		}
		if err != nil {
			return "", fmt.Errorf("writing user data: %w", err)
		}
	}
	if err := w.Close(); err != nil {
		return "", fmt.Errorf("writing user data: %w", err)
	}
	head := "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"" + boundary + "\"\n\n"
	return head + strings.ReplaceAll(body.String(), "\r", ""), nil
}

// split takes a MIME document apart, headers and bodies as they are.
func split(custom string) ([]part, error) {
	const want = "it must be a MIME document with a multipart content type"
	doc, err := mail.ReadMessage(strings.NewReader(strings.TrimLeft(custom, " \t\r\n")))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", want, err)
	}
	media, params, err := mime.ParseMediaType(doc.Header.Get("Content-Type"))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", want, err)
	}
	if !strings.HasPrefix(media, "multipart/") {
		return nil, fmt.Errorf("%s, not %s", want, media)
	}
	var out []part
	r := multipart.NewReader(doc.Body, params["boundary"])
	for {
		p, err := r.NextRawPart()
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading its part %d: %w", len(out)+1, err)
		}
		body, err := io.ReadAll(p)
		if err != nil {
			return nil, fmt.Errorf("reading its part %d: %w", len(out)+1, err)
		}
		out = append(out, part{p.Header, body})
	}
}
