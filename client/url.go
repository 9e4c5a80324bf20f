package client

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/robotsgate/robotsgate/client/internal/say"
	"github.com/robotsgate/robotsgate/fetch"
)

// isOther reports whether u has another scheme than http and https. A URL built by hand may
// have "HTTP" or no scheme at all; neither is a way around the gate.
func isOther(u *url.URL) bool {
	return u != nil && u.Scheme != "http" && u.Scheme != "https" && isOtherScheme(u.Scheme)
}

// isOtherScheme is what seldom has to be looked at, apart so that isOther is inlined.
func isOtherScheme(scheme string) bool {
	return scheme != "" && !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https")
}

func schemeError(u *url.URL) error {
	return fmt.Errorf("client: URL %q is not of scheme http or https: robots.txt does not cover it", say.Cut(u.Redacted()))
}

// originOf returns the origin that req names on the wire: its Host counts before the URL's.
func originOf(req *http.Request) (fetch.Origin, error) {
	switch {
	case req.URL == nil:
		return fetch.Origin{}, errors.New("client: request has no URL")
	case req.URL.Opaque != "":
		return fetch.Origin{}, fmt.Errorf("client: URL %q is opaque: give it a host and a path to find robots.txt by", say.Cut(req.URL.Redacted()))
	case req.URL.Host == "":
		return fetch.Origin{}, fmt.Errorf("client: URL %q has no host to ask for robots.txt: no Host in request URL", say.Cut(req.URL.Redacted()))
	case isOther(req.URL):
		if err := ftpMisuse(req.URL); err != nil {
			return fetch.Origin{}, err
		}
	}
	o, err := fetch.OriginOfRequest(req)
	if err != nil {
		return fetch.Origin{}, fmt.Errorf("client: %w", err)
	}
	return o, nil
}

// ftpMisuse returns why no request for an ftp URL is sent, or nil. Its path becomes lines of
// commands, which a line break ends, and it has no query (RFC 1738 §3.2, §3.2.2).
func ftpMisuse(u *url.URL) error {
	switch {
	case strings.ContainsAny(u.Path+u.RawPath, "\r\n\x00"):
		return fmt.Errorf("client: the path of URL %q holds %%0D, %%0A or %%00: FTP cannot ask for it", say.Cut(u.Redacted()))
	case u.ForceQuery || u.RawQuery != "":
		return fmt.Errorf("client: URL %q: FTP knows no query, so write the question mark as %%3F",
			say.Cut(u.Redacted()))
	}
	return nil
}

var errConnect = errors.New("client: CONNECT asks for a tunnel, which robots.txt cannot rule on: " +
	"use a dialer, or the Proxy of an http.Transport")
