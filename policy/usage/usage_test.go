package usage_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/integration_test/proc"
	"github.com/robotsgate/robotsgate/integration_test/tier"
	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/page"
	"github.com/robotsgate/robotsgate/policy/usage"
)

// What a table says depends on the table alone.
func TestATableCanBeReplaced(t *testing.T) {
	said := usage.ParseRules(page.ParseHeader([]string{"noarchive, noai"}), policy.RFC9309, "examplebot")
	if p, _, _ := usage.For(said, "train-ai"); p != usage.Disallow {
		t.Errorf("got %v of %v, want disallow", p, said)
	}
	own := slices.DeleteFunc(usage.Table(), func(m usage.Mapping) bool { return m.Key == "noai" })
	if p, _, _ := usage.For(said, "train-ai", own...); p != usage.Unknown {
		t.Errorf("without the row: got %v, want unknown", p)
	}
	own = append(own, usage.Mapping{By: "page rule", Key: "noarchive", Label: "train-ai", Preference: usage.Disallow})
	if p, by, _ := usage.For(said, "train-ai", own...); p != usage.Disallow || by.Key != "noarchive" {
		t.Errorf("with a row of our own: got %v by %v, want disallow by noarchive", p, by)
	}
	if p, _, err := usage.For(said, "train-ai", []usage.Mapping{}...); p != usage.Unknown || err == nil {
		t.Errorf("with no rows: got %v, want unknown", p)
	}
	changed := usage.Table()
	for i := range changed {
		changed[i].Preference = usage.Allow
	}
	if p, _, _ := usage.For(said, "train-ai"); p != usage.Disallow {
		t.Error("Table returns what For uses, not a copy")
	}
}

// A label that no row has is an error: a misspelt one would be refused by nothing.
func TestAnUnknownLabelIsAnError(t *testing.T) {
	said := usage.ParseRobots(policy.Parse([]byte("user-agent: *\ncontent-usage: train-ai=n\ncontent-signal: ai-train=no\n")), "ExampleBot", "/")
	for _, label := range []usage.Label{"ai-train", "Train-AI", "", "train-ai ", "use=immediate"} {
		if p, by, err := usage.For(said, label); err == nil || p != usage.Unknown || by != (usage.Statement{}) {
			t.Errorf("%q: got %v by %v, error %v, want an error alone", label, p, by, err)
		}
	}
	for _, m := range usage.Table() {
		if _, _, err := usage.For(nil, m.Label); err != nil {
			t.Error(err)
		}
	}
}

// An offset is one of a meta element, as in package page.
func TestOffsetsAreOfMetaElements(t *testing.T) {
	said := usage.ParseRobots(policy.Parse([]byte("user-agent: *\ncontent-usage: train-ai=n\ncontent-signal: ai-train=no\n")), "ExampleBot", "/")
	said = append(said, usage.ParseHeader(http.Header{"Tdm-Reservation": {"1"}, "Content-Usage": {"search=y"}})...)
	said = append(said, usage.ParseTDMRep([]byte(`[{"location":"/","tdm-reservation":1}]`), "/")...)
	said = append(said, usage.ParseRules(page.ParseHeader([]string{"noai"}), policy.RFC9309, "ExampleBot")...)
	said = append(said, usage.ParseRules(page.ParseMeta("robots", "noai"), policy.RFC9309, "ExampleBot")...)
	said = append(said, usage.ParseMeta("tdm-reservation", "1", -1)...)
	if len(said) != 8 {
		t.Errorf("got %d statements, want 8", len(said))
	}
	for _, s := range said {
		if s.Offset != -1 {
			t.Errorf("%v: offset %d, want -1", s, s.Offset)
		}
	}
	if s := usage.ParseMeta("tdm-reservation", "1", 0)[0]; s.Offset != 0 {
		t.Errorf("%v: offset %d, want 0", s, s.Offset)
	}
	if got := (usage.Statement{}).String(); got != "no statement" {
		t.Errorf("the zero Statement is %q, want \"no statement\"", got)
	}
}

// The statement that For returns is the first that says what For says.
func TestAStatementIsOneBoundedLine(t *testing.T) {
	for _, s := range usage.ParseHeader(http.Header{"Content-Signal": {strings.Repeat("\n\x1b", 9000)}, "Tdm-Policy": {strings.Repeat("x", 9000)}}) {
		if text := s.String(); len(text) > 2000 || strings.ContainsAny(text, "\n\x1b") {
			t.Errorf("got %d bytes, want one printable line of 2,000 at most: %.300s", len(text), text)
		}
	}
}

