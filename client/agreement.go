package client

import (
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/robotsgate/robotsgate/client/internal/say"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// Agreements are what sites have agreed to in writing: rules for one origin each, until a date,
// which decide before its robots.txt. See [ParseAgreements]. They never change, and are safe for
// concurrent use. If nil, there are none.
//
// Where no rule of an agreement matches, robots.txt decides as usual. It is read in any case, for
// its delays and for what it says about use (see Transport.Uses); but a Content-Usage line says
// nothing about what robots.txt itself disallows (draft-ietf-aipref-attach). If robots.txt is
// unreachable, agreements hold, unless uses are declared: what robots.txt says about those is not
// known, so the answer is no.
//
// Each agreement is logged to slog.Default at most twice: when it first decides, and when it first
// would have, had it not ended.
type Agreements struct {
	sites map[fetch.Origin][]*Agreement
}

// Agreement is one of Agreements.
type Agreement struct {
	Reason string    `json:"reason"` // why the rules hold, as it was written
	Until  time.Time `json:"until"`  // the end of the rules: nothing that they allowed is sent from this time on

	site        fetch.Origin
	rules       *policy.Policy
	above       int         // lines of the file
	used, ended atomic.Bool // and logged
}

// ParseAgreements reads entries such as
//
//	Site: https://example.com
//	Until: 2027-03-31
//	Reason: e-mail of J. Doe, 2 November 2026, ticket 4711
//	User-agent: ExampleBot
//	Allow: /archive/
//	Disallow: /archive/drafts/
//
// An entry begins with Site: scheme and host, and the port if it is not the scheme's own. It must
// have an Until, the last day on which it holds, in UTC, a Reason, and one rule or more, in groups
// as in robots.txt (RFC 9309 §2.2): a User-agent line "*" is for each crawler that the entry does
// not name. Of several entries for a site, the first with a rule that matches the target decides.
// Lines that begin with "#" are comments.
//
// Anything else is an error that names the line: nothing is guessed. An entry that has ended
// decides nothing.
func ParseAgreements(data []byte) (*Agreements, error) {
	r := agreementReader{all: &Agreements{sites: map[fetch.Origin][]*Agreement{}}}
	for line := range strings.Lines(strings.TrimPrefix(string(data), "\uFEFF")) {
		r.line++
		if err := r.read(strings.TrimSpace(line)); err != nil {
			return nil, fmt.Errorf("client: agreements, line %d: %w", r.line, err)
		}
	}
	if err := r.end(); err != nil {
		return nil, fmt.Errorf("client: agreements, line %d: %w", r.line, err)
	}
	return r.all, nil
}

type agreementReader struct {
	all  *Agreements
	line int

	*Agreement                 // nil before the first
	group      strings.Builder // what package policy reads of it, line by line
	last       string          // the field of the last line of a group
}

func (r *agreementReader) read(line string) error {
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

func (r *agreementReader) begin(site string) error {
	if err := r.end(); err != nil {
		return err
	}
	u, err := url.Parse(site)
	if err != nil || isOther(u) || u.Scheme == "" || u.Host == "" || u.User != nil || strings.Contains(u.Host, "*") || strings.Trim(u.Path, "/")+u.RawQuery+u.Fragment != "" {
		return fmt.Errorf("%q is no site: write its scheme and host alone, such as https://example.com", say.Cut(site))
	}
	r.Agreement = &Agreement{above: r.line - 1}
	r.group.WriteByte('\n')
	r.site, err = fetch.OriginOf(u)
	return err
}

func (r *agreementReader) take(field, value string) error {
	switch {
	case field == "until" && r.Until.IsZero():
		day, err := time.Parse(time.DateOnly, value)
		if r.Until = day.AddDate(0, 0, 1); err != nil {
			return fmt.Errorf("%q is no date: write the last day that it holds, such as 2027-03-31", say.Cut(value))
		}
		if r.Until.Year() > 9999 { // which no RFC 3339, and so no JSON, can say
			r.Until = r.Until.Add(-time.Second)
		}
	case field == "reason" && r.Reason == "":
		r.Reason = value
	case field == "until" || field == "reason":
		return fmt.Errorf("the entry has its %s: begin another with a Site line", field)
	case field == "user-agent":
		if value != "*" && policy.ProductToken(value) != value {
			return fmt.Errorf("%q is no product token: write one such as ExampleBot, or * for all", say.Cut(value))
		}
	case field != "allow" && field != "disallow":
		return fmt.Errorf("%q is no field: write Site, Until, Reason, User-agent, Allow or Disallow", say.Cut(field))
	case r.last == "":
		return fmt.Errorf("say above for whom it is, such as User-agent: *")
	case value[0] != '/' && value[0] != '*':
		return fmt.Errorf("%q is no path: begin it with a slash; / is the whole site", say.Cut(value))
	}
	return nil
}

func (r *agreementReader) end() error {
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
		a.rules = policy.Parse([]byte(r.group.String()))
		r.all.sites[a.site] = append(r.all.sites[a.site], a)
	}
	r.group.Reset()
	r.last = ""
	return nil
}

// of returns the agreements with the site of o, those that have ended too.
func (all *Agreements) of(o fetch.Origin) []*Agreement {
	if all == nil {
		return nil
	}
	return all.sites[o]
}

// freshTime is how old a decision or a signature may be when the request is sent.
const freshTime = time.Second

// ends returns Until, or zero if there is no agreement.
func (a *Agreement) ends() time.Time {
	if a == nil {
		return time.Time{}
	}
	return a.Until
}

// over reports whether an agreement has ended, or will have within freshTime: what it decides on now may be
// sent that late. If ends is zero, there is none.
func over(ends, now time.Time) bool { return !ends.IsZero() && !now.Add(freshTime).Before(ends) }

// log logs the first time. A handler may ask about the same site, so no caller waits for it.
func (a *Agreement) log(logged *atomic.Bool, level slog.Level, text string) {
	if !logged.Load() && !logged.Swap(true) {
		say.Log(level, text, "site", a.site.String(), "reason", a.Reason, "until", a.Until)
	}
}
