package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/serve"
	"github.com/robotsgate/robotsgate/integration_test/tier"
)

// chromium starts a browser without a window, and skips the test if there is none.
func chromium(t *testing.T) context.Context {
	t.Helper()
	tier.Nightly(t)
	binary, err := exec.LookPath("chromium")
	if err != nil {
		t.Skipf("%v: apt-get install chromium", err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(binary), chromedp.UserDataDir(t.TempDir()), chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	ctx, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, end := chromedp.NewContext(ctx)
	t.Cleanup(func() { chromedp.Cancel(ctx); end(); stop() })
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	return ctx
}

// tab is a page of a browser. What the console and the Content-Security-Policy complain of fails
// the test.
type tab struct {
	t     *testing.T
	ctx   context.Context
	mu    sync.Mutex
	wrong []string
}

func newTab(t *testing.T, browser context.Context, width int) *tab {
	t.Helper()
	ctx, end := chromedp.NewContext(browser)
	p := &tab{t: t, ctx: ctx}
	t.Cleanup(func() {
		end()
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, w := range p.wrong {
			t.Error(w)
		}
	})
	if err := chromedp.Listen(ctx, p.listen); err != nil {
		t.Fatal(err)
	}
	call(p, log.Enable, cdp.Empty{})
	call(p, audits.Enable, cdp.Empty{})
	p.run(chromedp.EmulateViewport(int64(width), 900))
	return p
}

func (p *tab) listen(event any) {
	said := ""
	switch e := event.(type) {
	case *log.EventEntryAdded:
		// What the page answers with a 4xx is in the log of the network.
		if e.Entry.Level == log.EntryLevelError && !strings.Contains(e.Entry.Text, "status of 4") {
			said = "log: " + e.Entry.Text + " " + e.Entry.URL
		}
	case *runtime.EventExceptionThrown:
		said = fmt.Sprintf("exception: %+v", e.ExceptionDetails)
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeAssert {
			said = fmt.Sprintf("console: %s", e.Args[0].Value)
		}
	case *audits.EventIssueAdded:
		if d := e.Issue.Details.ContentSecurityPolicyIssueDetails; d != nil {
			said = fmt.Sprintf("CSP: %+v", d)
		}
	}
	if said != "" {
		p.mu.Lock()
		p.wrong = append(p.wrong, said)
		p.mu.Unlock()
	}
}

func (p *tab) run(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, 2*time.Minute) // of a busy machine
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		p.t.Fatal(err)
	}
}

// call gives the browser a command of its protocol.
func call[P, R any](p *tab, c cdp.Command[P, R], params P) R {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, 2*time.Minute) // of a busy machine
	defer cancel()
	r, err := chromedp.Call(ctx, c, params)
	if err != nil {
		p.t.Fatal(err)
	}
	return r
}

// eval returns the value of a JavaScript expression, and waits for it if it is a promise.
func eval[T any](p *tab, expression string) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, 2*time.Minute) // of a busy machine
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatal(expression, err)
	}
	return value
}

// await waits until an expression is true, on whatever page the tab is then.
func (p *tab) await(expression string) {
	p.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for last := time.Now().Add(time.Minute); ; <-tick.C {
		is, err := chromedp.Run(p.ctx, chromedp.Evaluate[bool]("!!("+expression+")"))
		if err == nil && is {
			return
		}
		if time.Now().After(last) {
			p.t.Fatal(expression, err, eval[string](p, `document.body.innerText.slice(0, 1000)`))
		}
	}
}

// shoot keeps a picture of the page, at most 3,000 pixels high, in $ROBOTSGATE_SCREENSHOTS or with the
// artefacts of the test (-artifacts).
func (p *tab) shoot(name string) {
	p.t.Helper()
	dir := os.Getenv("ROBOTSGATE_SCREENSHOTS")
	if dir == "" {
		dir = p.t.ArtifactDir()
	}
	size := call(p, page.GetLayoutMetrics, cdp.Empty{}).CSSContentSize
	whole := true
	shot := call(p, page.CaptureScreenshot, page.CaptureScreenshotParams{CaptureBeyondViewport: &whole,
		Clip: &page.Viewport{Width: size.Width, Height: min(size.Height, 3000), Scale: 1}})
	if err := os.WriteFile(filepath.Join(dir, name+".png"), shot.Data, 0o600); err != nil {
		p.t.Error(err)
	}
}

