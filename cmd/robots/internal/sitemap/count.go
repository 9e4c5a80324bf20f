package sitemap

import (
	"slices"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/fetch"
)

// Count is how many URLs of sitemaps the robots.txt of a site refuses, by the line that does. The zero value is ready.
type Count struct {
	URLs    int        `json:"urls"`
	Refused int        `json:"refused"`
	By      []*Refusal `json:"by"`

	Most   int `json:"-"` // of By; zero: all
	Others int `json:"-"` // URLs that By leaves out
}

// Refusal is a line of robots.txt, or why URLs are not asked about.
type Refusal struct {
	Because string `json:"because"`
	Line    *int   `json:"line"`
	URLs    int    `json:"urls"`
	Example string `json:"example"`
}

// Add counts a URL that is listed, and if robots, that of o, refuses it to k, what does.
func (c *Count) Add(k *answer.Asker, o fetch.Origin, robots *fetch.Result, loc string) {
	c.URLs++
	because, line := "no URL of this site", 0
	q := answer.ReadListed(k.Dialect, c.URLs, loc)
	if q.Err == nil && q.Origin == o {
		q.Result = robots
		v := k.Verdict(&q, k.Decide(&q))
		if v.Allowed {
			return
		}
		v.Cut()
		because, line = v.Because(), v.Line
		c.Refused++
	}
	c.Note(because, line, answer.Redacted(loc))
}

// Note counts a URL in By. line is 0 if because names none.
func (c *Count) Note(because string, line int, url string) {
	i := slices.IndexFunc(c.By, func(r *Refusal) bool { return r.Because == because })
	if i < 0 {
		if i = len(c.By); c.Most > 0 && i == c.Most {
			c.Others++
			return
		}
		c.By = append(c.By, &Refusal{Because: because, Line: answer.OrNull(line), Example: url})
	}
	c.By[i].URLs++
}

// Sort puts what refuses most first.
func (c *Count) Sort() {
	slices.SortStableFunc(c.By, func(a, b *Refusal) int { return b.URLs - a.URLs })
}
