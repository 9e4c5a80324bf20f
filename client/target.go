package client

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/robotsgate/robotsgate/client/internal/say"
	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/usage"
)

// DecideWith decides about u by the policy p, as a Transport does: about the target that net/http
// sends, and about every one that servers may make of its dot segments. All must be allowed. The
// uses are like Transport.Uses. DecideWith needs no network, no Cache and no clock, so the Answer
// has no times. An ftp URL is decided on as by a Transport whose Fetcher reads ftp. The error says
// why u or token cannot be decided on.
func DecideWith(p *policy.Policy, token string, u *url.URL, uses ...string) (a Answer, err error) {
	err = decideWith(nil, p, token, u, uses, &a)
	return a, err
}

func decideWith(agreed *Agreements, p *policy.Policy, token string, u *url.URL, uses []string, a *Answer) error {
	if err := tokenMisuse("token", token); err != nil {
		return err
	}
	if err := usesMisuse(uses); err != nil {
		return err
	}
	ftp := isOther(u)
	if ftp && !strings.EqualFold(u.Scheme, "ftp") {
		return schemeError(u)
	}
	o, err := originOf(&http.Request{URL: u})
	if err != nil {
		return err
	}
	var room [128]byte // for most: it is cleared each time
	target, err := requestTarget(room[:0], u)
	switch {
	case err != nil:
		return err
	case target == robotsTarget:
		a.Decision, a.Token = unruled, token
		return nil
	}
	q := question{policy: p, group: p.Group(token), token: token, uses: uses, ftp: ftp, agreed: agreed.of(o)}
	if err = q.decide(context.Background(), target); err == nil {
		q.answer(a)
	}
	return err
}

// question is what is asked about a target, of a policy, for a product token, with the uses declared; and the
// answer. Returned by value that would be copied at every step of the warm path.
type question struct {
	policy *policy.Policy
	group  policy.Group // of token
	token  string
	uses   []string
	ftp    bool         // what sends it makes commands of its path in its own way
	agreed []*Agreement // with the site

	policy.Decision // zero after an error
	use             string
	by              *usage.Statement // with ReasonUse
	agreement       *Agreement       // that ends first of those that have decided on a form of the target
	settled         *policy.Decision // by it
}

func (q *question) answer(a *Answer) {
	a.Decision, a.Token, a.Use, a.By = q.Decision, q.token, q.use, q.by
	if q.Reason == policy.ReasonAgreement {
		a.Agreement, a.Until = q.agreement, q.agreement.Until
	}
}

// decide is the verdict on a target. The error is the context's cause, or says that the target can be read in too
// many ways.
func (q *question) decide(ctx context.Context, target string) error {
	if q.decideForm(target); q.Allowed && (q.ftp || hasDotSegment(target)) {
		return q.decideDotFree(ctx, strings.Clone(target)) // the rare case pays, the caller's buffer stays on the stack
	}
	return nil
}

// decideForm decides on a target as it is written.
func (q *question) decideForm(target string) {
	if q.Decision = q.group.Decide(target); len(q.agreed) > 0 {
		q.agree(target)
	}
	if q.Allowed && len(q.uses) > 0 {
		if q.use, q.by = disallowedUse(q.policy, q.token, target, q.uses); q.by != nil {
			q.Decision = policy.Decision{Reason: policy.ReasonUse} // the rule that allows did not decide
		}
	}
}

// hasDotSegment reports whether a server might find a "." or ".." segment (RFC 3986 §3.3)
// in the path of target: with dots escaped, between slashes that are escaped or
// backslashes, or with parameters (RFC 3986 §3.3 on ";"). The path ends at the first "?";
// lighttpd 1.4.69 resolves what is before the last.
func hasDotSegment(target string) bool {
	if strings.IndexByte(target, '%') < 0 && !strings.Contains(target, "/.") {
		return false // nearly always
	}
	end := strings.LastIndexByte(target, '?')
	if end < 0 {
		end = len(target)
	}
	for i := range end {
		if n := separator(target[i:]); n > 0 && startsWithDotSegment(target[i+n:]) {
			return true
		}
	}
	return false
}

// separator returns the length of the separator of segments at the start of s, or 0.
func separator(s string) int {
	switch {
	case s[0] == '/':
		return 1
	case s[0] == '%' && len(s) >= 3 && (s[1] == '2' && s[2]|0x20 == 'f' || s[1] == '5' && s[2]|0x20 == 'c'):
		return 3
	}
	return 0
}

func startsWithDotSegment(s string) bool {
	dots := 0
	for ; ; dots++ {
		switch {
		case strings.HasPrefix(s, "."):
			s = s[1:]
		case len(s) >= 3 && s[0] == '%' && s[1] == '2' && s[2]|0x20 == 'e':
			s = s[3:]
		default:
			return (dots == 1 || dots == 2) && (s == "" || s[0] == '?' || s[0] == ';' || separator(s) > 0)
		}
	}
}

