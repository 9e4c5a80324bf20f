package fetch_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// vector is a file of testdata/status: a header of "key: value" lines, a blank line, and
// the body of each answer.
//
//	section:  where the meaning is from, of RFC 9309 if it is a number
//	kind:     standard, or extension for what the RFC does not say
//	comment:  what the vector is about
//	dialects: in which it holds
//	status:   a status and what it means: "rules", "unavailable", "unreachable", or
//	          "redirect" if its Location is followed; as many as there are answers
type vector struct {
	section, kind, comment string
	dialects               []policy.Dialect
	answers                []statusAnswer
	body                   string
}

type statusAnswer struct {
	status int
	means  string
}

// verdicts has what each meaning of a status permits, if body is the file.
var verdicts = map[string]string{"rules": "rules", "redirect": "rules", "unavailable": "allow", "unreachable": "disallow"}

// parseVector accepts nothing that it does not know.
func parseVector(text string) (v vector, err error) {
	head, body, ok := strings.Cut(text, "\n\n")
	if !ok {
		return v, fmt.Errorf("no blank line ends the header")
	}
	v.body = body
	seen := map[int]bool{}
	for line := range strings.SplitSeq(head, "\n") {
		key, value, ok := strings.Cut(line, ": ")
		if !ok {
			return v, fmt.Errorf("header line %q is not \"key: value\"", line)
		}
		switch key {
		case "section":
			v.section = value
		case "kind":
			v.kind = value
		case "comment":
			v.comment = value
		case "dialects":
			for name := range strings.FieldsSeq(value) {
				var d policy.Dialect
				if err := d.UnmarshalText([]byte(name)); err != nil {
					return v, err
				}
				v.dialects = append(v.dialects, d)
			}
		case "status":
			number, means, _ := strings.Cut(value, " ")
			status, err := strconv.Atoi(number)
			if err != nil || verdicts[means] == "" || seen[status] {
				return v, fmt.Errorf("status %q is not \"number meaning\", once", value)
			}
			seen[status] = true
			v.answers = append(v.answers, statusAnswer{status, means})
		default:
			return v, fmt.Errorf("unknown header key %q", key)
		}
	}
	if v.section == "" || v.comment == "" || v.kind != "standard" && v.kind != "extension" || len(v.dialects) == 0 || len(v.answers) == 0 {
		return v, fmt.Errorf("header lacks section, kind, comment, dialects or status")
	}
	return v, nil
}

// Each status means what the vector says: asked for directly, behind a redirect, and when
// the answer was first read by RFC 9309.
func TestStatuses(t *testing.T) {
	names, err := filepath.Glob("testdata/status/*.txt")
	if err != nil || len(names) == 0 {
		t.Fatal("no vectors", err)
	}
	covered := map[policy.Dialect]int{}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			v, err := parseVector(string(text))
			if err != nil {
				t.Fatal(err)
			}
			if slices.Contains(v.dialects, policy.RFC9309) {
				v.dialects = append(v.dialects, 200) // one that is not known
			}
			for _, d := range v.dialects {
				for _, a := range v.answers {
					covered[d]++
					direct := v.ask(t, d, a, "http://a.test/robots.txt")
					behind := v.ask(t, d, a, "http://b.test/elsewhere")
					read := v.ask(t, policy.RFC9309, a, "http://a.test/robots.txt").In(d)
					if a.means != "redirect" && direct.StatusCode != a.status || (verdicts[a.means] == "rules") != (string(direct.Body) == v.body) {
						t.Errorf("%v: %d: got status %d with body %q", d, a.status, direct.StatusCode, direct.Body)
					}
					for how, r := range map[string]*fetch.Result{"direct": direct, "behind a redirect": behind, "read in it": read} {
						if got, want := verdict(r), verdicts[a.means]; got != want || (r.Err != nil) != (want == "disallow") {
							t.Errorf("%v, %s: %d is %s (%s): got %s, %v", d, v.section, a.status, a.means, how, got, r.Err)
						}
					}
				}
			}
		})
	}
	for _, d := range dialects {
		if covered[d] < 12 {
			t.Errorf("%d answers are about %v", covered[d], d)
		}
	}
}

// ask returns the Result in d of an answer that comes from the URL at. If the origin's own
// robots.txt is elsewhere, that redirects there.
func (v vector) ask(t *testing.T, d policy.Dialect, a statusAnswer, at string) *fetch.Result {
	t.Helper()
	var of []*http.Response
	if at != "http://a.test/robots.txt" {
		of = append(of, response(302, "", "Location", at))
	}
	of = append(of, response(a.status, v.body, "Location", "/followed"))
	if a.means == "redirect" {
		of = append(of, response(200, v.body))
	}
	rt, n := answers(of...)
	f := fetch.Fetcher{Dialect: d, Retries: -1, Transport: rt}
	r, err := f.Fetch(t.Context(), originOf(t, "http://a.test"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if *n != len(of) {
		t.Errorf("%v: %d: %d requests, want %d", d, a.status, *n, len(of))
	}
	return r
}

func TestStatusVectorReaderIsStrict(t *testing.T) {
	good := "section: 2.3\nkind: standard\ncomment: c\ndialects: RFC9309\nstatus: 200 rules\n\nbody\n"
	if v, err := parseVector(good); err != nil || v.body != "body\n" {
		t.Errorf("got %v, %v, want the body of %q", v, err, good)
	}
	for _, bad := range []string{
		strings.Replace(good, "kind:", "kin:", 1),
		strings.Replace(good, "standard", "maybe", 1),
		strings.Replace(good, "RFC9309", "RFC", 1),
		strings.Replace(good, "rules", "rule", 1),
		strings.Replace(good, "200", "2xx", 1),
		strings.Replace(good, " rules", "", 1),
		strings.Replace(good, "status: 200 rules\n", "status: 200 rules\nstatus: 200 rules\n", 1),
		strings.Replace(good, "\n\n", "\n", 1),
	} {
		if _, err := parseVector(bad); err == nil {
			t.Errorf("%q: got no error", bad)
		}
	}
}
