package lint

import (
	"mime"
	"net/url"
	"path"
	"strings"
)

// maxRedirects is how many redirects a crawler follows (RFC 9309 §2.3.1.2).
const maxRedirects = 5

// Answer is the result of asking for a robots.txt file, as plain data. The zero value is a
// request without an answer.
type Answer struct {
	URL         string   // asked for
	StatusCode  int      // after redirects; 0: no answer came
	ContentType string   // header field; "" if there was none
	RetryAfter  string   // header field; "" if there was none
	Redirects   []string // URLs redirected to, in order; relative ones are resolved
	Body        []byte   // after content decoding
	Truncated   bool     // the file is longer than Body
	Misnamed    int      // status code of /robot.txt at the same origin; 0 if it was not asked for
}

// Findings returns the mistakes in the answer, and in its body if a crawler would read it
// (2xx).
func (a Answer) Findings() []Finding {
	var r report
	asked, err := url.Parse(a.URL)
	if err != nil {
		asked = &url.URL{}
	}
	if err == nil {
		r.name(asked.Path)
	}
	// Only if /robots.txt is missing: otherwise the other file does no harm.
	if a.Misnamed >= 200 && a.Misnamed < 300 && a.unavailable() {
		r.add("RT002", nil, 0, "robots.txt",
			"/robot.txt answers %d, but crawlers ask for /robots.txt, which answers %d", a.Misnamed, a.StatusCode)
	}
	last := a.redirects(&r, asked)
	a.status(&r)
	if a.StatusCode < 200 || a.StatusCode > 299 { // the body is an error page, in which no crawler looks for rules
		return r.sorted()
	}
	if page := last != asked && path.Base(last.Path) != "robots.txt"; page {
		r.add("RT008", nil, 0, "",
			"the answer comes from %s after a redirect, which is not a robots.txt file", quote(last.String()))
	}
	a.contentType(&r)
	// The fetcher stops at the limit, so the length of the body does not show it.
	if a.Truncated && len(a.Body) <= maxBytes { // a longer one reports itself
		r.add("RT110", nil, 0, "",
			"the file goes on after %d bytes, where crawlers stop; Yandex takes the whole site for open", len(a.Body))
	}
	return append(r.sorted(), check(a.Body, known(asked))...)
}

// known returns u if it has a host, else nil.
func known(u *url.URL) *url.URL {
	if u.Host == "" {
		return nil
	}
	return u
}

func (a Answer) unavailable() bool { return a.StatusCode >= 400 && a.StatusCode < 500 }

// status checks the status code (RFC 9309 §2.3.1). The trap is that 401 and 403,
// which were meant to lock crawlers out, are to them as if there were no file,
// while a server in trouble locks all of them out but Yandex.
func (a Answer) status(r *report) {
	switch code := a.StatusCode; {
	case code >= 200 && code < 300, code == 404, code == 410: // the file, or plainly none
	case code == 0:
		r.add("RT414", nil, 0, "",
			"no answer came, and crawlers then take the whole site for closed (RFC 9309 §2.3.1.4)")
	// Google counts 429 with the server errors, RFC 9309 with the other 4xx.
	case code == 429:
		r.add("RT414", nil, 0, "",
			"status 429 closes the whole site for Google and opens it by RFC 9309 §2.3.1.3%s", a.retry())
	case code >= 400 && code < 500:
		r.add("RT414", nil, 0, "",
			"status %d opens the whole site, as if there were no file (RFC 9309 §2.3.1.3)", code)
	case code >= 500:
		r.add("RT414", nil, 0, "",
			"status %d closes the whole site for RFC 9309 and Google, and opens it for Yandex%s", code, a.retry())
	default:
		r.add("RT414", nil, 0, "",
			"status %d leads to no file, and crawlers then take the whole site for open", code)
	}
}

func (a Answer) retry() string {
	if a.RetryAfter == "" {
		return ""
	}
	return "; Retry-After is " + quote(a.RetryAfter).String()
}

// redirects checks the way to the answer and returns its last URL. RFC 9309
// §2.3.1.2 asks crawlers to follow five, to any host, and binds the rules to the
// origin that was asked; Yandex follows to other sites, Amazon lists a redirect
// among the fetches that failed.
func (a Answer) redirects(r *report, asked *url.URL) *url.URL {
	if n := len(a.Redirects); n > maxRedirects {
		r.add("RT415", nil, 0, "",
			"%s lead to the answer, and crawlers need not follow more than %d (RFC 9309 §2.3.1.2)",
			count(n, "redirect"), maxRedirects)
	}
	seen := map[string]bool{asked.String(): true}
	at := asked
	crossed := false
	for _, to := range a.Redirects {
		next, err := at.Parse(to)
		if err != nil {
			r.add("RT415", nil, 0, "", "the redirect to %s leads nowhere", quote(to))
			break
		}
		// At most one of these for each hop, and a change of host only once: further
		// hops on the other host are its own affair.
		switch {
		case seen[next.String()]:
			r.add("RT415", nil, 0, "", "the redirects come back to %s", quote(next.String()))
		case !strings.EqualFold(next.Hostname(), at.Hostname()) && !crossed:
			crossed = true
			r.add("RT415", nil, 0, "",
				"the file is redirected to another host, %s: its rules bind %s all the same, and not every crawler follows",
				quote(next.Host), quote(asked.Host))
		case at.Scheme == "https" && next.Scheme == "http":
			r.add("RT415", nil, 0, "",
				"the file is redirected from https to http, where any host on the way can change it")
		case at.Scheme == "http" && next.Scheme == "https" && asked.Hostname() == next.Hostname():
			r.add("RT415", nil, 0, "",
				"http has no file of its own, only a redirect to https: crawlers that do not follow find none")
		}
		seen[next.String()] = true
		at = next
	}
	return at
}

// contentType checks that the body is called what it is (RFC 9309 §2.3).
func (a Answer) contentType(r *report) {
	// Crawlers in the wild parse any type; the strict ones do not, and what a server
	// takes for HTML it may also compress, rewrite or decorate.
	mediaType, params, err := mime.ParseMediaType(a.ContentType)
	charset := strings.ToLower(params["charset"])
	switch {
	case a.ContentType == "":
		r.add("RT014", nil, 0, "Content-Type: text/plain; charset=utf-8", "the answer has no content type")
	case err != nil || mediaType != "text/plain":
		r.add("RT014", nil, 0, "Content-Type: text/plain; charset=utf-8",
			"the answer's content type is %s, not text/plain", quote(a.ContentType))
	case charset != "" && charset != "utf-8" && charset != "us-ascii":
		r.add("RT014", nil, 0, "Content-Type: text/plain; charset=utf-8",
			"the answer's character set is %s, not UTF-8", quote(params["charset"]))
	}
}