func TestForNamesWhoSaysSo(t *testing.T) {
	p := policy.Parse([]byte("user-agent: *\ncontent-usage: train-ai=y\ncontent-signal: ai-train=yes\n" +
		"content-usage: train-ai=n\ncontent-signal: ai-train=no"))
	said := usage.ParseRobots(p, "ExampleBot", "/")
	if got, by, _ := usage.For(said, "train-ai"); got != usage.Disallow || by.Line != 4 || by.By != "Content-Usage" {
		t.Errorf("got %v by %v, want disallow by line 4", got, by)
	}
	if got, by, _ := usage.For(said[:1], "train-ai"); got != usage.Allow || by != said[0] {
		t.Errorf("got %v by %v, want allow by %v", got, by, said[0])
	}
	if got, by, _ := usage.For(said, "search"); got != usage.Unknown || by != (usage.Statement{}) {
		t.Errorf("got %v by %v, want unknown by none", got, by)
	}
}

// silent is a file without preferences, but with other records.
const silent = "user-agent: *\ndisallow: /x\ncrawl-delay: 1\nhost: example.com\nsitemap: https://example.com/s.xml"

func TestNoFileSaysNothing(t *testing.T) {
	for name, p := range map[string]*policy.Policy{
		"nil": nil, "zero": {}, "unavailable": policy.Unavailable(), "unreachable": policy.Unreachable(),
		"empty": policy.Parse(nil), "without": policy.Parse([]byte(silent)),
	} {
		if said := usage.ParseRobots(p, "ExampleBot", "/", "Google-Extended"); said != nil {
			t.Errorf("%s: got %v, want nothing", name, said)
		}
	}
	if said := usage.ParseHeader(nil); said != nil {
		t.Errorf("no header: got %v, want none", said)
	}
}

// P-56, P-81: what was said can be stored with the asset, as JSON has it.
func TestPreferencesAreText(t *testing.T) {
	text, err := json.Marshal([]usage.Preference{usage.Unknown, usage.Disallow, usage.Allow, 9})
	if err != nil || string(text) != `["unknown","disallow","allow","unknown"]` {
		t.Errorf(`got %s, %v, want ["unknown","disallow","allow","unknown"]`, text, err)
	}
	s := usage.ParseHeader(http.Header{"Content-Usage": {"train-ai=n"}})
	text, err = json.Marshal(s)
	var again []usage.Statement
	if err != nil || json.Unmarshal(text, &again) != nil || !slices.Equal(again, s) {
		t.Errorf("got %v of %v, want it again", again, s)
	}
}

// A flood of statements costs no more than its bound, and the last of them says so. It is that
// of a dictionary (RFC 9651 §3.2), not that of a page's rules (P-42).
func TestStatementsAreBounded(t *testing.T) {
	var members, lines strings.Builder
	for i := range 3_000 {
		fmt.Fprintf(&members, "a%d=n, ", i)
		fmt.Fprintf(&lines, "content-usage: /a a%d=n\n", i)
	}
	many := members.String() + "train-ai=n"
	long := strings.Repeat("a", 64<<10) + "=n"
	robots := "user-agent: *\n" + lines.String()
	links := strings.Repeat(`<https://e/>;rel=license;type="application/rsl+xml",`, 1_000)
	for name, said := range map[string][]usage.Statement{
		"members":   usage.ParseHeader(http.Header{"Content-Usage": {many}}),
		"long":      usage.ParseHeader(http.Header{"Content-Usage": {long}}),
		"fields":    usage.ParseHeader(http.Header{"Content-Signal": slices.Repeat([]string{"search=no"}, 10_000)}),
		"signals":   usage.ParseHeader(http.Header{"Content-Signal": {strings.Repeat("x=no,", 10_000)}}),
		"links":     usage.ParseHeader(http.Header{"Link": {links, links}}),
		"tdm":       usage.ParseHeader(http.Header{"Tdm-Reservation": slices.Repeat([]string{"1"}, 10_000)}),
		"meta":      usage.ParseMeta("tdm-policy", "https://e/"+long, 0),
		"lines":     usage.ParseRobots(policy.Parse([]byte(robots)), "ExampleBot", "/a"),
		"wellknown": usage.ParseTDMRep(make([]byte, 2<<20), "/a"),
	} {
		if n := len(said); n < 1 || n > 1025 || said[n-1].Problem != "there is more than is read" {
			t.Errorf("%s: got %d statements, the last %v with %q", name, n, said[n-1], said[n-1].Problem)
		}
	}
}

