package serve

// GET /v1/decide and /v1/robots, and what authz and turns ask with as well: about and judge for one URL. Every handler
// comes to a robots.txt by this file: about for a question, get for a line of a stream, whole for those who show the
// file, which are the page and /v1/robots.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/web"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// asker is k, with the agent and the dialect of a question if these are not empty. Its Agreed is the operator's, and no
// question changes it: an agreement is between the operator and a site, and no stranger may claim it.
func asker(k answer.Asker, agent, as string) (answer.Asker, error) {
	if len(agent) > maxAgent {
		return k, web.BadParameter("agent", "agent is longer than %d bytes", maxAgent)
	}
	if agent != "" {
		if err := k.SetAgent(agent); err != nil {
			return k, web.BadParameter("agent", "agent: %v", err)
		}
	}
	if as != "" {
		if err := k.SetDialect(as); err != nil {
			return k, web.BadParameter("as", "as: %v", err)
		}
	}
	return k, nil
}

// single is asker for what one dialect answers. Of as=all it says why not.
func single(k answer.Asker, agent, as, why string) (answer.Asker, error) {
	k, err := asker(k, agent, as)
	if err == nil && k.All {
		err = web.BadParameter("as", "%s", why)
	}
	return k, err
}

// asked is a question about one URL, and the robots.txt that answers it. about makes one, and judge decides it.
type asked struct {
	answer.Asker
	begin  time.Time
	text   string
	url    *url.URL
	origin fetch.Origin
	result *fetch.Result
	until  time.Time // when it is asked for again

	release func() // for all dialects: see whole
}

// about finds what is to be known of a URL. If agent or as is empty, it is that of the service. For all dialects the
// file itself is needed. No site is asked for a question with a fault.
func (v *Service) about(ctx context.Context, text, agent, as string) (q asked, err error) {
	q.begin, q.text = time.Now(), text
	if q.Asker, err = asker(v.Asker, agent, as); err != nil {
		return q, err
	}
	if q.url, q.origin, err = siteOf("url", text); err != nil {
		return q, err
	}
	ctx, cancel := context.WithTimeout(ctx, v.Limits.Question)
	defer cancel()
	if q.All {
		q.result, q.until, q.release, err = v.whole(ctx, q.origin, costOfParse)
	} else {
		q.result, q.until, err = v.get(ctx, v.gate.Cache, q.origin, q.Dialect)
	}
	return q, err
}

// judge decides by each reading that q wants, with all that the decision rests on. For one dialect there is one.
func (v *Service) judge(q asked) (verdicts []*answer.Verdict, err error) {
	var outcomes []string
	for _, r := range q.Readings(q.result) {
		verdict, err := q.Check(q.url, r, answer.New(q.origin, r, q.until))
		if err != nil {
			return nil, noOrigin(err)
		}
		verdict.Number = 1
		verdict.About(q.text, q.url)
		verdicts, outcomes = append(verdicts, verdict), append(outcomes, verdict.Outcome())
	}
	v.metrics.decided(q.begin, outcomes...)
	return verdicts, nil
}

// decide answers GET /v1/decide with what "robots check --json" writes.
func (v *Service) decide(w http.ResponseWriter, r *http.Request, query url.Values) error {
	q, err := v.about(r.Context(), query.Get("url"), query.Get("agent"), query.Get("as"))
	if err != nil {
		return err
	}
	media, release := mediaJSON, func() {}
	if q.All {
		media, release = mediaNDJSON, q.release
	}
	return v.answer(w, http.StatusOK, media, release, func(to io.Writer) error {
		verdicts, err := v.judge(q)
		if err != nil {
			return err
		}
		var out shell.Output
		for _, verdict := range verdicts {
			out.Verdict(verdict)
		}
		_, err = out.WriteTo(to)
		return err
	})
}

// whole returns what o serves, with its file, as RFC 9309 reads it, and gets room for the work that follows, which
// takes cost bytes for each. It waits for its turn before it asks: a thousand questions about as many sites would have
// a gigabyte of files. release gives back both, may be called twice, and is never nil. With an error there is nothing
// to release.
func (v *Service) whole(
	ctx context.Context, o fetch.Origin, cost int64,
) (res *fetch.Result, until time.Time, release func(), err error) {
	if v.wholes.Acquire(ctx, 1) != nil {
		return nil, until, func() {}, web.Busy()
	}
	done := func() {}
	release = sync.OnceFunc(func() { done(); v.wholes.Release(1) })
	if res, until, err = v.get(ctx, v.files, o, policy.RFC9309); err == nil {
		done, err = v.admit(ctx, cost*int64(len(res.Body)))
	}
	if err != nil {
		release()
	}
	return res, until, release, err
}

