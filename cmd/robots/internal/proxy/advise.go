package proxy

import (
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// adviser sends what its judge refuses through a gate that allows all, and tells of it. That gate keeps the pace of a
// site without a Crawl-delay.
type adviser struct {
	*judge
	server *Server // whose answers are reported
	free   client.Transport
}

func newAdviser(j *judge, s *Server) *adviser {
	g := j.gate
	return &adviser{j, s, client.Transport{
		Base: g.Base, Dialect: g.Dialect, Fetcher: g.Fetcher, Cache: g.Cache, Pacer: g.Pacer, Sign: g.Sign,
		Override: func(fetch.Origin) *policy.Policy { return new(policy.Policy) },
	}}
}

// RoundTrip keeps the body open for its second try: nothing of it is read for what is refused.
func (a *adviser) RoundTrip(req *http.Request) (*http.Response, error) {
	if req = req.WithContext(req.Context()); req.Body != nil && req.Body != http.NoBody {
		req.Body = io.NopCloser(req.Body) // httputil.ReverseProxy closes it
	}
	res, err := a.judge.RoundTrip(req)
	if _, refused := errors.AsType[*client.DisallowedError](err); !refused {
		return res, err
	}
	why := explain(err, a.gate.Agreed).Detail
	a.server.Count(Advised)
	a.server.Log.Info("would be refused", "method", req.Method, "url", fmt.Sprintf("%.256s", req.URL.Redacted()), "because", why)
	if res, err = a.free.RoundTrip(req); err == nil {
		res.Header.Set("Robotsgate-Advice", fmt.Sprintf("%+.200q", why))
	}
	return res, err
}