// Nothing that a site sends takes long: among others, 6,400 paths that cost much for a target of a's.
func TestNoFileTakesLong(t *testing.T) {
	if testing.Short() || proc.UnderRace() {
		t.Skip("compares times")
	}
	tier.Gate(t)
	target := "/" + strings.Repeat("a", 16<<10-1)
	soon := func(name string, ask func()) {
		t.Helper()
		if took := proc.CPUTime(ask); took > 2*time.Second {
			t.Errorf("%s took %v, want 2s at most", name, took)
		}
	}
	for name, path := range map[string]func(i int) string{
		"one path":     func(int) string { return "/a*b*c" },
		"none matches": func(i int) string { return fmt.Sprintf("/a*%d*b", i) },
		"partly":       func(i int) string { return fmt.Sprintf("/*aaaaaaaaaaaaaaaab%06d", i) },
		"ever longer":  func(i int) string { return "/*a" + strings.Repeat("*", i%50) + "a" },
		"all as long": func(i int) string {
			return "/" + strings.NewReplacer("0", "a", "1", "*").Replace(fmt.Sprintf("%015b", i)) + "a"
		},
		"as long, but one": func(i int) string { return "/a*" + strings.ReplaceAll(fmt.Sprintf("%06d", i), "000000", "aaaaaa") },
		"escapes":          func(i int) string { return fmt.Sprintf("/a%%%02X%%61*%06d", 0x80+i%100, i) },
	} {
		lines, entries := []byte("user-agent: *\n"), []byte("[")
		for i := range 6_400 {
			lines = append(lines, "content-usage: "+path(i)+" a=n\n"...)
			if len(entries) < 60<<10 {
				entries = fmt.Appendf(entries, `{"location":%q},`, path(i))
			}
		}
		p, file := policy.Parse(lines), append(entries, `{"location":"/b"}]`...)
		soon(name+" in robots.txt", func() { usage.ParseRobots(p, "ExampleBot", target) })
		soon(name+" in tdmrep.json", func() { usage.ParseTDMRep(file, target) })
	}
	for name, field := range map[string][2]string{
		"parameters":   {"Content-Usage", "a" + strings.Repeat(";a", 30_000)},
		"inner list":   {"Content-Usage", "a=(" + strings.Repeat("a ", 30_000)},
		"open link":    {"Link", strings.Repeat("<", 60_000)},
		"quoted links": {"Link", strings.Repeat(`<>"`, 20_000)},
	} {
		soon(name, func() { usage.ParseHeader(http.Header{field[0]: {field[1]}}) })
	}
}

// P-83: a file without preferences costs no allocation, nor does a question about what was said.
func TestNoAllocationWhereNothingIsSaid(t *testing.T) {
	p := policy.Parse([]byte(silent))
	header := http.Header{"Content-Type": {"text/html"}, "Server": {"x"}}
	said := usage.ParseHeader(http.Header{"Content-Usage": {"train-ai=y, search=n"}})
	if n := testing.AllocsPerRun(100, func() {
		usage.ParseRobots(p, "ExampleBot", "/a")
		usage.ParseHeader(header)
		usage.For(said, "train-ai")
	}); n != 0 {
		t.Errorf("got %v allocations, want 0", n)
	}
}

// RFC 8259 §8.3: names are compared by their characters. Another spelling takes nothing away.
func TestNamesOfTDMRepHaveOneSpelling(t *testing.T) {
	for _, file := range []string{
		`[{"location":"/","tdm-reservation":1,"TDM-Reservation":0}]`,
		`[{"location":"/","Location":"/zzz","tdm-reservation":1}]`,
		`[{"location":"/x#","tdm-reservation":0},{"location":"/x\nuser-agent: a","tdm-reservation":0},{"location":"/","tdm-reservation":1}]`,
	} {
		what, _, err := usage.For(usage.ParseTDMRep([]byte(file), "/x"), usage.TrainAI)
		if err != nil || what != usage.Disallow {
			t.Errorf("%s: got %v, %v, want disallow", file, what, err)
		}
	}
}