// shopFile is the file of shop.example.
const shopFile = `# The shop
User-agent: Googlebot
User-agent: Bingbot
Disallow: /search
Allow: /search/about$
Crawl-delay: 10

User-agent: *
Disallow: /cart/
Disallow: /private/
Allow: /private/press/
Disallow /tmp
Noindex: /old

Sitemap: https://shop.example/sitemap.xml
`

// hostileFile tries what a file can do to the page that quotes it.
var hostileFile = "User-agent: *\nDisallow: /<script>pwned=1</script>\n" +
	"</pre></code></li></ol></script><img src=x onerror=pwned=1>\n" +
	"<style>*{display:none}</style><base href=//evil.example><meta http-equiv=refresh content=0;url=//evil.example>\n" +
	"# \x1b[31mred\x1b[0m \u202eevil\u202c \u2066x\u2069 \x00 nul \x07 {{.}} ${x} <!-- ]]> -->\n" +
	"Sitemap: javascript:pwned=1\nSitemap: data:text/html,<script>pwned=1</script>\n" +
	"Disallow: /\"onmouseover=\"pwned=1\n" +
	"User-agent: \"><svg onload=pwned=1>\nDisallow: /private\n\xff\xfe\xc3\x28\n" +
	"Allow: /" + strings.Repeat("<b>x</b>&#60;", 40<<10) + "\n"

func pageSite(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	switch r.Host {
	case "moved.example":
		http.Redirect(w, r, "http://shop.example/robots.txt", http.StatusFound)
	case "down.example":
		w.Header().Set("Retry-After", "120")
		w.WriteHeader(http.StatusServiceUnavailable)
	case "none.example":
		w.WriteHeader(http.StatusNotFound)
	case "hostile.example":
		w.Header().Set("ETag", `"<script>pwned=1</script>"`)
		w.Write([]byte(hostileFile))
	case "mapped.example":
		if r.URL.Path == "/s.txt" {
			w.Write([]byte("http://mapped.example/\nhttp://mapped.example/cart/" + strings.Repeat("long", 100) + "\n"))
			return
		}
		w.Write([]byte("User-agent: *\nDisallow: /cart/\nCrawl-delay: 0.01\nSitemap: http://mapped.example/s.txt\nSitemap: http://mapped.example/cart/s.txt\n"))
	case "listed.example":
		if r.URL.Path != "/robots.txt" {
			w.Header().Set("Content-Type", "text/html")
			w.Write([]byte(`<meta name="googlebot" content="noindex"><img src="/cart/a.png">`))
			return
		}
		w.Write([]byte("User-agent: Bingbot\nDisallow: /essay\n\nUser-agent: *\nDisallow: /cart/\n"))
	default:
		w.Write([]byte(shopFile))
	}
}

const manyURLs = "?site=http://moved.example/private/x&agent=ExampleBot&urls=/search/about%0A" +
	"/private/press/2024%0A/tmp/x%0A" +
	"http://other.example/a%0A//"

const listedURL = "?site=http://listed.example/essay&agent=ExampleBot&read=1"

const mappedURL = "?site=http://mapped.example&agent=ExampleBot&sitemaps=1"

func TestPageInChromium(t *testing.T) {
	tier.Nightly(t)
	t.Parallel()
	browser := chromium(t)
	v := startServe(t, serve.UsualLimits(), "--private", "--timeout=2s", siteServer(t, pageSite))
	for name, test := range map[string]func(*testing.T, context.Context, string){
		"looks":         pageLooks,
		"keyboard":      pageByKeyboard,
		"typing":        pageFollowsTyping,
		"asking":        pageAsksWithoutReload,
		"focus":         pageKeepsTheFocus,
		"no script":     pageWithoutScript,
		"hostile":       pageQuotesHostileFiles,
		"accessibility": pageHasRolesAndNames,
		"first screen":  pageAnswersOnTheFirstScreen,
	} {
		t.Run(name, func(t *testing.T) { test(t, browser, v.url+"/") })
	}
}

