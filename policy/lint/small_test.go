package lint_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/integration_test/tier"
	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/lint"
)

// otherVerdict says which of the questions has another answer after an edit, "" if none has.
func otherVerdict(asked []policy.Dialect, before, after string, q questions) string {
	for _, d := range asked {
		b, a := d.Parse([]byte(before)), d.Parse([]byte(after))
		for _, token := range q.tokens {
			was, is := b.Group(token), a.Group(token)
			for _, target := range q.targets {
				if was.Decide(target).Allowed != is.Decide(target).Allowed {
					return fmt.Sprintf("%v, %s: %s", d, token, target)
				}
			}
		}
	}
	return ""
}

// keepsVerdicts verifies what Fix does to a file, and each replacement that is said to change nothing. It returns how many
// replacements there were.
func keepsVerdicts(t *testing.T, file string, q questions) (n int) {
	t.Helper()
	fixed := lint.Answer{Body: []byte(file)}.Fix(nil)
	if other := otherVerdict(promised[:], file, string(fixed), q); other != "" {
		t.Errorf("%q became %q: %s is decided otherwise", file, fixed, other)
	}
	all := lines(file)
	for _, f := range lint.File([]byte(file)) {
		if f.Replacement == "" {
			continue
		}
		n++
		if other := otherVerdict(promised[:], file, string(exchanged(all, f.Line, f.Replacement, false)), q); other != "" {
			t.Errorf("%q: line %d, %s %q: %s is decided otherwise", file, f.Line, f.ID, f.Replacement, other)
		}
	}
	return n
}