// A site that refuses is understood, also with a sign too many; what permits has to be exact.
func TestANoThatCanBeReadIsNo(t *testing.T) {
	for value, want := range map[string]string{
		"ai-train=no": "disallow", "ai-train=no;": "disallow", "ai-train: no": "disallow", "ai-train=\"no\"": "disallow",
		"search=yes, ai-train: no;": "disallow", "ai-train=NO.": "disallow",
		"ai-train=no; search=yes": "disallow", "search=yes; ai-train=no": "disallow", "search=yes ai-train = 'no'": "disallow",
		"ai-train==no": "disallow", "ai-train=(no)": "disallow", "ai-train=\u00a0\u201cno\u201d": "disallow", "{'ai-train' => no}": "disallow",
		"ai-train=, no": "unknown", "ai-train=no-search": "unknown",
		"ai-train=yes;": "unknown", "ai-train: yes": "unknown", "ai-train=none": "unknown", "ai-train": "unknown", "ai-train=yes": "allow",
	} {
		p := policy.Parse([]byte("User-agent: *\nContent-Signal: " + value + "\nAllow: /\n"))
		if got := preference(t, usage.ParseRobots(p, "ExampleBot", "/"), usage.TrainAI).String(); got != want {
			t.Errorf("%s: got %s, want %s", value, got, want)
		}
	}
}

// An escape counts for the byte that it stands for: both paths are as long.
func TestAnEscapedPathIsAsLongAsThatInUTF8(t *testing.T) {
	for _, file := range []string{
		"User-agent: *\nContent-Usage: /%C3%A9 train-ai=y\nContent-Usage: /é train-ai=n\n",
		"User-agent: *\nContent-Usage: /é train-ai=y\nContent-Usage: /%C3%A9 train-ai=n\n",
		"User-agent: *\nContent-Usage: /é train-ai=n\nContent-Usage: / train-ai=y\n",
	} {
		said := usage.ParseRobots(policy.Parse([]byte(file)), "a", "/%C3%A9")
		if got := preference(t, said, usage.TrainAI); got != usage.Disallow {
			t.Errorf("got %v, want %v of\n%s", got, usage.Disallow, file)
		}
	}
}

func TestTheLastByteOf64KiBIsRead(t *testing.T) {
	for size, want := range map[int]usage.Preference{64 << 10: usage.Disallow, 64<<10 + 1: usage.Unknown} {
		value := strings.Repeat(" ", size-len("ai-train=no")) + "ai-train=no"
		said := usage.ParseHeader(http.Header{"Content-Signal": {value}})
		if got := preference(t, said, usage.TrainAI); got != want {
			t.Errorf("%d bytes: got %v, want %v", size, got, want)
		}
	}
}

// What a page and robots.txt say about a use is one answer, and "no" wins. What robots.txt says has to be known.
func TestCombine(t *testing.T) {
	file := policy.Parse([]byte("User-agent: *\nContent-Usage: train-ai=y\nContent-Usage: /b/ train-ai=n\n"))
	for _, row := range []struct {
		name, target string
		robots       *policy.Policy
		header       http.Header
		use          usage.Label
		want         usage.Preference
		fails        bool
	}{
		{"yes", "/a/x", file, nil, usage.TrainAI, usage.Allow, false},
		{"no", "/b/x", file, nil, usage.TrainAI, usage.Disallow, false},
		{"no by the header", "/a/x", file, http.Header{"Content-Usage": {"train-ai=n"}}, usage.TrainAI, usage.Disallow, false},
		{"no in spite of the header", "/b/x", file, http.Header{"Content-Usage": {"train-ai=y"}}, usage.TrainAI, usage.Disallow, false},
		{"no file", "/b/x", policy.Unavailable(), nil, usage.TrainAI, usage.Unknown, false},
		{"unreachable", "/a/x", policy.Unreachable(), nil, usage.TrainAI, usage.Disallow, true},
		{"never read", "/a/x", nil, nil, usage.TrainAI, usage.Disallow, true},
		{"a misspelt use", "/a/x", file, nil, "train_ai", usage.Disallow, true},
	} {
		got, by, err := usage.Combine(row.use, row.robots, "ExampleBot", row.target, usage.ParseHeader(row.header)...)
		if got != row.want || (err != nil) != row.fails {
			t.Errorf("%s: got %v by %v, %v, want %v, an error: %v", row.name, got, by, err, row.want, row.fails)
		}
	}
}
