package main

import (
	"fmt"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// answer is what a server said when asked for robots.txt, as --json writes it.
type answer struct {
	URL       string    `json:"url"`
	Status    int       `json:"status,omitempty"` // 0: no answer
	Redirects []string  `json:"redirects,omitempty"`
	Fetched   time.Time `json:"fetched"`
	Age       int64     `json:"age_seconds"`
	Lifetime  int64     `json:"lifetime_seconds"`
	Truncated bool      `json:"truncated,omitempty"`
	Error     string    `json:"error,omitempty"`
}

// newAnswer takes from res what a script may want to know. The file itself is left out:
// it is long, and "robots fetch" gives it.
func newAnswer(o fetch.Origin, res *fetch.Result) *answer {
	a := &answer{
		URL:       o.RobotsURL().String(),
		Status:    res.StatusCode,
		Redirects: res.Redirects,
		Fetched:   res.Time.UTC().Truncate(time.Second),
		Age:       int64(max(time.Since(res.Time), 0) / time.Second),
		Lifetime:  int64(lifetimeOf(res) / time.Second),
		Truncated: res.Truncated,
	}
	if res.Err != nil {
		a.Error = res.Err.Error()
	}
	return a
}

// lifetimeOf is how long res holds. Date, which an age may be reckoned from, has whole
// seconds; so the time of receipt gets no more, or the answer seems older than it is.
func lifetimeOf(res *fetch.Result) time.Duration {
	r := *res
	r.Time = res.Time.Truncate(time.Second)
	d, _ := cache.FreshnessLifetime(&r)
	return d
}

// String is the answer in one phrase, safe to print.
func (a *answer) String() string {
	status := "no answer"
	if a.Status != 0 {
		status = fmt.Sprint("status ", a.Status)
	}
	if a.Truncated {
		status += ", cut at the size limit"
	}
	text := fmt.Sprintf("%s: %s, fetched %s ago", visible(a.URL), status, time.Duration(a.Age)*time.Second)
	if a.Lifetime > 0 { // unreachable is not for keeping
		text += fmt.Sprintf(", fresh for %s", time.Duration(a.Lifetime)*time.Second)
	}
	return text
}

// reading is one answer of a server as one dialect understands it.
type reading struct {
	dialect policy.Dialect
	result  *fetch.Result
}

// inAllDialects reads res, which is an answer in RFC9309, as every dialect would have
// read it. RFC9309 is the one to start with: no dialect reads a file that it does not.
func inAllDialects(res *fetch.Result) []reading {
	var all []reading
	for _, d := range dialects {
		all = append(all, reading{d, res.In(d)})
	}
	return all
}
