package page_test

import (
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/page"
)

// What a reader of the DOM sees is seen, or the page is incomplete: in svg and math "/>" closes
// an element, and the content of style, title and script is markup.
func TestNothingIsLostBehindForeignElements(t *testing.T) {
	for _, c := range []struct {
		text string
		read bool // and the page is complete
	}{
		{"<svg><title/></svg>" + noindex, true},
		{"<svg><style/></svg>" + noindex, true},
		{"<svg><g/><path d=m/><script href=a.js /></svg>" + noindex, true},
		{"<math><textarea/></math>" + noindex, true},
		{"<svg><svg/><g><svg></svg><title/></g></svg>" + noindex, true},
		{"<svg><style>a{}</style><title>a</title></svg>" + noindex, true},
		{"<svg/><title/>" + noindex + "</title>", false}, // not in svg any more
		{"<svg></svg><title/>" + noindex + "</title>", false},
		{"<svg><style>" + noindex + "</style></svg>", false},
		{"<svg><title>" + noindex + "</title></svg>", false},
		{"<svg><script>" + noindex + "</script></svg>", false},
		{"<svg><script><!--" + noindex + "--></script></svg>", false},
		{"<svg><plaintext></svg>" + noindex, false},
		{"<svg><desc><style/><!--</style></desc></svg>" + noindex, false},
		{"<svg><foreignObject><p><style/><!--</style></svg>" + noindex, false},
		{"<svg><p><style/><!--</style>" + noindex, false},
		{"<svg><![CDATA[ > <!-- ]]></svg>" + noindex, false},
		{"<svg><desc><style/></svg><!--</style>" + noindex, false},
		{"<svg></math><noframes>" + noindex + "</noframes></svg>", false}, // still in svg
		{"<svg><math></svg><style/>" + noindex, false},
		{"<svg><title/></svg><p>", true},
		{"<svg></svg><!--" + noindex + "-->", true},
		{"<script><!-- ---><script></script>" + noindex, true}, // no svg: three dashes end a comment, too
	} {
		e := page.ParseHTML([]byte(c.text)).For(policy.RFC9309)
		seen := strings.Contains(c.text, noindex) && inDOM(t, c.text)
		if seen && !e.NoIndex && !e.Incomplete || c.read && (e.Incomplete || e.NoIndex != seen) {
			t.Errorf("%s: NoIndex %v, Incomplete %v; in the DOM: %v", c.text, e.NoIndex, e.Incomplete, seen)
		}
	}
}

// inDOM reports whether x/net/html's parser, without scripts, sees a meta element for robots with noindex.
func inDOM(t *testing.T, text string) bool {
	t.Helper()
	root, err := html.ParseWithOptions(strings.NewReader(text), html.ParseOptionEnableScripting(false))
	if err != nil {
		return false // it gives up at some depth
	}
	for n := range root.Descendants() {
		if n.Type != html.ElementNode || n.Data != "meta" || n.Namespace != "" {
			continue
		}
		a := map[string]string{}
		for _, at := range n.Attr {
			a[at.Key] = at.Val
		}
		if a["name"] == "robots" && a["content"] == "noindex" {
			return true
		}
	}
	return false
}

// FuzzDOM: a noindex that the DOM has is read, or the page is incomplete.
func FuzzDOM(f *testing.F) {
	for _, text := range pages {
		f.Add(text)
	}
	f.Add("<svg><title/></svg>" + noindex)
	f.Add("<svg><desc><style/></desc><![CDATA[ > <!-- ]]></svg>" + noindex)
	f.Add("<math><mtext><script/></mtext></math>" + noindex)
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 4<<10 {
			return
		}
		e := page.ParseHTML([]byte(text)).For(policy.RFC9309)
		if !e.NoIndex && !e.Incomplete && inDOM(t, text) {
			t.Errorf("%q: the DOM has a noindex", text)
		}
	})
}

// In an encoding that does not extend ASCII, nothing is lost silently.
func TestEncodingsHideNothing(t *testing.T) {
	wide := "\x00" + strings.Join(strings.Split(noindex, ""), "\x00")
	for name, text := range map[string]string{
		"NUL first": "\x00" + noindex, "UTF-16": wide, "UTF-16 with a mark": "\xFE\xFF" + wide, "UTF-16, low bytes first": wide[1:] + "\x00",
		"ISO-2022-JP":     "<meta name=description content=\"\x1b$B%\"\x1b(B\">" + noindex,
		"Japanese with <": "\x1b$B!<!-\x1b(B" + noindex, "an escape split": "<p \x1b$B\"<!--\x1b(B>" + noindex,
	} {
		for _, sizes := range [][]byte{{200}, {1}, {3, 1}} {
			r := &page.Reader{Body: &inPieces{text: text, sizes: sizes}, ContentType: "text/html; charset=iso-2022-jp"}
			if e := read(t, r); !e.Incomplete || name == "NUL first" && !e.NoIndex {
				t.Errorf("%s in pieces of %v: got %v, incomplete %v, want incomplete", name, sizes, e, e.Incomplete)
			}
		}
	}
	mark := &page.Reader{Body: &inPieces{text: "\uFEFF<p>é€</p>" + noindex}, ContentType: "text/html; charset=utf-16"}
	if e := read(t, mark); !e.NoIndex || e.Incomplete {
		t.Errorf("UTF-8 that claims to be UTF-16: got %v, incomplete %v, want a complete noindex", e, e.Incomplete)
	}
}
