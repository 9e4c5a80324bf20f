package lint

import (
	"bytes"
	"mime"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/robotsgate/robotsgate/policy/internal/scan"
	"github.com/robotsgate/robotsgate/policy/lint/internal/model"
)

// maxRedirects is how many redirects a crawler follows (RFC 9309 §2.3.1.2).
const maxRedirects = 5

// Answer is the result of asking for a robots.txt file, as plain data. The zero value is a request without an answer.
type Answer struct {
	URL         string   // asked for. If empty, its name is not judged.
	StatusCode  int      // after redirects. If zero, no answer came.
	ContentType string   // header field. If empty, there was none.
	RetryAfter  string   // header field. If empty, there was none.
	Redirects   []string // URLs redirected to, in order; relative ones are resolved. If nil, there was none.
	Body        []byte   // after content decoding. If nil, it is empty.
	Truncated   bool     // the file is longer than Body, whose last line need not be whole
	Misnamed    []byte   // body of /robot.txt at the same origin. If nil, it was not asked for or answered no 2xx.
}

// Findings returns the mistakes in the answer, and in its body if a crawler would read it (2xx).
func (a Answer) Findings() []Finding {
	var r report
	asked := a.asked()
	judgeName(&r, asked.Path)
	// If /robots.txt exists the other file does no harm. Many sites answer every path with some page: only a file that
	// names a crawler is an attempt at robots.txt.
	if f := model.Read(a.Misnamed); a.StatusCode/100 == 4 && len(f.Groups) > 0 && !f.HTML {
		r.whole("RT002", "/robot.txt has rules, but crawlers ask for /robots.txt, which answers %d", a.StatusCode)
	}
	last := a.redirects(&r, asked)
	a.status(&r)
	if a.StatusCode/100 != 2 { // the body is an error page, in which no crawler looks for rules
		return r.sorted()
	}
	body := a.Body
	if a.Truncated {
		body = body[:min(len(body), scan.Limit)]
		if end := bytes.LastIndexAny(body, "\r\n"); end >= 0 { // behind it is half a line, which crawlers drop
			body = body[:end+1]
		}
	}
	f := model.Read(body)
	// What a page is called, and where it came from, is no second mistake.
	if !f.HTML {
		if last != asked && path.Base(last.Path) != "robots.txt" {
			r.whole("RT008", "the answer comes from %s after a redirect, which is not a robots.txt file", last.String())
		}
		a.contentType(&r)
		if a.Truncated {
			r.whole("RT110", "the file goes on after %d bytes, where crawlers stop; Yandex takes the whole site for open",
				min(len(a.Body), scan.Limit))
		}
	}
	return append(r.sorted(), check(f, asked)...)
}

// asked returns the URL, or an empty one if it is none.
func (a Answer) asked() *url.URL {
	u, err := url.Parse(a.URL)
	if err != nil {
		return &url.URL{}
	}
	return u
}

// status checks the status code (RFC 9309 §2.3.1). The trap is that 401 and 403, which were meant to lock crawlers out,
// are to them as if there were no file, while a server in trouble locks all of them out but Yandex.
func (a Answer) status(r *report) {
	retry := ""
	if a.RetryAfter != "" {
		retry = "; Retry-After is " + model.Quote(a.RetryAfter)
	}
	switch code := a.StatusCode; {
	case code/100 == 2, code == 404, code == 410: // the file, or plainly none
	case code == 0:
		r.whole("RT414", "no answer came, and crawlers then take the whole site for closed (RFC 9309 §2.3.1.4)")
	// Google counts 429 with the server errors, RFC 9309 with the other 4xx.
	case code == 429:
		r.whole("RT414", "status 429 closes the whole site for Google and opens it by RFC 9309 §2.3.1.3%v", retry)
	case code/100 == 4:
		r.whole("RT414", "status %d opens the whole site, as if there were no file (RFC 9309 §2.3.1.3)", code)
	case code/100 == 5:
		r.whole("RT414", "status %d closes the whole site for RFC 9309 and Google, and opens it for Yandex%v", code, retry)
	case slices.Contains([]int{301, 302, 303, 307, 308}, code):
		r.whole("RT414", "status %d leads to no file, and crawlers then take the whole site for open", code)
	default: // package fetch reads it so
		r.whole("RT414", "status %d says nothing about the file, and a careful crawler then takes the whole site for closed", code)
	}
}

// redirects checks the way to the answer and returns its last URL. RFC 9309 §2.3.1.2 asks crawlers to follow five, to
// any host, and binds the rules to the origin that was asked; Yandex follows to other sites, Amazon lists a redirect
// among the fetches that failed.
func (a Answer) redirects(r *report, asked *url.URL) *url.URL {
	if n := len(a.Redirects); n > maxRedirects {
		r.whole("RT415", "%v lead to the answer, and crawlers need not follow more than %d (RFC 9309 §2.3.1.2)", model.Count(n,
			"redirect"), maxRedirects)
	}
	seen := map[string]bool{asked.String(): true}
	at := asked
	crossed := false
	for _, to := range a.Redirects {
		next, err := at.Parse(to)
		if err != nil {
			r.whole("RT415", "the redirect to %s leads nowhere", to)
			break
		}
		// At most one of these for each hop, and a change of host only once: further
		// hops on the other host are its own affair.
		switch {
		case seen[next.String()]:
			r.whole("RT415", "the redirects come back to %s", next.String())
		case !strings.EqualFold(next.Hostname(), at.Hostname()) && !crossed:
			crossed = true
			r.whole("RT415",
				"the file is redirected to another host, %s: its rules still bind %s, and not every crawler follows",
				next.Host, asked.Host)
		case at.Scheme == "https" && next.Scheme == "http":
			r.whole("RT415", "the file is redirected from https to http, where any host on the way can change it")
		case at.Scheme == "http" && next.Scheme == "https" && asked.Hostname() == next.Hostname():
			r.whole("RT415", "http has no file of its own, only a redirect to https: crawlers that do not follow find none")
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
		r.whole("RT014", "the answer has no content type")
	case err != nil || mediaType != "text/plain":
		r.whole("RT014", "the answer's content type is %s, not text/plain", a.ContentType)
	case charset != "" && charset != "utf-8" && charset != "us-ascii":
		r.whole("RT014", "the answer's character set is %s, not UTF-8", params["charset"])
	}
}

// Name judges the name of a file on disk or the path of a URL. Only the last element counts.
// A name that is no attempt at robots.txt, such as "draft.txt", has no findings.
func Name(name string) []Finding {
	var r report
	judgeName(&r, name)
	return r.sorted()
}

func judgeName(r *report, name string) {
	base := path.Base(strings.ReplaceAll(name, `\`, "/"))
	switch {
	case base == "robots.txt":
	case strings.EqualFold(base, "robots.txt"):
		r.whole("RT001", "the file is named %s, and names are case-sensitive (RFC 9309 §2.3)", base)
	case strings.EqualFold(base, "robot.txt"):
		r.whole("RT002", "the file is named %s, which no crawler asks for (RFC 9309 §2.3)", base)
	}
}
