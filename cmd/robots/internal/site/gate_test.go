package site

import (
	"errors"
	"net/http"
	"runtime"
	"testing"
	"time"
	"weak"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

func answeringGate() *Gate {
	g := &Gate{Transport: &client.Transport{Fetcher: new(fetch.Fetcher), Cache: new(cache.Cache)}}
	g.Answers, _ = lru.New[AnswerOf, *answer.Answer](maxAnswers)
	return g
}

// However late the answer, the seconds until the next try count from when the site was asked.
func TestRetryCountsFromTheFetch(t *testing.T) {
	for _, ago := range []time.Duration{0, 700 * time.Millisecond, 30 * time.Second, time.Hour} {
		res := &fetch.Result{
			Policy: policy.Unreachable(), StatusCode: http.StatusServiceUnavailable, Err: errors.New("status 503"),
			Time: time.Now().Add(-ago), RetryAfter: 2 * time.Minute,
		}
		if a := answeringGate().Answer(fetch.Origin{}, res); a.Retry == nil || *a.Retry != 120 {
			t.Errorf("%s ago: %v, want 120", ago, a)
		}
	}
}

// An answer that is kept keeps no rules in memory that the Cache has dropped.
func TestKeptAnswersHoldNoRules(t *testing.T) {
	g := answeringGate()
	ask := func() weak.Pointer[policy.Policy] {
		p := policy.Parse([]byte("User-agent: *\nDisallow: /private\n"))
		res := &fetch.Result{Policy: p, StatusCode: http.StatusOK, Time: time.Now()}
		if first, again := g.Answer(fetch.Origin{}, res), g.Answer(fetch.Origin{}, res); *first.Lifetime != *again.Lifetime {
			t.Errorf("%v and %v", first, again)
		}
		return weak.Make(p)
	}
	p := ask()
	runtime.GC()
	if g.Answers.Len() != 1 || p.Value() != nil {
		t.Errorf("%d answers; the rules are there: %v", g.Answers.Len(), p.Value() != nil)
	}
}
