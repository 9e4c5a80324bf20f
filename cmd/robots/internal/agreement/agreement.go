// Package agreement reads what sites have agreed to in writing: the file of --agreements.
package agreement

import (
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// Agreements are rules for one origin each, until a date, in place of its robots.txt. See [Parse]. They never change, and
// are safe for concurrent use. If nil, there are none.
type Agreements struct {
	sites map[fetch.Origin][]*Agreement
}

type Agreement struct {
	Reason string    `json:"reason"` // why the rules hold, as it was written
	Until  time.Time `json:"until"`  // the end of the rules: they decide nothing from this time on

	site        fetch.Origin
	rules       *policy.Policy
	first, last int       // lines of the entry; rules behind them are ours
	used, ended sync.Once // which is logged
}

// Parse reads entries such as
//
//	Site: https://example.com
//	Until: 2027-03-31
//	Reason: e-mail of J. Doe, 2 November 2026, ticket 4711
//	User-agent: ExampleBot
//	Allow: /archive/
//	Disallow: /archive/drafts/
//
// An entry begins with Site: scheme and host, and the port if it is not the scheme's own. It must have an Until, the last
// day on which it holds, in UTC, a Reason, and one rule or more, in groups as in robots.txt (RFC 9309 §2.2): a User-agent
// line "*" is for each crawler that the entry does not name. Lines that begin with "#" are comments.
//
// The entry replaces the robots.txt of the site: what it does not allow is disallowed. Of several entries for a site
// the first that has not ended decides. Anything else is an error that names the line: nothing is guessed.
func Parse(data []byte) (*Agreements, error) {
	r := reader{all: &Agreements{sites: map[fetch.Origin][]*Agreement{}}}
	for line := range strings.Lines(strings.TrimPrefix(string(data), "\uFEFF")) {
		r.line++
		if err := r.read(strings.TrimSpace(line)); err != nil {
			return nil, fmt.Errorf("agreements, line %d: %w", r.line, err)
		}
	}
	if err := r.end(); err != nil {
		return nil, fmt.Errorf("agreements, line %d: %w", r.line, err)
	}
	return r.all, nil
}

type reader struct {
	all  *Agreements
	line int

	*Agreement                 // nil before the first
	above      int             // lines of the file
	group      strings.Builder // what package policy reads of it, line by line
	names      []string        // of its groups
	last       string          // the field of the last line of a group
}

func (r *reader) read(line string) error {
	field, value, ok := strings.Cut(line, ":")
	field, value = strings.ToLower(strings.TrimSpace(field)), strings.TrimSpace(value)
	switch {
	case line == "" || line[0] == '#':
		r.group.WriteByte('\n')
		return nil
	case !utf8.ValidString(line) || strings.ContainsFunc(line, func(c rune) bool { return c != '\t' && !unicode.IsPrint(c) }) || len(line) > 2<<10:
		return fmt.Errorf("it holds a control character, is not UTF-8 or is longer than 2 KiB: write it anew")
	case !ok || value == "":
		return fmt.Errorf("write it as FIELD: VALUE")
	case field == "site":
		return r.begin(value)
	case r.Agreement == nil:
		return fmt.Errorf("begin with the site, such as Site: https://example.com")
	}
	err := r.take(field, value)
	if field == "until" || field == "reason" {
		line = ""
	} else {
		r.last = field
	}
	r.group.WriteString(line + "\n")
	return err
}

func (r *reader) begin(site string) error {
	if err := r.end(); err != nil {
		return err
	}
	u, err := url.Parse(site)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || strings.Contains(u.Host, "*") ||
		strings.Trim(u.Path, "/")+u.RawQuery+u.Fragment != "" {
		return fmt.Errorf("%.256q is no site: write its scheme and host alone, such as https://example.com", site)
	}
	r.Agreement, r.above = new(Agreement), r.line-1
	r.group.WriteByte('\n')
	r.site, err = fetch.OriginOf(u)
	return err
}

func (r *reader) take(field, value string) error {
	switch {
	case field == "until" && r.Until.IsZero():
		day, err := time.Parse(time.DateOnly, value)
		if err != nil {
			return fmt.Errorf("%.256q is no date: write the last day that it holds, such as 2027-03-31", value)
		}
		r.Until = day.Add(24*time.Hour - time.Second) // of 9999-12-31, JSON could say no second more
	case field == "reason" && r.Reason == "":
		r.Reason = value
	case field == "until" || field == "reason":
		return fmt.Errorf("the entry has its %s: begin another with a Site line", field)
	case field == "user-agent":
		if value != "*" && policy.ProductToken(value) != value {
			return fmt.Errorf("%.256q is no product token: write one such as ExampleBot, or * for all", value)
		}
		r.names = append(r.names, value)
	case field != "allow" && field != "disallow":
		return fmt.Errorf("%.256q is no field: write Site, Until, Reason, User-agent, Allow or Disallow", field)
	case r.last == "":
		return fmt.Errorf("say above for whom it is, such as User-agent: *")
	case value[0] != '/' && value[0] != '*':
		return fmt.Errorf("%.256q is no path: begin it with a slash; / is the whole site", value)
	case strings.Contains(value, "#"): // where robots.txt has a comment, it would widen the rule
		return fmt.Errorf("%.256q holds a #: write %%23 in a path, and a comment on a line of its own", value)
	}
	return nil
}

func (r *reader) end() error {
	if a := r.Agreement; a != nil {
		switch {
		case a.Until.IsZero():
			return fmt.Errorf("the entry for %s above has no end: add its last day, such as Until: 2027-03-31", a.site)
		case a.Reason == "":
			return fmt.Errorf("the entry for %s above has no reason: add who agreed to it, and where that is, as Reason: TEXT", a.site)
		case r.last == "" || r.last == "user-agent":
			return fmt.Errorf("the entry for %s above ends without a rule: add Allow: PATH or Disallow: PATH", a.site)
		case r.group.Len() > 64<<10: // what package policy reads without a limit
			return fmt.Errorf("the entry for %s above is longer than 64 KiB: make several of it", a.site)
		}
		a.rules = policy.Parse([]byte(strings.Repeat("\n", r.above) + r.group.String() + r.rest()))
		a.first, a.last = r.above+1, r.line
		r.all.sites[a.site] = append(r.all.sites[a.site], a)
	}
	r.group.Reset()
	r.names, r.last = nil, ""
	return nil
}

// rest are groups that are fused with those of the entry (RFC 9309 §2.2.1), and disallow what these do not mention: their
// rule is the least specific.
func (r *reader) rest() string {
	var b strings.Builder
	for _, name := range append(r.names, "*") {
		b.WriteString("\nUser-agent: " + name + "\nDisallow: /\n")
	}
	return b.String()
}

// Of returns the agreement that decides for an origin now, or nil.
func (all *Agreements) Of(o fetch.Origin) *Agreement {
	if all == nil {
		return nil
	}
	for _, a := range all.sites[o] {
		if time.Now().Before(a.Until) {
			return a
		}
		a.ended.Do(func() { slog.Warn("an agreement has ended", a.logged()...) })
	}
	return nil
}

// Line is where a rule of the agreement stands in the file; what the entry leaves out stands where it begins.
func (a *Agreement) Line(rule int) int {
	if rule > a.last {
		return a.first
	}
	return rule
}

func (all *Agreements) Override(o fetch.Origin) *policy.Policy {
	a := all.Of(o)
	if a == nil {
		return nil
	}
	a.used.Do(func() { slog.Info("an agreement decides", a.logged()...) })
	return a.rules
}

func (a *Agreement) logged() []any {
	return []any{"site", a.site.String(), "reason", a.Reason, "until", a.Until}
}