// decideDotFree decides on every form that servers make of a target with dot segments, which is allowed as written.
// net/http sends such a target as written, and /public/../private asks many servers for
// /private. With a %2F instead of a slash, it asks some. All forms must be allowed. That
// is stricter than RFC 9309, which knows only the target as sent. Every ftp target is decided on
// so: what sends it reads "//", "%2F" and ";type=a" in its own way too (RFC 1738 §3.2.2).
func (q *question) decideDotFree(ctx context.Context, target string) error {
	forms := []string{target}
	size := 0
	for i := 0; i < len(forms); i++ {
		if size += len(forms[i]); size > maxForms {
			q.Decision = policy.Decision{}
			return fmt.Errorf("client: the URL's path and query %q have dot segments "+
				"that servers can read in too many ways: write it without", say.Cut(target))
		}
		if ctx.Err() != nil { // a hostile file makes each decision slow
			q.Decision = policy.Decision{}
			return context.Cause(ctx)
		}
		if q.decideForm(forms[i]); !q.Allowed {
			return nil
		}
		// Another server behind the first may resolve the result again.
		first, last := strings.IndexByte(forms[i], '?'), strings.LastIndexByte(forms[i], '?')
		forms = appendResolved(forms, forms[i], first)
		if last > first { // see hasDotSegment
			forms = appendResolved(forms, forms[i], last)
		}
	}
	if q.agreement != nil { // the last form may need none
		q.Decision = *q.settled
	}
	return nil
}

// maxForms is how long all forms of a target may be together. Unless it was made to have
// many, a path has fewer than ten.
const maxForms = 4 * maxTarget

// appendResolved appends to forms the new ones that servers resolve target to, with the
// dot segments of its path removed. The path ends at the index end, or with the target if
// that is -1.
func appendResolved(forms []string, target string, end int) []string {
	path, query := target, ""
	if end >= 0 {
		path, query = target[:end], target[end:]
	}
	add := func(path string) {
		if f := path + query; !slices.Contains(forms, f) {
			forms = append(forms, f)
		}
	}
	for _, unescape := range unescapings {
		for _, params := range []func(segment string) string{withParams, withoutParams, withoutParamsOfDots} {
			segments := strings.Split(unescape.Replace(path), "/")[1:]
			for i, s := range segments {
				segments[i] = params(s)
			}
			add(withoutDotSegments(segments)) // whose empty segments are left out when the result is resolved again
			add(withoutDotSegments(strings.Split(withoutEmptySegments("/"+strings.Join(segments, "/")), "/")[1:]))
		}
	}
	return forms
}

// unescapings are what servers take for a dot and for a slash: an escaped dot always, an
// escaped slash if they unescape before they split, and a backslash on some systems. None of
// them unescapes twice.
var unescapings = []*strings.Replacer{
	strings.NewReplacer("%2e", ".", "%2E", "."),
	strings.NewReplacer("%2e", ".", "%2E", ".", "%2f", "/", "%2F", "/"),
	strings.NewReplacer("%2e", ".", "%2E", ".", "%5c", "/", "%5C", "/"),
	strings.NewReplacer("%2e", ".", "%2E", ".", "%2f", "/", "%2F", "/", "%5c", "/", "%5C", "/"),
}

// Parameters of a segment begin with a semicolon (RFC 3986 §3.3). Servlet containers cut
// them off before they resolve; other servers know none.

func withParams(segment string) string { return segment }

func withoutParams(segment string) string {
	name, _, _ := strings.Cut(segment, ";")
	return name
}

func withoutParamsOfDots(segment string) string {
	if name := withoutParams(segment); name == "." || name == ".." {
		return name
	}
	return segment
}

// withoutDotSegments returns the path that the segments leave (RFC 3986 §5.2.4).
func withoutDotSegments(segments []string) string {
	var kept []string
	for i, s := range segments {
		last := i == len(segments)-1
		switch s {
		case ".":
		case "..":
			kept = kept[:max(len(kept)-1, 0)]
		default:
			kept = append(kept, s)
			continue
		}
		if last {
			kept = append(kept, "")
		}
	}
	return "/" + strings.Join(kept, "/")
}

// withoutEmptySegments merges slashes.
func withoutEmptySegments(path string) string {
	for strings.Contains(path, "//") {
		path = strings.ReplaceAll(path, "//", "/")
	}
	return path
}

// unruled is the Decision about what no rule can forbid.
var unruled = policy.Decision{Allowed: true, Reason: policy.ReasonNoRule}

// Decide is [DecideWith] with the agreements deciding before p.
func (all *Agreements) Decide(p *policy.Policy, token string, u *url.URL, uses ...string) (a Answer, err error) {
	err = decideWith(all, p, token, u, uses, &a)
	return a, err
}

// agree has the first agreement that has a rule for the target decide in place of q.group, which has.
func (q *question) agree(target string) {
	for _, a := range q.agreed {
		d := a.rules.Decide(q.token, target)
		switch {
		case d.Reason != policy.ReasonRule:
			continue
		case a.over():
			a.log(&a.ended, slog.LevelWarn, "client: an agreement has ended")
			continue
		case d.Allowed && len(q.uses) > 0 && q.Reason == policy.ReasonUnreachable:
			return // what robots.txt says about use is not known
		}
		a.log(&a.used, slog.LevelInfo, "client: an agreement decides")
		d.Reason = policy.ReasonAgreement
		d.Rule.Line += a.above
		if q.Decision = d; q.agreement == nil || !d.Allowed || a.Until.Before(q.agreement.Until) {
			settled := d
			q.agreement, q.settled = a, &settled
		}
		return
	}
}