func pageLooks(t *testing.T, browser context.Context, at string) {
	for name, question := range map[string]string{
		"empty": "", "pasting": "?source=text", "many": manyURLs, "listed": listedURL, "mapped": mappedURL,
		"one":  "?site=http://shop.example/private/x&agent=ExampleBot",
		"down": "?site=http://down.example/x", "none": "?site=http://none.example", "wrong": "?site=mailto:x",
		"hostile": "?site=http://hostile.example/private%0A",
		"group":   "?site=http://shop.example/search/about&agent=googlebot&as=google",
		"pasted":  "?source=text&urls=/private/x%0A/&robots=User-agent:*%0ADisallow:/private/%0ANoindex:/x",
	} {
		p := newTab(t, browser, 360)
		p.run(chromedp.Navigate(at + question))
		eval[any](p, `document.querySelectorAll('.answer:nth-child(3) details, section > details')
			.forEach(d => d.open = true)`)
		for _, width := range []int{360, 800, 1400} {
			p.run(chromedp.EmulateViewport(int64(width), 900))
			if over := eval[int](p, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
				t.Errorf("%s at %d: %d pixels are beside the page", name, width, over)
			}
			for _, scheme := range []string{"light", "dark"} {
				p.prefer(scheme)
				if name == "many" || os.Getenv("ROBOTSGATE_SCREENSHOTS") != "" {
					p.shoot(fmt.Sprintf("%s-%d-%s", name, width, scheme))
				}
			}
		}
	}
}

// What people ask is answered without scrolling: may a crawler fetch a page, which crawlers are shut out of another
// and by which line, and what is wrong with a file.
func pageAnswersOnTheFirstScreen(t *testing.T, browser context.Context, at string) {
	const file = "User-agent: *\nDisallow: /private/\nDisallow /tmp\nDisalow: /c\n"
	for _, c := range []struct{ question, field, text, answer, want string }{
		{"?crawler=Googlebot", "site", "http://shop.example/a", ".say", "Allowed: no rule matches"},
		{"", "site", "http://shop.example/search", ".each tbody tr", "line 4 line 4"},
		{"?source=text", "robots", file, "[aria-labelledby=mistakes] .fix code", "Disallow: /tmp Disallow: /c"},
	} {
		for _, size := range [][2]int64{{360, 740}, {800, 900}, {1400, 900}} {
			p := newTab(t, browser, 360)
			p.run(chromedp.EmulateViewport(size[0], size[1]), chromedp.Navigate(at+c.question))
			eval[any](p, fmt.Sprintf(`document.getElementById(%q).value = %q`, c.field, c.text))
			p.run(chromedp.Click(chromedp.CSS("#question > button")))
			p.await(fmt.Sprintf(`document.querySelector('#answer %s')`, c.answer))
			eval[any](p, `new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))`)
			got := eval[string](p, fmt.Sprintf(`[...document.querySelectorAll('#answer %s')].filter(e => {
				const at = e.getBoundingClientRect();
				return at.top >= 0 && at.bottom <= innerHeight;
			}).map(e => e.matches('tr') ? e.querySelector('.no')?.textContent.match(/line .*/)[0] : e.textContent).filter(Boolean).join(' ')`, c.answer))
			if got != c.want {
				t.Errorf("%s%s at %d: the first screen has %q, want %q", at, c.question, size[0], got, c.want)
			}
		}
	}
}

// prefer has the page shown in a colour scheme.
func (p *tab) prefer(scheme string) {
	p.t.Helper()
	call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
}

// focused describes what has the focus.
const focused = `(() => { const e = document.activeElement; return e === document.body ? '' :
	(e.labels?.[0]?.textContent ?? e.textContent).replace(/\s+/g, ' ').trim() +
	(getComputedStyle(e).outlineStyle !== 'none' && parseFloat(getComputedStyle(e).outlineWidth) >= 2 ? '' : ' WITHOUT OUTLINE');
})()`

