package page_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/page"
)

// A crawler reads the header and, while it reads the page, its meta elements.
func Example() {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Header().Add("X-Robots-Tag", "otherbot: noindex")
		w.Header().Add("X-Robots-Tag", "noarchive")
		io.WriteString(w, `<html><head><meta name="examplebot" content="nofollow"></head><body>…</body></html>`)
	}))
	defer site.Close()
	resp, err := http.Get(site.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	body := &page.Reader{Body: resp.Body, ContentType: resp.Header.Get("Content-Type")}
	resp.Body = body
	defer resp.Body.Close()
	io.Copy(io.Discard, resp.Body) // what the crawler does with the page

	rules := page.ParseHeader(resp.Header.Values("X-Robots-Tag")).Add(body.Rules())
	e := rules.For(policy.RFC9309, "ExampleBot")
	fmt.Println(e)
	fmt.Println("index:", e.MayIndex(time.Now()), "follow:", e.MayFollow(""), "keep a copy:", !e.NoArchive)
	// Output:
	// nofollow, noarchive
	// index: true follow: false keep a copy: false
}

// Values hands over each line by itself, as it must be: the name of a crawler holds for the rest of its line.
func ExampleParseHeader() {
	header := http.Header{}
	header.Add("X-Robots-Tag", "otherbot: noindex")
	header.Add("X-Robots-Tag", "nofollow")
	rules := page.ParseHeader(header.Values("X-Robots-Tag"))
	fmt.Println("ExampleBot:", rules.For(policy.RFC9309, "ExampleBot"))
	fmt.Println("OtherBot:", rules.For(policy.RFC9309, "OtherBot"))
	// Output:
	// ExampleBot: nofollow
	// OtherBot: noindex, nofollow
}

// A program that has parsed the page already hands over the attributes.
func ExampleParseMeta() {
	fmt.Println(page.ParseMeta("robots", "noindex, max-snippet:20").For(policy.Google, "googlebot"))
	// Output: noindex, max-snippet:20
}

// One set of statements, three engines.
func ExampleRules_For() {
	rules := page.ParseHeader([]string{"all, noindex, nocache, noarchive"})
	fmt.Println("Google:", rules.For(policy.Google, "googlebot"))
	fmt.Println("Yandex:", rules.For(policy.Yandex, "yandex", "yandexbot"))
	fmt.Println("Bing:", rules.For(policy.Bing, "bingbot"))
	fmt.Println("a crawler of one's own:", rules.For(policy.RFC9309, "ExampleBot"))
	// Output:
	// Google: noindex
	// Yandex: noarchive
	// Bing: noindex, nocache
	// a crawler of one's own: noindex, noarchive, nocache
}

func ExampleRules_Explain() {
	rules := page.ParseHeader([]string{
		"noindex, noarchive, noindexing",
		"bingbot: nofollow, unavailable_after: soon",
	})
	for s, why := range rules.Explain(policy.Google, "googlebot") {
		if why == "" {
			why = "holds"
		}
		fmt.Println(s, "-", why)
	}
	// Output:
	// X-Robots-Tag line 1: "noindex" - holds
	// X-Robots-Tag line 1: "noarchive" - Google does not use the rule
	// X-Robots-Tag line 1: "noindexing" - unknown rule
	// X-Robots-Tag line 2: "bingbot: nofollow" - it is for another crawler
	// X-Robots-Tag line 2: "unavailable_after: soon" - the value is not a date that can be read
}

// Metas has meta elements of all kinds.
func ExampleReader_Metas() {
	text := `<head><meta name="generator" content="x"><meta name="robots" content="noindex"></head><body>…`
	r := &page.Reader{Body: io.NopCloser(strings.NewReader(text))}
	defer r.Close()
	io.Copy(io.Discard, r)
	r.Metas(func(name, content string, offset int64) {
		fmt.Printf("%s=%s at byte %d\n", name, content, offset)
	})
	fmt.Println(r.Rules().For(policy.RFC9309), r.Rules().Incomplete())
	// Output:
	// generator=x at byte 6
	// robots=noindex at byte 41
	// noindex false
}
