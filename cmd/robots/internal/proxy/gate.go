package proxy

// How a Server obeys robots.txt: Obey has it send through a site.Gate.

import (
	"cmp"
	"net/http"
	"sync"
	"time"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/site"
	"github.com/robotsgate/robotsgate/policy"
)

// Obeying is how a proxy obeys robots.txt, as its flags say.
type Obeying struct {
	answer.Asker
	Each   bool // the product token in each client's User-Agent field is decided for
	Paced  bool // the delay that each site asks for is kept
	Advise bool // what is refused passes
}

// Obey has s send its requests through g, which has its settings of RunsOn already. Requests for robots.txt have the
// transport of before.
func (s *Server) Obey(g *site.Gate, o Obeying) {
	g.Uses, s.agreed = o.Uses, g.Agreed
	if o.Paced {
		g.Pacer = new(client.Pacer)
		g.Share()
	}
	base := g.Base.(*http.Transport).Clone()
	base.DisableCompression = true // bodies pass as they are
	base.MaxIdleConns, base.MaxIdleConnsPerHost = 1024, 64
	base.MaxResponseHeaderBytes = 1 << 20
	base.ExpectContinueTimeout = 5 * time.Second // after that, we send 100 in the site's place
	g.Base = base
	j := &judge{Obeying: o, gate: g}
	if s.Gate = j; o.Advise {
		s.Gate = newAdviser(j, s)
	}
}

// judge sends requests through the gate that reads robots.txt as the crawler does which they are judged for.
type judge struct {
	Obeying
	gate  *site.Gate
	once  sync.Once
	gates map[policy.Dialect]*client.Transport
}

// init makes a gate for each dialect with the first request: until then, others fill that of the flags.
func (j *judge) init() {
	g := j.gate
	j.gates = map[policy.Dialect]*client.Transport{g.Fetcher.Dialect: g.Transport}
	for _, d := range answer.Dialects {
		if j.Each && j.gates[d] == nil {
			j.gates[d] = &client.Transport{Base: g.Base, Token: g.Token, Uses: g.Uses, Override: g.Override,
				Fetcher: g.FetcherFor(d), Cache: g.Cache, Pacer: g.Pacer, Sign: g.Sign, Trace: g.Trace}
		}
	}
}

func (j *judge) RoundTrip(req *http.Request) (*http.Response, error) {
	j.once.Do(j.init)
	k := j.Asker // a copy
	if j.Each {
		k.SetAgent(cmp.Or(policy.ProductToken(req.UserAgent()), answer.AnyOther))
	}
	gate, token := j.gates[k.Dialect], k.Agent
	if k.FallsBack() {
		p, err := gate.Lookup(req.Context(), req.URL)
		if err != nil {
			if req.Body != nil {
				req.Body.Close()
			}
			return nil, err
		}
		token = k.Obeys(p)
	}
	return gate.RoundTrip(req.WithContext(client.WithToken(req.Context(), token)))
}
