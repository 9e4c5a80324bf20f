package client

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/robotsgate/robotsgate/fetch"
)

// send is base.RoundTrip. A base that returns nothing at all is named: http.Client would
// blame the Transport around it.
func send(base http.RoundTripper, req *http.Request) (*http.Response, error) {
	res, err := base.RoundTrip(req)
	if res == nil && err == nil {
		return nil, mistake(fmt.Sprintf("client: Base (%T) returned neither a response nor an error", base))
	}
	return res, err
}

// refuse is what becomes of a request that is not sent: its body is closed, as
// http.RoundTripper demands.
func refuse(req *http.Request, err error) (*http.Response, error) {
	if req.Body != nil {
		req.Body.Close()
	}
	return nil, err
}

// checkKeys refuses what would be sent in place of, or beside, the fields that are decided
// for: net/http looks for them under their canonical keys alone when it writes HTTP/1.1,
// and without regard to case for HTTP/2.
func checkKeys(h http.Header) error {
	for key := range h {
		switch {
		case len(key) == len("User-Agent") && key != "User-Agent" && strings.EqualFold(key, "User-Agent"):
			return fmt.Errorf("client: the header key %q is not what is decided for: use Header.Set, which writes it %q", key, "User-Agent")
		case len(key) == len("Host") && key != "Host" && strings.EqualFold(key, "Host"):
			return fmt.Errorf("client: the header key %q is not what is decided for: set Request.Host", key)
		}
	}
	return nil
}

// toSend is req, or a copy of it with what the wire needs: our User-Agent where it has
// none, and the canonical spelling of the origin that is decided for.
func (t *Transport) toSend(req *http.Request, o fetch.Origin, hasAgent bool) *http.Request {
	out := req
	if !hasAgent && t.UserAgent != "" {
		out = shallowCopy(out, req)
		if out.Header = req.Header.Clone(); out.Header == nil {
			out.Header = make(http.Header, 1)
		}
		out.Header.Set("User-Agent", t.UserAgent)
	}
	if scheme := req.URL.Scheme; scheme != "http" && scheme != "https" || !sameHost(req.URL.Host, o.URLHost(), scheme) {
		out = shallowCopy(out, req)
		u := *req.URL
		u.Scheme, u.Host = strings.ToLower(scheme), o.URLHost()
		out.URL = &u
		if req.Host == req.URL.Host {
			out.Host = "" // net/http takes it from the URL
		}
	}
	if out.Host != "" && out.Host != req.URL.Host && !sameHost(out.Host, o.HostField(), req.URL.Scheme) {
		out = shallowCopy(out, req)
		out.Host = o.HostField()
	}
	return out
}

// shallowCopy is out, made a copy of req if it is req itself.
func shallowCopy(out, req *http.Request) *http.Request {
	if out == req {
		out = new(http.Request)
		*out = *req
	}
	return out
}

// sameHost says whether a host as written reaches and names what canonical does. A
// difference of ASCII case or the scheme's own port changes neither, so it may stay as
// written. Anything else may not: for some spellings of an internationalised name
// net/http dials one host and names another in the Host field.
func sameHost(written, canonical, scheme string) bool {
	if written == canonical {
		return true
	}
	if scheme == "https" {
		written = strings.TrimSuffix(written, ":443")
	} else {
		written = strings.TrimSuffix(written, ":80")
	}
	// canonical is ASCII: with equal lengths no other letter can fold to one of its.
	return len(written) == len(canonical) && strings.EqualFold(written, canonical)
}