func pageByKeyboard(t *testing.T, browser context.Context, at string) {
	p := newTab(t, browser, 800)
	p.run(chromedp.Navigate(at))
	tabs := func(n int) (names []string) {
		for range n {
			p.run(chromedp.KeyEvent(kb.Tab))
			names = append(names, eval[string](p, focused))
		}
		return names
	}
	want := []string{"Ask a site", "Paste a file", "Crawler", "or its token", "Site or URL"}
	if got := tabs(5); !slices.Equal(got, want) {
		t.Errorf("the focus goes to %q, want %q", got, want)
	}
	p.run(chromedp.KeyEvent("http://shop.example/private/press/1"), chromedp.KeyEvent(kb.Enter))
	p.await(`document.getElementById('status').textContent === 'Allowed by line 11'`)
	want = []string{"More URLs or paths of it, one on each line", "Read as", "Ask the site", "line 11"}
	if got := tabs(4); !slices.Equal(got, want) {
		t.Errorf("the focus goes to %q, want %q", got, want)
	}
	p.run(chromedp.KeyEvent(kb.Enter))
	p.await(`location.hash === '#L11' && document.querySelector('#L11').getBoundingClientRect().top < innerHeight`)
	// From there on to the end, and round: nothing keeps the focus.
	seen := map[string]bool{}
	for range 60 {
		if name := tabs(1)[0]; name == "Ask a site" {
			seen[name] = true
			break
		} else if strings.Contains(name, "WITHOUT") {
			t.Errorf("%s", name)
		}
	}
	if !seen["Ask a site"] {
		t.Error("the focus does not come round")
	}
}

func pageFollowsTyping(t *testing.T, browser context.Context, at string) {
	p := newTab(t, browser, 1400)
	p.run(chromedp.Navigate(at+"?urls=/cart/1&agent=ExampleBot"), chromedp.Click(chromedp.CSS("nav a:last-child")),
		chromedp.SendKeys(chromedp.CSS("#robots"), "User-agent: *\nDisallow: /ca"))
	p.await(`document.getElementById('status').textContent === 'Refused by line 2'`)
	p.run(chromedp.SendKeys(chromedp.CSS("#robots"), "x"))
	p.await(`document.getElementById('status').textContent === 'Allowed: no rule matches'`)
	link := eval[string](p, `document.getElementById('link').href`)
	if here := eval[string](p, `location.href`); strings.Contains(here, "robots=") || strings.Contains(here, "Disallow") {
		t.Errorf("the file is in the address bar: %s", here)
	}
	if n := eval[int](p, `history.length`); n > 3 { // a blank page, the form, the other form
		t.Errorf("typing has left %d steps in the history", n)
	}
	other := newTab(t, browser, 1400)
	other.run(chromedp.Navigate(link))
	for _, id := range []string{"robots", "urls", "crawler", "agent", "as"} {
		get := fmt.Sprintf("document.getElementById(%q).value", id)
		if got, want := eval[string](other, get), eval[string](p, get); got != want {
			t.Errorf("%s is %q behind the link, want %q", id, got, want)
		}
	}
	const answer = `document.getElementById('answer').textContent`
	if got, want := eval[string](other, answer), eval[string](p, answer); got != want {
		t.Errorf("behind the link: %s\nwant %s", got, want)
	}
}

func pageAsksWithoutReload(t *testing.T, browser context.Context, at string) {
	p := newTab(t, browser, 360)
	p.run(chromedp.Navigate(at))
	eval[any](p, `window.here = true`)
	ask := func(site, want string) {
		p.run(chromedp.SetValue(chromedp.CSS("#site"), site), chromedp.Click(chromedp.CSS("button")))
		p.await(fmt.Sprintf(`document.getElementById('status').textContent.startsWith(%q)`, want))
		below := eval[float64](p, `document.querySelector('#answer :is(h3, .problem)')
			.getBoundingClientRect().bottom - innerHeight`)
		if below > 0 {
			t.Errorf("%s: the answer ends %g pixels below the window", site, below)
		}
	}
	ask("http://shop.example/cart/", "Refused by line 9")
	ask("http://none.example", "Allowed: robots.txt is unavailable")
	ask("mailto:x", `"mailto:x" is no http`)
	ask("http://down.example", "Refused: robots.txt is unreachable")
	if !eval[bool](p, `here`) {
		t.Error("the page was loaded again")
	}
	p.run(chromedp.NavigateBack())
	p.await(`document.readyState === 'complete' && document.getElementById('site').value === 'mailto:x' &&
		document.getElementById('said').textContent === 'Not answered'`)
	p.run(chromedp.NavigateBack())
	p.await(`document.getElementById('site')?.value === 'http://none.example' && document.title.startsWith('Allowed')`)
}

