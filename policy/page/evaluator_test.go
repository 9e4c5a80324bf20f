package page_test

import (
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/integration_test/proc"
	"github.com/robotsgate/robotsgate/integration_test/tier"
	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/page"
)

// The evaluator is a second reading of the rules P-1 to P-34, by other means:
// regular expressions, time.Parse and maps of strings. It shares nothing with the
// package but the type of its result.

// used lists what each engine gives an effect, as the table of the rules does.
var used = map[policy.Dialect]string{
	policy.Google: "noindex nofollow none nosnippet max-snippet max-image-preview max-video-preview notranslate noimageindex unavailable_after indexifembedded",
	policy.Yandex: "noindex nofollow none noarchive",
	policy.Bing:   "noindex nofollow none noarchive nocache nosnippet max-snippet max-image-preview max-video-preview",
	policy.RFC9309: "noindex nofollow none noarchive nocache nosnippet max-snippet max-image-preview max-video-preview notranslate noimageindex " +
		"unavailable_after indexifembedded noai noimageai noml",
}

var (
	flagWord   = regexp.MustCompile(`^(?i:all|index|follow|archive|noindex|nofollow|none|noarchive|nocache|nosnippet|notranslate|noimageindex|indexifembedded|noai|noimageai|noml|noodp|noydir|noyaca|nositelinkssearchbox)$`)
	valuedWord = regexp.MustCompile(`^(?i:max-snippet|max-image-preview|max-video-preview|unavailable_after)$`)
	futureWord = regexp.MustCompile(`^(?i:max-)`)
	weekday    = regexp.MustCompile(`(?i)unavailable_after[ \t]*:[ \t]*(mon|tue|wed|thu|fri|sat|sun|monday|tuesday|wednesday|thursday|friday|saturday|sunday)[ \t]*$`)
	dayNext    = regexp.MustCompile(`^[ \t]*[0-9]`)
	blanks     = regexp.MustCompile(`[ \t]+`)
	numberWord = regexp.MustCompile(`^(-1|[0-9]+)$`)
	zoneWord   = regexp.MustCompile(`(?i)[ ]*(Z|GMT|UTC|UT|EST|EDT|CST|CDT|MST|MDT|PST|PDT|[+-][0-9]{2}(:?[0-9]{2})?)$`)
	dayName    = regexp.MustCompile(`(?i)^(mon|tue|wed|thu|fri|sat|sun|monday|tuesday|wednesday|thursday|friday|saturday|sunday)[ \t]*,?[ \t]*([0-9]{1,2}[^0-9].*)$`)
)

// evaluate reads header lines for a crawler.
func evaluate(lines []string, d policy.Dialect, tokens []string) page.Effect {
	said := map[string][]string{} // values by rule; of a flag, empty ones
	for _, line := range lines {
		items := strings.Split(line, ",")
		scope := ""
		for i := 0; i < len(items); i++ {
			item := items[i]
			if i+1 < len(items) && weekday.MatchString(item) && dayNext.MatchString(items[i+1]) { // P-9
				item += "," + items[i+1]
				i++
			}
			name, value, colon := strings.Cut(item, ":")
			name = strings.Trim(name, " \t")
			if colon && !valuedWord.MatchString(name) && !futureWord.MatchString(name) { // P-5
				if flagWord.MatchString(name) || name == "" { // P-6
					continue
				}
				if scope = blanks.ReplaceAllString(name, " "); scope == "*" { // P-8
					scope = ""
				}
				name, value, colon = strings.Cut(value, ":")
				name = strings.Trim(name, " \t")
			}
			if scope != "" && !among(tokens, scope) || d == policy.Yandex && scope != "" && !among([]string{"yandex", "yandexbot"}, scope) { // P-29, P-33
				continue
			}
			if !colon && flagWord.MatchString(name) || colon && valuedWord.MatchString(name) { // P-7
				said[strings.ToLower(name)] = append(said[strings.ToLower(name)], strings.Trim(value, " \t"))
			}
		}
	}
	return combine(said, d)
}

func among(names []string, name string) bool {
	for _, n := range names {
		if strings.EqualFold(n, name) {
			return true
		}
	}
	return false
}