func TestAReplacementKeepsWhatIsFarFromIt(t *testing.T) {
	for _, c := range []struct{ file, tokens, targets string }{
		// A short rule has paths in common with a longer one, by a star.
		{"User-agent: *\nDisallow: /tmp/\nAlow: /*.html$\n", "x", "/tmp/a.html"},
		{"User-agent: *\nDisallow: /tmp/\nAllow /*.html$\n", "x", "/tmp/a.html"},
		{"User-agent: *\nDisallow: /api/\nAllows: /*/public/docs/\n", "x", "/api/a/public/docs/"},
		{"User-agent: *\nDisallow: /\nAllow: /tmp/\nDisalow: /*.html$\n", "x", "/tmp/a.html"},
		{"User-agent: *\nDisallow: /*b\nAlow: /tmp/\n", "x", "/tmp/b /tmp/ab"},
		{"User-agent: foo\nAllow: **\nAllow: /a\nDisallow: *a\n", "foo", "/ba"},
		{"User-agent: *\nDisallow: /\nAllows: /b/a$*\n", "x", "/b/a /b/a$"},
		// Google takes what allows a page for a rule about its directory, too.
		{"User-agent: *\nAllow: /a/index.html\nDisallow: /a/**\n", "x", "/a/"},
		{"User-agent: *\nAllow: /index.htm?x\nDisallow: /*$\n", "x", "/"},
		{"User-agent: *\nDisallow: /d/\nAllow: /d/i\nAllow: d/index.html\nAllow: d/index.htm\n", "x", "/d/"}, // twice
		{"User-agent: *\nDisallow: /d/\nAllow: /d/i\nAllow: /d/index.html /d/index.htm\n", "x", "/d/"},
		// A group goes on to those who do not read the line that begins the next one.
		{"User-agent: botb\nDisallow: /private\n\nUser-agent: bota\nAllow: /x\n\nUseragent: botc\nDisallow: /y\n\n" +
			"Useragent: botb\nDisallow: /private\n", "bota botb botc", "/private"},
		{"User-agent: Clickagy\nDisallow: /\n\nUseragent: other\nDisallow: /x\n\nUseragent: ksl-crawler\nAllow: /\n",
			"clickagy other ksl-crawler", "/ /x"},
		{"User-agent: mj\nDisallow: /private\nUseragent: foo\nDisallow: /x\nUseragent: bar\nAlow: /private\n", "mj foo bar", "/private /x"},
		{"User-agent foo, bar\nDisallow: /a*\nAllow: /a*\nDisallow /ab\n", "foo bar", "/a /ab"}, // edits of other lines name them
		{"User-agent: foo\nAllow: /a*\nDisallow: /p\n\nUser-agent foo, bar\nDisalow: /a$\n", "a foo ba", "/a"},
		// Yandex finds a name by any part of it.
		{"Useragent: *YandexBot\nDisallow: /a\n\nUser-agent: YandexBot\nAllow: /b\n", "YandexImages Yandex YandexBot Bot x", "/a /b"},
		{"Useragent: *Googlebot\nDisallow: /a\n\nUser-agent: Googlebot\nAllow: /b\n", "Google Googlebot-Image Bot x", "/a /b"},
		{"User agent: Mozilla/5.0 (compatible; Foo/1.0)\nDisallow: /a\n\nUser-agent: Foo\nUser-agent: Mozilla\nAllow: /\n", "F Foo Mo oz", "/a"},
		{"User-agent: :bar\nDisalow: /a\n\nUser-agent: bar\nAllow: /\n", "ba bar", "/a"},
		{"User-agent: *bar\nDisallow: /a\nAlow: /a\nUser-agent: bar\nDisallow: a\nDisallow: /b\n", "ba bar", "/a"},
		{"User-agent: :008\nDisallow: x\nAllow: /\n", "008 08", "/x"},
		{" \ufeffUser-agent: foo\x00\nDisallow: /x\n", "foo", "/x"},                                                                        // without the blank it is a byte order mark
		{"User-agent: foo\nUser-agent: bar\nAllows: /a$\nUser-agent: ab\nAllow: /p\nUser-agent: ab\nDisallow: /a\n", "a ab bar", "/a /ab"}, // two groups are one
		// Without its star, the dollar sign would be the end: to Google, who alone reads the group.
		{"Useragent: foo\nDisallow: /a$*\n", "foo", "/a /a$"},
		// Names compare without regard to case in ASCII alone.
		{"User-agent: FOO\u00c9\nAllow: /a\nDisalow: /\n", "foo FOO\u00c9", "/"},
		// For all names of a group, and for robots that Yandex finds by a part of a name.
		{"User-agent: GPTBot\nUser-agent: CCBot\nUser-agent: Bytespider\nDisallow: /shop*\n\nUser-agent: Googlebot\nDisallow:\n\n" +
			"User-agent: bingbot\nDisallow:\n\nUser-agent: GPTBot\nAllow: /shop\n", "GPTBot", "/shop/1"},
		{"User-agent: MJ12bot\nUser-agent:\nUser-agent: é\nDisallow: /a\u200b\n", "MJ12bot", "/a"},
		{"User-agent: \"YandexBot\"\nDisallow: /shop*\nAllow: /shop\n", "YandexBot", "/shop"},
		{"User-agent: \"YandexBot\"\nDisalow: /a\n", "YandexBot", "/a"},
		{"User-agent: http://yandex.com/bots\nDisallow: /a\n", "YandexBot", "/a"},
		{"User-agent: bot/yandex-1.0\nDisallow: /a\n", "YandexBot", "/a"},
		{"User-agent::GPTBot\nDisalow: /a\n", "GPTBot", "/a"},
		{"User-agent: éGPTBot/1\nDisalow: /a\n", "GPTBot", "/a"},
		{"User-agent: -\nAllow: /a\nUser-agent: -éGPTBot\nDisalow: /a\n", "GPTBot", "/a"},
		{"User-agent: 2+http://GPTBot\nDisallow /a\nUser-agent: 2\nDisallow /a\n", "GPTBot", "/a"},
		{"User-agent: 1.0\nAllow: /a\nUser-agent: 1.0GPTBot\nDisallow: /a*\nAllow: /a\u200b\nDisallow: /a\n", "0GPTBot", "/a"},
		{"User-agent: \"GPTBot\"\nDisallow: /shop*\nAllow: /shop\n", "GPTBot", "/shop"},
		{"User-agent: MSNBOT\nDisallow: /a\n\nUseragent: bingbot\nDisallow: /b\n", "bingbot bingbot-x msnbot", "/a /b"},
	} {
		keepsVerdicts(t, c.file, questions{strings.Fields(c.tokens), strings.Fields(c.targets)})
	}
}