// What has the focus in an answer has it in the next one. What is not there any more hands it to the beginning of that.
func pageKeepsTheFocus(t *testing.T, browser context.Context, at string) {
	p := newTab(t, browser, 800)
	p.run(chromedp.Navigate(at + "?site=http://listed.example/essay&agent=GPTBot"))
	for _, press := range []struct{ button, then string }{
		{"button[value=YandexBot]", "button[value=YandexBot]"}, {"button[value=Bingbot]", "button[value=Bingbot]"}, {"button[name=read]", "#said"},
	} {
		eval[any](p, fmt.Sprintf(`document.querySelector('#said').dataset.old = 1,
			document.querySelector(%q).focus()`, press.button))
		p.run(chromedp.KeyEvent(kb.Enter))
		p.await(`!document.querySelector('#said').dataset.old && !document.querySelector('#answer').hasAttribute('aria-busy')`)
		if !eval[bool](p, fmt.Sprintf(`document.activeElement.matches(%q)`, press.then)) {
			t.Errorf("behind %s the focus is at %s", press.button, eval[string](p, `document.activeElement.outerHTML.slice(0, 80)`))
		}
	}
	if !eval[bool](p, `!!document.querySelector('section[aria-labelledby=listed] li')`) {
		t.Error("it does not say whether the page may be listed")
	}
}

