package usage_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/page"
	"github.com/robotsgate/robotsgate/policy/usage"
)

// A crawler asks before it fetches, and again when it has the answer.
func Example() {
	p := policy.Parse([]byte(`User-agent: *
Allow: /
Content-Usage: search=y
Content-Usage: /essays/ search=y, train-ai=n
`))
	said := usage.ParseRobots(p, "ExampleBot", "/essays/1")
	what, by, _ := usage.For(said, usage.TrainAI)
	fmt.Println(what, by)

	header := http.Header{"Content-Signal": {"ai-input=no"}}
	said = append(said, usage.ParseHeader(header)...)
	for _, label := range []usage.Label{usage.TrainAI, usage.AIUse, usage.Search} {
		what, by, _ := usage.For(said, label)
		fmt.Printf("%s: %v by %v\n", label, what, by)
	}
	// Output:
	// disallow robots.txt line 4, Content-Usage: "/essays/ search=y, train-ai=n"
	// train-ai: disallow by robots.txt line 4, Content-Usage: "/essays/ search=y, train-ai=n"
	// ai-use: disallow by header line 1, Content-Signal: "ai-input=no"
	// search: allow by robots.txt line 4, Content-Usage: "/essays/ search=y, train-ai=n"
}

// Two lines of robots.txt are two statements, two field lines of a header are one.
func ExampleParseHeader() {
	p := policy.Parse([]byte("User-agent: *\nContent-Usage: train-ai=n\nContent-Usage: train-ai=y\n"))
	what, _, _ := usage.For(usage.ParseRobots(p, "ExampleBot", "/"), usage.TrainAI)
	fmt.Println("robots.txt:", what)

	header := http.Header{"Content-Usage": {"train-ai=n", "train-ai=y"}}
	what, _, _ = usage.For(usage.ParseHeader(header), usage.TrainAI)
	fmt.Println("header:", what)
	// Output:
	// robots.txt: disallow
	// header: allow
}

// Statements that have no effect say why.
func ExampleStatement() {
	for _, s := range usage.ParseHeader(http.Header{"Content-Usage": {"train-ai=no, bots=n, search"}}) {
		fmt.Printf("%s=%s, %q\n", s.Key, s.Value, s.Problem)
	}
	fmt.Println(usage.ParseHeader(http.Header{"Content-Usage": {"train-ai=n,"}})[0].Problem)
	// Output:
	// train-ai=no, "the value is neither y nor n"
	// bots=n, ""
	// search=?1, "the value is neither y nor n"
	// not a dictionary (RFC 9651 §3.2), so nothing is known: invalid dictionary format: character 11
}

// A policy token is asked for by its name, and the group for "*" does not stand in.
func ExampleParseRobots_policyToken() {
	p := policy.Parse([]byte("User-agent: *\nDisallow: /\n\nUser-agent: Google-Extended\nDisallow: /essays/\n"))
	for _, target := range []string{"/essays/1", "/news/1"} {
		said := usage.ParseRobots(p, "ExampleBot", target, "Google-Extended", "Applebot-Extended")
		what, by, _ := usage.For(said, usage.TrainAI)
		fmt.Println(target, what, by.Text)
	}
	// Output:
	// /essays/1 disallow Disallow: /essays/
	// /news/1 unknown
}

// What is said in the page itself: a TDM reservation, and rules of package page.
func ExampleParseMeta() {
	text := `<meta name="tdm-reservation" content="1"><meta name="robots" content="noai">`
	body := &page.Reader{Body: io.NopCloser(strings.NewReader(text))}
	io.Copy(io.Discard, body) // what the crawler does with the page
	var said []usage.Statement
	body.Metas(func(name, content string, offset int64) {
		said = append(said, usage.ParseMeta(name, content, offset)...)
	})
	said = append(said, usage.ParseRules(body.Rules(), policy.RFC9309, "ExampleBot")...)
	for _, s := range said {
		fmt.Println(s)
	}
	what, by, _ := usage.For(said, usage.AIUse)
	fmt.Println(what, by)
	// Output:
	// meta at byte 0, tdm-reservation: "1"
	// meta at byte 41, page rule: "noai"
	// disallow meta at byte 41, page rule: "noai"
}

// The reservation that stands closest to the content counts.
func ExampleParseTDMRep() {
	file := []byte(`[{"location": "/free/*", "tdm-reservation": 0},
		{"location": "/*", "tdm-reservation": 1, "tdm-policy": "https://example.com/policy.json"}]`)
	said := usage.ParseTDMRep(file, "/essays/1")
	what, by, _ := usage.For(said, usage.TrainAI)
	fmt.Println(what, by)
	said = append(said, usage.ParseHeader(http.Header{"Tdm-Reservation": {"0"}})...)
	what, _, _ = usage.For(said, usage.TrainAI)
	fmt.Println(what)
	// Output:
	// disallow tdmrep.json entry 2, tdm-reservation: "1"
	// unknown
}
