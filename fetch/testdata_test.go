package fetch_test

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/integration_test/vectors"
	"github.com/robotsgate/robotsgate/policy"
)

// vector is a vectors.Case of testdata/status. Its body is that of each answer.
//
//	dialects: in which it holds
//	field:    of the header of each answer, instead of a Location that leads on; any number
//	status:   the statuses of one answer after the other, and what they mean: "rules",
//	          "unavailable", "unreachable", or "redirect" if the last one's Location is
//	          followed to a 200; as many as there are chains
type vector struct {
	dialects []policy.Dialect
	fields   []string // names and values
	chains   []chain
	body     string
}

type chain struct {
	text     string
	statuses []int
	means    string
}

// verdicts has what each meaning of a status permits, if body is the file.
var verdicts = map[string]string{
	"rules": "rules", "redirect": "rules", "unavailable": "allow", "unreachable": "disallow",
}

// parseVector accepts nothing that it does not know.
func parseVector(text string) (v vector, err error) {
	read, err := vectors.ReadCase(text, []string{"Dialects", "Status"}, "Field")
	if err != nil {
		return v, err
	}
	v.body = read.Body
	if v.dialects, err = vectors.Named[policy.Dialect](read.Head.Get("Dialects")); err != nil {
		return v, err
	}
	for _, field := range read.Head["Field"] {
		name, value, ok := strings.Cut(field, ":")
		if !ok {
			return v, fmt.Errorf("field %q is not \"name: value\"", field)
		}
		v.fields = append(v.fields, name, strings.TrimSpace(value))
	}
	seen := map[string]bool{}
	for _, value := range read.Head["Status"] {
		c := chain{text: value}
		words := strings.Fields(value)
		for _, number := range words[:len(words)-1] {
			status, err := strconv.Atoi(number)
			if err != nil {
				return v, err
			}
			c.statuses = append(c.statuses, status)
		}
		if c.means = words[len(words)-1]; len(c.statuses) == 0 || verdicts[c.means] == "" || seen[fmt.Sprint(c.statuses)] {
			return v, fmt.Errorf("status %q is not \"numbers meaning\", once", value)
		}
		seen[fmt.Sprint(c.statuses)] = true
		v.chains = append(v.chains, c)
	}
	return v, nil
}

// Each status means what the vector says: asked for directly and behind a redirect.
func TestStatuses(t *testing.T) {
	covered := map[policy.Dialect]int{}
	for name, v := range vectors.Cases(t, "testdata/status", parseVector) {
		t.Run(name, func(t *testing.T) {
			if slices.Contains(v.dialects, policy.RFC9309) {
				v.dialects = append(v.dialects, 200) // one that is not known
			}
			for _, d := range v.dialects {
				for _, c := range v.chains {
					covered[d]++
					direct := v.ask(t, d, c)
					last := c.statuses[len(c.statuses)-1]
					hasFile := c.means == "redirect" || last/100 == 2 && direct.Err == nil // to Yandex it may not count
					if c.means != "redirect" && direct.StatusCode != last || hasFile != (string(direct.Body) == v.body) {
						t.Errorf("%v: %s: got status %d with body %q, want the file: %v", d, c.text, direct.StatusCode, direct.Body, hasFile)
					}
					all := map[string]*fetch.Result{"direct": direct}
					if len(c.statuses) == 1 {
						all["behind a redirect"] = v.ask(t, d, chain{c.text, []int{302, c.statuses[0]}, c.means})
					}
					for how, r := range all {
						if got, want := verdict(r), verdicts[c.means]; got != want || (r.Err != nil) != (want == "disallow") {
							t.Errorf("%v, %s: got %s, %v, want %s", d, how, got, r.Err, c.text)
						}
					}
				}
			}
		})
	}
	for _, d := range dialects {
		if covered[d] < 12 {
			t.Errorf("%d answers are about %v, want 12 at least", covered[d], d)
		}
	}
}

// ask returns the Result in d of a chain of answers, the first of which leads to another host and
// the others to other paths, unless the fields say otherwise.
func (v vector) ask(t *testing.T, d policy.Dialect, c chain) *fetch.Result {
	t.Helper()
	var of []*http.Response
	for i, status := range c.statuses {
		res := response(status, v.body, v.fields...)
		if !slices.Contains(v.fields, "Location") || i < len(c.statuses)-1 {
			res.Header.Set("Location", [...]string{"http://b.test/robots.txt", fmt.Sprintf("/%d", i)}[min(i, 1)])
		}
		of = append(of, res)
	}
	if c.means == "redirect" {
		of = append(of, response(200, v.body))
	}
	rt, n := answers(of...)
	f := fetch.Fetcher{Retries: -1, Transport: rt}
	if slices.Contains(c.statuses, http.StatusProxyAuthRequired) { // the site's own only where no proxy can be
		f.Transport = piped(func() []byte {
			var b bytes.Buffer
			res, _ := rt(nil)
			res.ProtoMajor, res.ProtoMinor = 1, 1
			res.Write(&b)
			return b.Bytes()
		})
	}
	r, err := f.Fetch(t.Context(), originOf(t, "http://a.test"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if *n != len(of) {
		t.Errorf("%v: %s: %d requests, want %d", d, c.text, *n, len(of))
	}
	return r.In(d)
}
