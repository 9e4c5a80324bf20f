package serve

// What the handlers have in common in reading a question and in telling what is wrong with it. Each error
// here is a web.Problem, which names the parameter or field that is at fault.
//
// Questions are read strictly. One that two programs understand differently would be a permission for something else
// than was asked about: so no name is ignored, none may be there twice, and nothing is guessed.

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/web"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

const (
	mediaJSON   = "application/json"
	mediaNDJSON = "application/x-ndjson"
)

// parameters reads a query, or a form in a body, in which each of names may be once, and nothing else. A name
// that is misspelt must not be answered as if it were not there.
func parameters(raw string, names ...string) (url.Values, error) {
	// A semicolon is a part of the value for browsers (URL Standard §5.1), and an error for net/url.
	raw = strings.ReplaceAll(raw, ";", "%3B")
	query, err := url.ParseQuery(raw)
	if err != nil {
		return nil, web.BadParameter("query", "the query: %v", err)
	}
	for name, values := range query {
		switch {
		case !slices.Contains(names, name):
			return nil, web.BadParameter(answer.Brief(name),
				"no parameter is called %s: there are %s. In the value of another, write & as %%26",
				answer.Quoted(name), cmp.Or(strings.Join(names, ", "), "none"))
		case len(values) > 1:
			return nil, web.BadParameter(name, "%s is given %d times", name, len(values))
		}
	}
	return query, nil
}

// siteOf reads a URL and its origin. One that nothing would send is a problem here already: its site must not have a
// visit for a typing error. Every other one has a decision by an empty policy.
func siteOf(name, text string) (*url.URL, fetch.Origin, error) {
	if text == "" {
		return nil, fetch.Origin{}, web.BadParameter(name, "%s is missing", name)
	}
	u, o, err := answer.ReadSite(policy.RFC9309, text)
	if err == nil {
		_, err = client.DecideWith(&policy.Policy{}, "*", u)
	}
	if err != nil {
		return nil, o, noOrigin(err)
	}
	return u, o, nil
}

// noOrigin is the problem of a URL: 422, as the parameter is there and what it says cannot be asked about.
func noOrigin(err error) *web.Problem {
	return web.NewProblem(http.StatusUnprocessableEntity, "url", "%v", err)
}

// crossSite reports whether a browser says that another site has it ask (Fetch Metadata). Programs send no
// such field. "none" is an address that was typed, or a bookmark.
func crossSite(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return site != "" && site != "same-origin" && site != "none"
}

// accepts returns the problem of a body that is of none of these media types, or coded. A type of "" admits a
// body that states none, and is not named in the problem. The type that "curl -d" sends by itself is a form's: taken
// for lines or JSON, it would hide that curl has removed the line ends.
func accepts(r *http.Request, types ...string) error {
	if coding := strings.Join(r.Header["Content-Encoding"], ", "); coding != "" && !strings.EqualFold(coding, "identity") {
		// Unpacked, a small body may be of any size.
		return web.NewProblem(http.StatusUnsupportedMediaType, "media-type",
			"the Content-Encoding is %s: send the body as it is", answer.Quoted(coding))
	}
	is, _, _ := strings.Cut(strings.Join(r.Header["Content-Type"], ", "), ";")
	if slices.ContainsFunc(types, func(t string) bool { return strings.EqualFold(strings.TrimSpace(is), t) }) {
		return nil
	}
	return web.NewProblem(http.StatusUnsupportedMediaType, "media-type", "the Content-Type is %s, not %s",
		answer.Quoted(is), strings.Join(slices.DeleteFunc(types, func(t string) bool { return t == "" }), " or "))
}

// problemOf is the problem that an error is. What is none is of the moment: the lookup was given up, or the cache is
// closed. That is a 503, never a refusal: a client that took it for one would leave a site out for good.
func problemOf(err error) *web.Problem {
	if p, ok := errors.AsType[*web.Problem](err); ok {
		return p
	}
	if errors.Is(err, web.ErrFull) {
		return web.Busy()
	}
	return web.Unavailable(err.Error())
}

// readObject decodes a body that is one JSON object. A name has one spelling, and is there once: another reader of the
// same body might take another one.
func readObject(body []byte, into any) error {
	err := answer.ReadObject(body, into, json.RejectUnknownMembers(true))
	if e, ok := errors.AsType[*answer.FieldError](err); ok {
		return web.BadParameter(e.Name, "%v", e)
	}
	if err != nil {
		return web.BadParameter("body", "the body is no question: %v", err)
	}
	return nil
}