// known is the Source of a question about what a Cache holds in a dialect, which asks no site.
func (v *Service) known(d policy.Dialect) *cache.Source {
	src := v.gate.Source(nil)
	src.Dialect = d
	return src
}

// get asks a Cache for what a dialect reads. What it fetches is counted.
func (v *Service) get(
	ctx context.Context, c *cache.Cache, o fetch.Origin, d policy.Dialect,
) (res *fetch.Result, until time.Time, err error) {
	// Timed inside: a flight of the Cache is for many questions, and may outlive the one that began it.
	src := v.gate.Source(func(ctx context.Context, o fetch.Origin, prev *fetch.Result) (*fetch.Result, error) {
		begin := time.Now()
		res, err := v.gate.Fetcher.Fetch(ctx, o, prev)
		v.fetched(ctx, o, res, time.Since(begin), err)
		return res, err
	})
	src.Dialect = d
	res, until, err = c.Get(ctx, o, src)
	switch {
	case errors.Is(err, fetch.ErrNotPublic): // it was not asked, and will not be: that is an answer
		failed := &fetch.Failure{
			Text: err.Error() + ": robots serve --private asks there, too", Cause: "destination_ip_prohibited",
		}
		return &fetch.Result{Policy: policy.Unreachable(), Err: failed, Time: time.Now(), Dialect: d}, until, nil
	case err != nil:
		err = fmt.Errorf("robots.txt of %v was not read: %w", o, err)
	}
	return res, until, err
}

// robots answers GET /v1/robots with what "robots fetch --json" writes. The file is read anew, and written as JSON.
func (v *Service) robots(w http.ResponseWriter, r *http.Request, query url.Values) error {
	k, err := single(v.Asker, "", query.Get("as"), "as=all is for decisions")
	if err != nil {
		return err
	}
	_, o, err := siteOf("origin", query.Get("origin"))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), v.Limits.Question)
	defer cancel()
	res, until, release, err := v.whole(ctx, o, 2*costOfParse)
	if err != nil {
		return err
	}
	return v.answer(w, http.StatusOK, mediaJSON, release, func(to io.Writer) error {
		var out shell.Output
		res = res.In(k.Dialect)
		out.JSON(answer.NewFetched(res, answer.New(o, res, until)))
		_, err := out.WriteTo(to)
		return err
	})
}

// authzPath is what gateways ask, with any method: Envoy keeps that of the original request, and puts the original
// path behind this one.
const authzPath = "/authz"

// isAuthz looks at the path as it was sent. In r.URL.Path it is unescaped, and what Envoy puts behind it may
// look like another path.
func isAuthz(r *http.Request) bool {
	rest, ok := strings.CutPrefix(r.RequestURI, authzPath)
	return ok && (rest == "" || rest[0] == '/' || rest[0] == '?')
}

// authorize answers gateways: 200, or 403 with the reason. All else means that there is no answer, and no gateway
// lets a request pass then. nginx makes a 500 of it for its client, so a refusal is never anything but a 403.
//
// With Gateways, those in the --trusted networks may ask under any Host, since Envoy sends that of the original
// request. All others are held to the names of the service, as in own.
func (v *Service) authorize(w http.ResponseWriter, r *http.Request) error {
	if !v.Gateways || !v.Trusted.Trusts(r) {
		if p := v.Guard.CheckHost(r); p != nil {
			return p
		}
	}
	if p := v.Guard.CheckToken(w, r); p != nil {
		return p
	}
	text, p := v.Trusted.Target(r, authzPath)
	if p != nil {
		return p
	}
	if answer.HasDots(text) { // the gateway passes it on as it is, and not as it would be asked about
		const why = "the path has a dot segment, which servers resolve in different ways"
		web.SetProxyStatus(w.Header(), "http_request_denied", why)
		return web.NewProblem(http.StatusForbidden, "url", why)
	}
	q, err := v.about(r.Context(), text, policy.ProductToken(r.UserAgent()), "")
	if err != nil {
		return err
	}
	verdicts, err := v.judge(q)
	if err != nil {
		return err
	}
	verdict := verdicts[0]
	if verdict.Allowed {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		return nil
	}
	refusal := web.NewProblem(http.StatusForbidden, verdict.Kind(), "%s", verdict.Because())
	v.Log.Debug("refused", "url", text, "agent", verdict.Agent, "because", refusal.Detail)
	if verdict.Unreachable() {
		refusal.RetryAfter = verdict.Robots.AskAgain()
	}
	// RFC 9209 §2.3.13, for what stands behind the gateway: nginx passes on fields of this answer, and not its body.
	web.SetProxyStatus(w.Header(), "http_request_denied", refusal.Detail)
	return refusal
}
