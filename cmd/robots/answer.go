package main

import (
	"fmt"
	"net/url"
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

func newAnswer(o fetch.Origin, res *fetch.Result) *answer {
	a := &answer{
		URL:       o.RobotsURL().String(),
		Status:    res.StatusCode,
		Redirects: res.Redirects,
		Fetched:   res.Time.UTC().Truncate(time.Second),
		Age:       int64(max(time.Since(res.Time), 0) / time.Second),
		Lifetime:  int64(cache.FreshnessLifetime(res) / time.Second),
		Truncated: res.Truncated,
	}
	if res.Err != nil {
		a.Error = res.Err.Error()
	}
	return a
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
	return fmt.Sprintf("%s: %s, fetched %s ago, fresh for %s", visible(a.URL), status,
		time.Duration(a.Age)*time.Second, time.Duration(a.Lifetime)*time.Second)
}

// reading is one answer of a server as one dialect understands it.
type reading struct {
	dialect policy.Dialect
	result  *fetch.Result
}

func inAllDialects(res *fetch.Result) []reading {
	var all []reading
	for _, d := range dialects {
		as := *res
		if res.StatusCode/100 == 2 && res.Err == nil {
			as.Policy = d.dialect.Parse(res.Body)
		}
		all = append(all, reading{d.dialect, &as})
	}
	return all
}

// matcher returns a function that says whether a rule by itself would decide about u.
func (r reading) matcher(u *url.URL) func(policy.Rule) bool {
	target := u.RequestURI()
	return func(rule policy.Rule) bool {
		alone := r.dialect.Parse([]byte("User-agent: *\n" + ruleText(rule) + "\n"))
		return alone.Decide("*", target).Reason == policy.ReasonRule
	}
}