func combine(said map[string][]string, d policy.Dialect) (e page.Effect) {
	has := func(name string) bool {
		return len(said[name]) > 0 && among(strings.Fields(used[d]), name)
	}
	lifted := func(names ...string) bool { // P-31
		for _, n := range names {
			if d == policy.Yandex && len(said[n]) > 0 {
				return true
			}
		}
		return false
	}
	e.NoIndex = (has("noindex") || has("none")) && !lifted("index", "all")
	e.NoFollow = (has("nofollow") || has("none")) && !lifted("follow", "all")
	e.NoArchive = has("noarchive") && !lifted("archive")
	e.NoCache = has("nocache")
	if d == policy.Bing && e.NoCache { // P-22
		e.NoArchive = false
	}
	e.NoSnippet, e.NoTranslate, e.NoImageIndex = has("nosnippet"), has("notranslate"), has("noimageindex")
	e.IndexIfEmbedded, e.NoAI, e.NoImageAI, e.NoML = has("indexifembedded"), has("noai"), has("noimageai"), has("noml")
	if has("max-snippet") {
		e.MaxSnippet = smallest(said["max-snippet"])
		e.NoSnippet = e.NoSnippet || e.MaxSnippet == page.Limit{Said: true}
	}
	if has("max-video-preview") {
		e.MaxVideoPreview = smallest(said["max-video-preview"])
	}
	if has("max-image-preview") {
		for _, size := range []string{"none", "standard", "large"} {
			if e.MaxImagePreview == "" && among(said["max-image-preview"], size) {
				e.MaxImagePreview = size
			}
		}
	}
	if has("unavailable_after") {
		for _, value := range said["unavailable_after"] {
			if at, ok := instant(value); ok && (e.UnavailableAfter.IsZero() || at.Before(e.UnavailableAfter)) {
				e.UnavailableAfter = at
			}
		}
	}
	return e
}

// smallest returns the smallest of the numbers, -1 being the largest (P-20, P-30).
func smallest(values []string) (l page.Limit) {
	for _, v := range values {
		if !numberWord.MatchString(v) {
			continue
		}
		n, err := strconv.ParseInt(v, 10, 32)
		if err != nil {
			n = 1<<31 - 1
		}
		if !l.Said || l.N == -1 || n != -1 && int(n) < l.N {
			l = page.Limit{Said: true, N: int(n)}
		}
	}
	return l
}

// instant reads a date with the layouts of P-24. The zone is read first, and
// never by time.Parse (P-25).
func instant(value string) (time.Time, bool) {
	value = strings.Join(strings.Fields(value), " ")
	iso := true
	if m := dayName.FindStringSubmatch(value); m != nil {
		value, iso = m[2], false
	}
	layouts := []string{"2 Jan 2006", "2-Jan-2006", "2 Jan 06", "2-Jan-06"}
	if iso {
		layouts = append(layouts, "2006-01-02")
	}
	try := func(value string, offset time.Duration) (time.Time, bool) {
		for _, day := range layouts {
			for _, clock := range []string{"", " 15:04", " 15:04:05", "T15:04", "T15:04:05"} {
				if strings.HasPrefix(clock, "T") && day != "2006-01-02" {
					continue
				}
				if at, err := time.Parse(day+clock, value); err == nil && at.Year() >= 1583 {
					return at.Add(-offset), true
				}
			}
		}
		return time.Time{}, false
	}
	if at, ok := try(value, 0); ok {
		return at, true
	}
	m := zoneWord.FindStringSubmatch(value)
	if m == nil {
		return time.Time{}, false
	}
	offset, ok := map[string]time.Duration{
		"Z": 0, "GMT": 0, "UTC": 0, "UT": 0, "EST": -5 * time.Hour, "EDT": -4 * time.Hour, "CST": -6 * time.Hour, "CDT": -5 * time.Hour,
		"MST": -7 * time.Hour, "MDT": -6 * time.Hour, "PST": -8 * time.Hour, "PDT": -7 * time.Hour,
	}[strings.ToUpper(m[1])]
	if !ok {
		digits := strings.ReplaceAll(m[1][1:], ":", "") + "00"
		hours, _ := strconv.Atoi(digits[:2])
		minutes, _ := strconv.Atoi(digits[2:4])
		if hours > 23 || minutes > 59 {
			return time.Time{}, false
		}
		if offset = time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute; m[1][0] == '-' {
			offset = -offset
		}
	}
	return try(strings.TrimSuffix(value, m[0]), offset)
}

