// Package answer is a question about a URL and its verdict, in the words and the JSON of the command. What asks at
// a prompt and over HTTP uses the same. It reads neither the network nor files, and knows no flags.
package answer

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// Answer is what a server said when asked for robots.txt: "robots" in the JSON of check and fetch. Every
// field is always there but the last two.
type Answer struct {
	URL       string    `json:"url"`
	Status    *int      `json:"status" zero:"null"` // null: no answer
	Outcome   string    `json:"outcome"`            // OutcomeRules, or the reason of package policy
	Redirects []string  `json:"redirects"`          // followed, in order
	Fetched   time.Time `json:"fetched"`
	Age       int64     `json:"age_seconds"`
	Lifetime  *int64    `json:"lifetime_seconds" zero:"null"` // from fetched, in a cache; null: unreachable
	Source    *string   `json:"lifetime_source" zero:"null"`  // see stated; null: unreachable
	Retry     *int64    `json:"retry_seconds" zero:"null"`    // from fetched; null: not unreachable, or not known
	Truncated bool      `json:"truncated"`
	Error     *string   `json:"error" zero:"null"`
	Price     string    `json:"price,omitempty"`  // of a 402
	Wall      bool      `json:"wall,omitempty"`   // it may be no robots.txt, see fetch.Result.Wall
	SHA256    string    `json:"sha256,omitempty"` // check --hosts: of the file
}

const OutcomeRules = "rules"

// OutcomeOf is what res comes to, in one word: a file with rules, or why there is none. The metrics count by it.
func OutcomeOf(res *fetch.Result) string {
	if r := res.Policy.Reason(); r != 0 {
		return ReasonName(r)
	}
	return OutcomeRules
}

// MaxFile is how many bytes of a robots.txt count (RFC 9309 §2.5).
const MaxFile = 500 << 10

// New takes from res what a script may want to know. The file itself is left out:
// it is long, and "robots fetch" gives it. until is when it is asked for again; zero: no cache knows.
func New(o fetch.Origin, res *fetch.Result, until time.Time) *Answer {
	a := &Answer{
		URL:       o.RobotsURL().String(),
		Status:    OrNull(res.StatusCode),
		Outcome:   OutcomeOf(res),
		Redirects: append([]string{}, res.Redirects...),
		Fetched:   res.Time.UTC().Truncate(time.Second),
		Age:       seconds(max(time.Since(res.Time), 0)),
		Truncated: res.Truncated,
		Wall:      res.Wall,
	}
	if res.StatusCode == http.StatusPaymentRequired {
		a.Price = strings.Join(res.Header["Crawler-Price"], ", ")
	}
	if res.Err != nil {
		text := res.Err.Error()
		if until.IsZero() {
			until = res.Time.Add(max(30*time.Second, res.RetryAfter)) // as a cache.Cache does
		}
		retry := seconds(until.Sub(res.Time).Round(time.Second))
		a.Error, a.Retry = &text, &retry
		return a
	}
	lifetime, source := stated(res)
	whole := seconds(min(lifetime, held(res))) // whatever is stated, no cache keeps it for longer
	a.Lifetime, a.Source = &whole, &source
	return a
}

// AskAgain is how long it takes until an unreachable robots.txt is asked for again, a second at least. It is
// a minute if that is not known: a may be nil.
func (a *Answer) AskAgain() time.Duration {
	if a == nil || a.Retry == nil {
		return time.Minute
	}
	return max(time.Duration(*a.Retry-a.Age)*time.Second, time.Second)
}

func (a *Answer) Ago() time.Duration { return time.Duration(a.Age) * time.Second }

// seconds are whole ones, as JSON has them: what is left is cut off.
func seconds(d time.Duration) int64 { return int64(d / time.Second) }

// held is how long a cache.Cache without settings keeps res.
func held(res *fetch.Result) time.Duration {
	d, _ := new(cache.Cache).Lifetime(res)
	return d
}

// stated is the lifetime that the server states, or the default, and what it comes from in the words of JSON, on which
// scripts may rely and which ExplainLifetime explains.
func stated(res *fetch.Result) (d time.Duration, source string) {
	c := &cache.Cache{MinTTL: -1, MaxTTL: -1}
	d, source = c.Lifetime(res)
	if source != "" && (res.StatusCode == http.StatusUnauthorized || res.StatusCode == http.StatusForbidden) {
		found := *res // a Cache has no such bound for it
		found.StatusCode = http.StatusOK
		d, source = c.Lifetime(&found)
	}
	switch source {
	case "":
		return d, "default"
	case "Retry-After":
		return d, "status"
	}
	return d, strings.ToLower(source)
}

// String is the answer in one phrase, safe to print, without its URL.
func (a *Answer) String() string {
	text := "no answer"
	if a.Status != nil {
		text = fmt.Sprint("status ", *a.Status)
	}
	if a.Truncated {
		text += ", cut at the size limit"
	}
	if a.SHA256 != "" {
		text += ", sha256 " + a.SHA256[:12]
	}
	if a.Wall {
		text += ", perhaps a wall and no robots.txt"
	}
	if a.Age > 0 {
		text += fmt.Sprintf(", fetched %s ago", a.Ago())
	}
	switch {
	case a.Retry != nil:
		text += fmt.Sprintf(", ask again after %s", time.Duration(*a.Retry)*time.Second)
	case a.Lifetime != nil:
		text += fmt.Sprintf(", fresh for %s", time.Duration(*a.Lifetime)*time.Second)
	}
	return text
}

// why says what about the answer makes the file unavailable, behind a colon. The answer may be nil.
func (a *Answer) why() string {
	switch {
	case a == nil || a.Status == nil:
		return ""
	case a.Truncated && *a.Status == http.StatusOK: // else it is unavailable by its status
		return fmt.Sprintf(": longer than %d bytes", MaxFile)
	case *a.Status >= 300 && *a.Status < 400:
		return ": too many redirects"
	case a.Price != "":
		return fmt.Sprintf(": %d %s, crawler-price %s", *a.Status, http.StatusText(*a.Status), Visible(a.Price))
	default:
		return fmt.Sprintf(": %d %s", *a.Status, http.StatusText(*a.Status))
	}
}

// InAllDialects returns res as each of Dialects reads it.
func InAllDialects(res *fetch.Result) (all []*fetch.Result) {
	for _, d := range Dialects {
		all = append(all, res.In(d))
	}
	return all
}

// Dialects in the order in which --as all and the page of serve show them.
var Dialects = [...]policy.Dialect{policy.RFC9309, policy.Google, policy.Yandex, policy.Bing, policy.Original}

// DialectByName is UnmarshalText with an error that names the remedy.
func DialectByName(name string) (d policy.Dialect, err error) {
	if d.UnmarshalText([]byte(name)) != nil {
		return 0, fmt.Errorf("no dialect is called %s: it is one of %s", Quoted(name), strings.Join(DialectNames(), ", "))
	}
	return d, nil
}

// DialectName is the name in lower case, as --as and the field "profile" of a record are mostly written.
func DialectName(d policy.Dialect) string { return strings.ToLower(d.String()) }

// DialectNames are the names of Dialects, for --as and what is said about it.
func DialectNames() (names []string) {
	for _, d := range Dialects {
		names = append(names, DialectName(d))
	}
	return names
}