func pageWithoutScript(t *testing.T, browser context.Context, at string) {
	p := newTab(t, browser, 800)
	call(p, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	// Which page the tab shows is known by what it says: each click leads to another.
	says := func(selector, want string) {
		t.Helper()
		p.await(fmt.Sprintf(`document.readyState === 'complete' && document.querySelector(%q)?.textContent.trim().startsWith(%q)`, selector, want))
	}
	p.run(chromedp.Navigate(at), chromedp.SendKeys(chromedp.CSS("#site"), "http://shop.example/cart/1"), chromedp.Click(chromedp.CSS("button")))
	says("#u1 h3 .say", "Refused by line 9: Disallow: /cart/")
	p.run(chromedp.Click(chromedp.CSS("nav a:last-child")))
	says("#robots", "")
	p.run(chromedp.SendKeys(chromedp.CSS("#robots"), "User-agent: *\nDisallow: /a\nDisallow: /ab"),
		chromedp.SendKeys(chromedp.CSS("#urls"), "/abc\n/b"), chromedp.Click(chromedp.CSS("button")))
	says("#u2 h3 .say", "Allowed: no rule matches")
	says("#u1 h3 .say", "Refused by line 3: Disallow: /ab")
	says("#robots", "User-agent: *")
	if n := eval[int](p, `[...document.querySelectorAll('button')].filter(b => b.form?.id !== 'question').length`); n != 0 {
		t.Errorf("%d buttons that the server does not answer", n)
	}
	p.run(chromedp.Click(chromedp.CSS(`button[value="Googlebot"]`)))
	says(".mine button", "Googlebot")
	p.run(chromedp.Navigate(at+"?site=http://shop.example/cart/1"), chromedp.Click(chromedp.CSS(`button[name="edit"]`)))
	says("#robots", "# The shop")
	says("#u1 h3 .say", "Refused by line 9: Disallow: /cart/")
	p.run(chromedp.Navigate(at+"?site=http://mapped.example/"), chromedp.Click(chromedp.CSS(`button[name="sitemaps"]`)))
	says("#counted", "1 of 2 URLs read in the sitemaps is refused")
}

// quotes checks that the hostile file is on the page, as text.
func (p *tab) quotes(at, how string) {
	p.t.Helper()
	if got := eval[string](p, `typeof pwned`); got != "undefined" {
		p.t.Errorf("%s: the file ran a script", how)
	}
	if got := eval[string](p, `[...document.querySelectorAll('#answer :is(script, img, style, svg, base, meta, pre, b)')]
		.map(e => e.outerHTML).join()`); got != "" {
		p.t.Errorf("%s: the file made %.200s", how, got)
	}
	for _, link := range eval[[]string](p, `[...document.querySelectorAll('a')].map(a => a.href)`) {
		if !strings.HasPrefix(link, at) && !strings.HasPrefix(link, "https://github.com/robotsgate/robotsgate/") {
			p.t.Errorf("%s: a link to %s", how, link)
		}
	}
	got := eval[string](p, `document.getElementById('answer').textContent`)
	if at := strings.IndexFunc(got, func(r rune) bool { return r != '\n' && r != '\ufffd' && answer.Hidden(r) }); at >= 0 {
		p.t.Errorf("%s: the page shows %q", how, got[at:min(at+20, len(got))])
	}
	for _, want := range []string{`<script>pwned=1</script>`, `\u202eevil`, `\x1b[31mred`} {
		if !strings.Contains(got, want) {
			p.t.Errorf("%s: %s is not shown: %.2000s", how, want, got)
		}
	}
}

func pageQuotesHostileFiles(t *testing.T, browser context.Context, at string) {
	p := newTab(t, browser, 800)
	p.run(chromedp.Navigate(at))
	fill := func(id, value string) {
		eval[any](p, fmt.Sprintf(`document.getElementById(%q).value =
			new TextDecoder().decode(Uint8Array.from(atob(%q), c => c.charCodeAt(0)))`, id,
			base64.StdEncoding.EncodeToString([]byte(value))))
	}
	fill("site", `http://hostile.example/private?<script>pwned=1</script>`)
	fill("urls", `/"><img src=x onerror=pwned=1>`+"\n/</textarea><script>pwned=1</script>")
	fill("agent", "svg")
	p.run(chromedp.Click(chromedp.CSS("button")))
	p.await(`document.querySelector('#L5')`)
	p.quotes(at, "fetched by the script")
	p.run(chromedp.Reload())
	p.await(`document.querySelector('#L5')`)
	p.quotes(at, "written by the server")
	p.run(chromedp.Navigate(at + "?source=text"))
	fill("robots", "</textarea><script>pwned=1</script>\n"+hostileFile)
	p.run(chromedp.Click(chromedp.CSS("button")))
	p.await(`document.querySelector('#L5')`)
	p.quotes(at, "pasted")
}

// spoken is what a screen reader says of a property.
func spoken(v *accessibility.Value) (text string) {
	if v != nil {
		json.Unmarshal(v.Value, &text)
	}
	return text
}

func pageHasRolesAndNames(t *testing.T, browser context.Context, at string) {
	p := newTab(t, browser, 1400)
	p.run(chromedp.Navigate(at + "?site=http://shop.example/private/press/x"))
	// The browser makes the tree a while after the page: it is asked for until it has all, or will not have it.
	var missing []string
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for last := time.Now().Add(time.Minute); ; <-tick.C {
		missing = nil
		found := spokenOn(p)
		for _, want := range []string{
			"banner ", "navigation Where the file is from", "main ", "form Question", "contentinfo ", "status ",
			"heading Which line of robots.txt decides?", "heading http://shop.example/private/press/x Allowed by line 11: Allow: /private/press/",
			"textbox Site or URL", "textbox More URLs or paths of it, one on each line", "combobox Crawler", "textbox or its token", "combobox Read as",
			"button Ask the site", "button Copy link", "link Link to this question", "list Answers", "list Lines 1 to 15",
			"list Lines that the answer rests on", "region The file 15 lines, 255 bytes", "link line 11", "link it",
			"table Each crawler, as its engine reads the file", "columnheader Crawlers", "columnheader /private/press/x",
			"region Mistakes: 2 errors, 1 warning, 4 remarks", "link allowed, line 11", "button Googlebot-Image",
		} {
			if !found[want] {
				missing = append(missing, want)
			}
		}
		if missing == nil || time.Now().After(last) {
			break
		}
	}
	if missing != nil {
		t.Errorf("there is no %q", missing)
	}
}

// spokenOn is what a screen reader finds on a page: each role with its name.
func spokenOn(p *tab) map[string]bool {
	found := map[string]bool{}
	for _, n := range call(p, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{}).Nodes {
		if !n.Ignored && n.Role != nil {
			found[spoken(n.Role)+" "+spoken(n.Name)] = true
		}
	}
	return found
}