// generate makes a header set: words, scopes, values, dates and mistakes as sites
// make them, in any order.
func generate(rng *rand.Rand) (lines []string) {
	pick := func(of ...string) string { return of[rng.IntN(len(of))] }
	number := func() string {
		return pick("-1", "0", "1", "5", "50", "160", "-2", "", "x", "+3", "1.5", "007", "99999999999999999999")
	}
	two := func(most int) string { return strconv.Itoa(100 + rng.IntN(most+1))[1:] }
	date := func() string {
		year, month := strconv.Itoa(1969+rng.IntN(100)), pick("Jan", "feb", "Mar", "Apr", "MAY", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec", "Foo")
		day := strconv.Itoa(rng.IntN(33))
		clock := pick("", " "+two(25)+":"+two(61)+":"+two(59), " "+two(23)+":"+two(59))
		zone := pick("", "", " GMT", " UTC", " UT", " Z", " PST", " pdt", " EST", " CDT", " MST", " +0200", " -0330", " +05:30", " CET", " +9999")
		weekday := pick("", "", "Wed, ", "Friday, ", "sat ,", "Foo, ", "Mon ")
		switch rng.IntN(6) {
		case 0:
			return year + "-" + two(13) + "-" + two(32) + pick("", pick("T", " ")+two(24)+":"+two(59)+pick("", ":"+two(59))+pick("", "Z", "+02:00", "-0800", " EST"))
		case 1:
			return pick("soon", "", "2026", "0001-01-01", "Wed", "Wed,", "25 Jun 2010 15:00:00 PST PST")
		case 2:
			return weekday + day + "-" + month + "-" + year[2:] + clock + zone
		case 3:
			return weekday + day + "-" + month + "-" + year + clock + zone
		case 4:
			return weekday + day + " " + month + " " + year[2:] + clock + zone
		default:
			return weekday + day + " " + month + " " + year + clock + zone
		}
	}
	word := func() string {
		switch rng.IntN(12) {
		case 0:
			return pick("max-snippet", "max-video-preview", "Max-Snippet ") + ":" + pick("", " ") + number()
		case 1:
			return "max-image-preview:" + pick("none", "standard", " LARGE", "huge", "")
		case 2, 3:
			return pick("unavailable_after", "Unavailable_After") + pick(":", ": ", " : ") + date()
		case 4:
			return pick("", " ", "foo", "no index", "noindexing", "noindex nofollow", "max-text:5", "max-text", "max-snippet", "noindex: x", "a: b: noindex", ": noindex", "noindex:", "unavailable_after")
		default:
			w := pick("all", "index", "follow", "archive", "noindex", "nofollow", "none", "noarchive", "nocache", "nosnippet", "notranslate",
				"noimageindex", "indexifembedded", "noai", "noimageai", "noml", "noodp", "noyaca")
			return pick(w, w, strings.ToUpper(w))
		}
	}
	for range 1 + rng.IntN(4) {
		var items []string
		for range 1 + rng.IntN(6) {
			item := word()
			if rng.IntN(3) == 0 {
				item = pick("googlebot", "GoogleBot", "googlebot-news", "yandex", "YandexBot", "yandeximages", "bingbot", "otherbot", "my  bot", "*", "google") + pick(":", ": ", " :") + item
			}
			items = append(items, pick("", " ", "\t")+item+pick("", " "))
		}
		lines = append(lines, strings.Join(items, ","))
	}
	return lines
}

func TestRulesEqualAnIndependentEvaluator(t *testing.T) {
	tier.Gate(t)
	rng := rand.New(rand.NewPCG(16, 2026))
	crawlers := []struct {
		d      policy.Dialect
		tokens []string
	}{
		{policy.Google, []string{"googlebot"}}, {policy.Google, []string{"googlebot-news", "googlebot"}},
		{policy.Yandex, []string{"yandex", "yandexbot"}}, {policy.Yandex, []string{"yandeximages"}},
		{policy.Bing, []string{"bingbot"}}, {policy.RFC9309, []string{"OtherBot", "My Bot"}}, {policy.RFC9309, nil},
	}
	kinds, sets := map[string]int{}, 10_000
	if proc.UnderRace() {
		sets = 2_000 // there is nothing to race, and it takes ten times as long
	}
	for n := range sets {
		lines := generate(rng)
		rules := page.ParseHeader(lines)
		for _, c := range crawlers {
			got, want := rules.For(c.d, c.tokens...), evaluate(lines, c.d, c.tokens)
			if got != want {
				t.Fatalf("set %d, %v for %v:\n%q\ngot  %v\nwant %v", n, c.d, c.tokens, lines, got, want)
			}
			kinds[got.String()]++
		}
	}
	dates := 0
	for effect := range kinds {
		if strings.Contains(effect, "unavailable_after") {
			dates++
		}
	}
	// The sets must say something.
	t.Logf("%d different effects, %d with a date", len(kinds), dates)
	if len(kinds) < sets/2 || dates < sets/5 {
		t.Errorf("got %d different effects, %d with a date: too few to tell", len(kinds), dates)
	}
}
