package page_test

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/integration_test/proc"
	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/page"
)

const noindex = `<meta name=robots content=noindex>`

func body(text string) io.ReadCloser { return &inPieces{text: text} }

// read reads a page to its end.
func read(t testing.TB, r *page.Reader) page.Effect {
	t.Helper()
	if _, err := io.Copy(io.Discard, struct{ io.Reader }{r}); err != nil {
		t.Fatal(err)
	}
	return r.Rules().For(policy.RFC9309)
}

func TestReaderZeroValue(t *testing.T) {
	var r page.Reader
	if n, err := r.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("got %d, %v, want EOF", n, err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if e := r.Rules().For(policy.Google, "googlebot"); e != (page.Effect{}) {
		t.Errorf("got %v, want nothing", e)
	}
}

func TestReaderScansHTMLOnly(t *testing.T) {
	for _, tt := range []struct {
		contentType string
		want        bool
	}{
		{"", true}, {"text/html", true}, {"Text/HTML ; charset=UTF-8", true}, {"text/html, text/html", true},
		{"application/xhtml+xml", true}, {"text/plain", false}, {"application/json", false}, {"image/svg+xml", false},
		{"text/htmlx", false}, {"application/octet-stream;text/html", false},
	} {
		e := read(t, &page.Reader{Body: body(noindex), ContentType: tt.contentType})
		if e.NoIndex != tt.want || e.Incomplete {
			t.Errorf("%q: got %v, incomplete %v, want noindex %v", tt.contentType, e, e.Incomplete, tt.want)
		}
	}
}

func TestReaderStopsWhereItSays(t *testing.T) {
	pad := func(n int) string { return strings.Repeat("x", n) }
	const limit = 256 << 10
	for _, tt := range []struct {
		name, contentType, text string
		want, incomplete        bool
	}{
		{"in the body", "", "<head></head><body>" + noindex, true, false},
		{"at the end of the limit", "", pad(limit-len(noindex)) + noindex, true, false},
		{"a byte behind it", "", pad(limit-len(noindex)+1) + noindex, false, true},
		{"an attribute with <", "", pad(limit-20) + "<meta content='a <b' name=description>", false, true},
		{"over the limit", "", pad(limit-3) + "<META name=robots content=none>", false, true},
		{"far behind it", "", pad(2<<20) + "<Meta name=robots content=none>", false, true},
		{"in a large page", "", noindex + pad(2<<20), true, false},
		{"a long comment over the limit", "", noindex + "<!--" + pad(limit) + "-->", true, false},
		{"behind a long element", "", "<meta name=description content='" + pad(17<<10) + "'>" + noindex, true, false},
		{"behind a long script", "", "<script " + pad(2000) + ">" + pad(200<<10) + "'<meta'</script>" + noindex, true, false},
		{"XHTML, behind an empty script", "application/xhtml+xml", "<script src='a'/>" + noindex, true, false},
		{"HTML, behind what is no empty script", "", "<script src='a'/>" + noindex, false, false},
	} {
		for _, size := range []byte{255, 1} {
			r := page.Reader{Body: &inPieces{text: tt.text, sizes: []byte{size}}, ContentType: tt.contentType}
			if e := read(t, &r); e.NoIndex != tt.want || e.Incomplete != tt.incomplete {
				t.Errorf("%s: got %v, incomplete %v, want noindex %v, incomplete %v", tt.name, e, e.Incomplete, tt.want, tt.incomplete)
			}
		}
	}
}

// What is read of a page so far counts.
func TestReaderHasTheElementsReadSoFar(t *testing.T) {
	text := "<meta name=a content=b>" + noindex + "<meta name=c"
	r := &page.Reader{Body: &inPieces{text: text + " content=d>", sizes: []byte{byte(len(text)), 20}}}
	if _, err := r.Read(make([]byte, 200)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if e, got := r.Rules().For(policy.RFC9309), metas(r); !e.NoIndex || !e.Incomplete || len(got) != 2 {
			t.Errorf("got %v, incomplete %v, %v of half a page, want an incomplete noindex, and two", e, e.Incomplete, got)
		}
	}
	if e, got := read(t, r), metas(r); !e.NoIndex || e.Incomplete || !slices.Equal(got, []string{"ab0", "robotsnoindex23", "cd57"}) {
		t.Errorf("got %v, incomplete %v, %v of the whole page, want a complete noindex, and three", e, e.Incomplete, got)
	}
}

func metas(r *page.Reader) (all []string) {
	r.Metas(func(name, content string, offset int64) { all = append(all, fmt.Sprint(name, content, offset)) })
	return all
}

func TestReaderTellsThatThePageWasNotReadToItsEnd(t *testing.T) {
	r := &page.Reader{Body: &inPieces{text: noindex + "rest", sizes: []byte{byte(len(noindex))}}}
	if !r.Rules().Incomplete() {
		t.Error("got complete rules before the first byte")
	}
	if _, err := r.Read(make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	if e := r.Rules().For(policy.RFC9309); !e.NoIndex || !e.Incomplete {
		t.Errorf("got %v, incomplete %v, want noindex of what was read, incomplete", e, e.Incomplete)
	}
	broken := &page.Reader{Body: io.NopCloser(io.MultiReader(strings.NewReader(noindex), failing{}))}
	if _, err := io.ReadAll(broken); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v, want the error of the body", err)
	}
	if e := broken.Rules().For(policy.RFC9309); !e.NoIndex || !e.Incomplete {
		t.Errorf("got %v, incomplete %v of a page that breaks off, want an incomplete noindex", e, e.Incomplete)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// P-43: a piece is the caller's as soon as it is the Reader's: there is no reading ahead.
func TestReaderDoesNotReadAhead(t *testing.T) {
	in, out := io.Pipe()
	r := &page.Reader{Body: in}
	go out.Write([]byte("<me")) // and then nothing for a long time
	b := make([]byte, 100)
	if n, err := r.Read(b); string(b[:n]) != "<me" || err != nil {
		t.Errorf("got %q, %v, want \"<me\"", b[:n], err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if _, err := out.Write([]byte("ta")); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("got %v, want the body closed", err)
	}
}

// What looks like rules and makes none is handed out with the reason (P-16).
func TestLookalikesAreStatementsWithAProblem(t *testing.T) {
	text := `<meta http-equiv="X-Robots-Tag" content="noindex"><meta property="robots" content="none">`
	var got []string
	for s, why := range page.ParseHTML([]byte(text)).Explain(policy.Google, "googlebot") {
		got = append(got, fmt.Sprint(s, " ", why))
	}
	want := []string{
		`meta at byte 0: "noindex" http-equiv="X-Robots-Tag" makes no robots rules: name="robots" does`,
		`meta at byte 50: "none" property="robots" makes no robots rules: name="robots" does`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// P-42: past a limit, what was read holds, and the rules say that there was more.
func TestLimits(t *testing.T) {
	many := func(n int, s, sep string) string { return strings.Repeat(s+sep, n-1) + s }
	for _, tt := range []struct {
		name          string
		lines         []string
		statements    int
		complete, has bool // has noarchive, which stands last
	}{
		{"64 lines", append(slices.Repeat([]string{"noindex"}, 63), "noarchive"), 64, true, true},
		{"65 lines", append(slices.Repeat([]string{"noindex"}, 64), "noarchive"), 64, false, false},
		{"256 statements", []string{many(255, "noindex", ",") + ",noarchive"}, 256, true, true},
		{"257 statements", []string{many(256, "noindex", ",") + ",noarchive"}, 256, false, false},
		{"over two lines", []string{many(200, "noindex", ","), many(56, "noindex", ","), "noarchive"}, 256, false, false},
		{"64 KiB", []string{strings.Repeat("x", 64<<10-10) + ",noarchive"}, 2, true, true},
		{"a byte more", []string{strings.Repeat("x", 64<<10-9) + ",noarchive"}, 1, false, false},
		{"one item of more", []string{"noindex", strings.Repeat("x", 64<<10)}, 1, false, false},
		{"commas", []string{"noarchive" + strings.Repeat(",", 60<<10)}, 1, true, true},
	} {
		r := page.ParseHeader(tt.lines)
		if n := len(slices.Collect(r.All())); n != tt.statements || r.Incomplete() == tt.complete || r.For(policy.RFC9309).NoArchive != tt.has {
			t.Errorf("%s: got %d statements, incomplete %v, %v, want %d, %v", tt.name, n, r.Incomplete(), r.For(policy.RFC9309), tt.statements, !tt.complete)
		}
	}
	header := page.ParseHeader([]string{many(200, "noindex", ",")})
	both := header.Add(page.ParseMeta("robots", many(57, "nofollow", ",")))
	if n := len(slices.Collect(both.All())); n != 256 || !both.Incomplete() || header.Incomplete() {
		t.Errorf("of 200 and 57 statements got %d, incomplete %v, want 256, and incomplete", n, both.Incomplete())
	}
}

// Rules are immutable: what is added to one does not show in another.
func TestAStatementIsOneBoundedLine(t *testing.T) {
	long := "noindex:" + strings.Repeat("x\n\x1b", 9000)
	for s := range page.ParseHeader([]string{long}).Add(page.ParseMeta("robots", long)).Add(page.ParseHTML([]byte("<meta name=robots content='" + long + "'>"))).All() {
		if text := s.String(); len(text) > 2000 || strings.ContainsAny(text, "\n\x1b") {
			t.Errorf("got %d bytes, want one printable line of 2,000 at most: %.300s", len(text), text)
		}
	}
}

func TestAddDoesNotTouchItsOperands(t *testing.T) {
	a := page.ParseHeader([]string{"noindex, ,,,"}) // room for more
	b, c := a.Add(page.ParseHeader([]string{"nofollow"})), a.Add(page.ParseHeader([]string{"noarchive"}))
	for i, tt := range []struct {
		r    page.Rules
		want string
	}{{a, "noindex"}, {b, "noindex, nofollow"}, {c, "noindex, noarchive"}, {page.Rules{}.Add(a), "noindex"}, {a.Add(page.Rules{}), "noindex"}} {
		if got := tt.r.For(policy.RFC9309).String(); got != tt.want {
			t.Errorf("%d: got %s, want %s", i, got, tt.want)
		}
	}
}

func TestMayIndex(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	e := page.ParseHeader([]string{"unavailable_after: 2026-01-01"}).For(policy.Google)
	for _, tt := range []struct {
		e    page.Effect
		at   time.Time
		want bool
	}{
		{page.Effect{}, at, true}, {page.Effect{NoIndex: true}, at, false},
		{e, at.Add(-time.Second), true}, {e, at, true}, {e, at.Add(time.Second), false}, // P-28: after the instant
	} {
		if got := tt.e.MayIndex(tt.at); got != tt.want {
			t.Errorf("%v at %v: got %v, want %v", tt.e, tt.at, got, tt.want)
		}
	}
	if (page.Effect{NoFollow: true}).MayFollow("") {
		t.Error("P-39: a page's nofollow is not the one of its links")
	}
}

// P-43: a page's memory is that of its statements, once its beginning is read. Nothing takes long.
func TestHostilePagesCostLittle(t *testing.T) {
	soon := func(name string, read func()) {
		t.Helper()
		if took := proc.CPUTime(read); took > time.Second && !proc.UnderRace() {
			t.Errorf("%s took %v, want 1s at most", name, took)
		}
	}
	for name, lines := range hostileHeaders() {
		soon(name, func() { page.ParseHeader(lines).For(policy.Yandex, "a", "b") })
	}
	for name, text := range hostilePages() {
		r := &page.Reader{Body: body(text)}
		before := proc.Heap()
		soon(name, func() { read(t, r) })
		if kept := proc.Heap() - before; kept > 512<<10 { // some 290, and what the runtime took meanwhile
			t.Errorf("%s: %d KiB are kept, want 512 at most", name, kept>>10)
		}
		runtime.KeepAlive(r)
		runtime.KeepAlive(text)
	}
}

// hostilePages are a MiB each of what costs a careless reader most.
func hostilePages() map[string]string {
	fill := func(s string) string { return strings.Repeat(s, 1<<20/len(s)) }
	return map[string]string{
		"less":           fill("<"),
		"open tags":      fill("<a "),
		"tags":           fill("<a>"),
		"raw":            fill("<xmp></xmp>"),
		"comment":        "<!--" + fill("-->"[:2]+"!"),
		"comments":       fill("<!-->"),
		"script":         "<script>" + fill("</scrip"),
		"hidden script":  "<script><!--<script>" + fill("</script ><script>"),
		"quotes":         fill(`<a b="c'>' d='"'>`),
		"attributes":     "<p " + fill("a=b "),
		"long meta":      "<meta " + fill("a=b "),
		"metas":          fill("<meta name=a content=b>"),
		"metas of rules": fill("<meta name=a content=all>"),
		"cs":             fill("<meta " + strings.Repeat("c", 1000) + ">"),
		"wide metas":     "<meta content " + manyKeys(2000) + ">" + fill("<meta name=a content=b>"),
		"references":     fill("<meta name=robots content='" + strings.Repeat("&amp;", 200) + "'>"),
		"equals":         fill("<a ====== =\" / / >"),
		"open comments":  fill("<!-- -"),
		"declarations":   fill("<!a <?b <!-c "),
		"nested":         fill("<div><p>"),
		"end tags":       fill("</a></></ "),
		"wide attribute": "<p a='" + fill("<meta name=robots content=none>"),
		"wide content":   "<meta name=robots content='" + fill("noindex,"),
		"half metas":     fill("<meta <met <meta/"),
		"zeros":          fill("\x00<\x00meta\x00 \x00=\x00>"),
		"only zeros":     fill("\x00"),
	}
}

func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "k%d ", i)
	}
	return b.String()
}

// hostileHeaders are 64 KiB each.
func hostileHeaders() map[string][]string {
	fill := func(s string) string { return strings.Repeat(s, 64<<10/len(s)) }
	return map[string][]string{
		"commas":       {fill(",")},
		"colons":       {fill(":")},
		"blanks":       {fill(" \t")},
		"one scope":    {fill("a  b") + ":noindex"},
		"dates":        {fill("unavailable_after:Wed,1,")},
		"weekdays":     {fill("unavailable_after:Wed,")},
		"rules":        {fill("noindex,")},
		"digits":       {"max-snippet:" + fill("9")},
		"long words":   slices.Repeat([]string{strings.Repeat("n", 1000)}, 64),
		"blank scopes": {fill("a \t b:noindex,")},
	}
}