// What changes nothing is still mended.
func TestAReplacementIsNotKeptBackForRulesFarFromIt(t *testing.T) {
	for _, c := range []struct{ file, want string }{
		{"User-agent: *\nDisallow: /tmp/\nAlow: /*.html$\nDISALLOW: /p\n", "User-agent: *\nDisallow: /tmp/\nAlow: /*.html$\nDisallow: /p\n"},
		{"User-agent: a\nDisallow: /a\n\nUSERAGENT: *\nAllow: /\n", "User-agent: a\nDisallow: /a\n\nUSERAGENT: *\nAllow: /\n"},
		{"User-agent: a\nDisallow: /a\n\nUSER-AGENT: *\nAllow: /\n", "User-agent: a\nDisallow: /a\n\nUser-agent: *\nAllow: /\n"},
		{"User-agent: *\nDisallow: /b\nAllow /%2f/index.htm\nDisallow: /%2f/index.htm\n", "User-agent: *\nDisallow: /b\nAllow /%2f/index.htm\nDisallow: /%2F/index.htm\n"},
	} {
		if fixed := (lint.Answer{Body: []byte(c.file)}).Fix(nil); string(fixed) != c.want {
			t.Errorf("%q became %q, not %q", c.file, fixed, c.want)
		}
	}
}

// Three rules over few patterns with stars, of which the last begins to count.
func TestReplacementsAmongFewPatternsKeepVerdicts(t *testing.T) {
	tier.Gate(t)
	q := questions{[]string{"x"}, []string{"/"}}
	for _, a := range []string{"a", "b", "/", "q"} {
		for _, b := range []string{"", "a", "b", "/", "q"} {
			for _, c := range []string{"", "a", "b", "/"} {
				q.targets = append(q.targets, "/"+a+b+c)
			}
		}
	}
	var rules []string
	for _, pattern := range []string{"**", "/%61", "*a", "/*b$", "/%61/*", "/*/a"} {
		rules = append(rules, "Allow: "+pattern+"\n", "Disallow: "+pattern+"\n")
	}
	n := 0
	for i, first := range rules {
		for _, second := range rules[i:] {
			for _, third := range rules {
				n += keepsVerdicts(t, "User-agent: *\n"+first+second+strings.Replace(third, "llow", "low", 1), q)
			}
		}
	}
	if n < 300 {
		t.Errorf("only %d replacements", n)
	}
}

// Groups whose names are parts of one another, some begun by lines that not all read.
func TestReplacementsAmongFewNamesKeepVerdicts(t *testing.T) {
	tier.Gate(t)
	random := rand.New(rand.NewPCG(9309, 3986))
	some := func(all ...string) string { return all[random.IntN(len(all))] }
	q := questions{strings.Fields("anybody a ab b foo f foobot bot oobot yandex yandexbot yandeximages bingbot bingbotx msnbot mj mj12bot compatible x"),
		strings.Fields("/ /a /ab /a/b /b /x")}
	n := 0
	for range 1000 {
		var file strings.Builder
		for range 1 + random.IntN(4) {
			for range 1 + random.IntN(5)/4 {
				file.WriteString(some("User-agent: ", "User-agent: ", "Useragent: ", "User agent: ", "User-agent ") + some("*", "a", "ab", "foo",
					"foobot", "*foobot", "b*", "bot", "Yandex", "*YandexBot", "bingbot", "MSNBOT", "mj12bot", "x (compatible; foo/1.0)", "foo, bar", ":bar") + "\n")
			}
			for range random.IntN(4) {
				file.WriteString(some("Disallow: ", "Disallow: ", "Allow: ", "Alow: ", "Disalow: ", "Allow ") + some("/", "/a", "/b", "/a*", "/a$") + "\n")
			}
			file.WriteString(some("", "\n"))
		}
		n += keepsVerdicts(t, file.String(), q)
	}
	if n < 600 {
		t.Errorf("only %d replacements", n)
	}
}
