package lint

import (
	"slices"
	"strings"

	"github.com/robotsgate/robotsgate/policy/lint/internal/report"
)

// Rule is one entry of the registry. ID and Name never change: configurations and links may
// refer to them.
type Rule struct {
	ID       string
	Name     string
	Severity Severity
	Engines  Engines // that a finding concerns
	Summary  string  // the mistake, in half a sentence
	Advice   string  // how to mend it

	// Unchecked is why this package cannot find the mistake, for rules that need more than
	// a file and its answer. It is "" for all others.
	Unchecked string

	// Example is a file with the mistake, or in words what is wrong with an answer.
	Example string
}

// manual is where each rule has a heading.
const manual = "https://github.com/robotsgate/robotsgate/blob/main/policy/lint/README.md"

// URL returns where the rule is explained.
func (r Rule) URL() string { return manual + "#" + strings.ToLower(r.ID) + "-" + r.Name }

// Rules returns the registry in the order of the identifiers.
func Rules() []Rule { return slices.Clone(rules[:]) }

// ruleIndex returns the place of a rule in the registry.
func ruleIndex(id string) (int, bool) {
	return slices.BinarySearchFunc(rules[:], id, func(r Rule, id string) int {
		switch {
		case r.ID < id:
			return -1
		case r.ID > id:
			return 1
		}
		return 0
	})
}

// findings adds to each finding what the registry says about its rule. A test proves that
// each rule that is reported is there.
func findings(found []report.Finding) []Finding {
	var all []Finding
	for _, r := range found {
		i, ok := ruleIndex(r.ID)
		if !ok {
			continue
		}
		all = append(all, Finding{
			ID: r.ID, Name: rules[i].Name, Severity: rules[i].Severity, Engines: rules[i].Engines,
			Line: r.Number, Column: r.Column, Message: r.Message, More: r.More,
			Suggestion: rules[i].Advice, Replacement: r.Replacement, Changes: r.Changes,
		})
	}
	return all
}

// wild are the readers to whom '*' and '$' are special.
const wild = EngineRFC9309 | EngineGoogle | EngineYandex | EngineBing

// rules is the registry, sorted by identifier. A rule is an Error if the line has no effect
// or the opposite one, a Warning if crawlers differ on it, and Info if it is a matter of
// style or merely worth knowing. Engines are those that are misled, not those that warn.
var rules = [...]Rule{
	// The fifteen classic mistakes, as articles for site owners have listed them
	// since the 2000s.
	{"RT001", "file-name-case", SeverityError, EngineDialects, "the file's name is not exactly /robots.txt",
		"name the file robots.txt, in lower case", "",
		"https://example.com/Robots.txt"},
	{"RT002", "file-name-robot", SeverityError, EngineDialects, "the file is called robot.txt",
		"name the file robots.txt", "",
		"https://example.com/robot.txt"},
	{"RT003", "swapped-field", SeverityError, EngineDialects,
		"a rule's value is a crawler's name, or a user-agent's value is a path",
		"write a group of its own: the name after User-agent, and the path after Disallow", "",
		"User-agent: *\nDisallow: Yandex"},
	{"RT004", "multiple-paths", SeverityError, EngineDialects, "blanks inside the path of a rule",
		"write one path per line, and a blank inside a path as %20", "",
		"User-agent: *\nDisallow: /css/ /images/"},
	{"RT005", "empty-user-agent", SeverityError, EngineDialects, "a user-agent line without a value",
		"name a crawler, or write User-agent: *", "",
		"User-agent:\nDisallow: /tmp/"},
	{"RT006", "host-format", SeverityWarning, EngineYandex,
		"a Host line, which no engine reads any more, or one that never had the right form",
		"remove the line: redirect to the main host instead", "",
		"User-agent: Yandex\nDisallow: /tmp/\nHost: http://www.example.com/"},
	{"RT007", "redundant-wildcard", SeverityInfo, EngineDialects,
		"a wildcard that matches nothing more, or that begins the path",
		"leave out wildcards that change nothing", "",
		"User-agent: *\nDisallow: /cgi-bin*"},
	{"RT008", "html-body", SeverityError, EngineDialects, "the answer is an HTML page instead of a robots.txt file",
		"serve the file as plain text, or answer 404 if there is none", "",
		"<!DOCTYPE html>\n<title>Not found</title>"},
	{"RT009", "shouting", SeverityInfo, EngineDialects, "fields or product tokens in capital letters",
		"write fields and names as their specifications do; only paths are case-sensitive", "",
		"USER-AGENT: GOOGLEBOT\nDISALLOW: /tmp/"},
	{"RT010", "file-enumeration", SeverityInfo, EngineDialects, "three or more rules list the files of one directory",
		"disallow the directory if all of it is meant; else leave it as it is", "",
		"User-agent: *\nDisallow: /AL/Alabama.html\nDisallow: /AL/Mobile.html\nDisallow: /AL/Selma.html"},
	{"RT011", "extension-in-star", SeverityWarning, EngineDialects,
		"a record of one engine's own in a group for every crawler",
		"remove Host; other records work here too, and a group of their own would have to repeat the rules for *", "",
		"User-agent: *\nDisallow: /tmp/\nClean-param: ref /shop/"},
	{"RT012", "no-rule-in-group", SeverityWarning, EngineDialects, "a group without allow or disallow",
		"give the group rules of its own: an empty Disallow: only if nothing is to be closed to it", "",
		"User-agent: *\nDisallow: /tmp/\n\nUser-agent: ExampleBot"},
	{"RT013", "no-leading-slash", SeverityError, EngineDialects, "a path that begins with neither / nor *",
		"begin the path with a slash", "",
		"User-agent: *\nDisallow: john"},
	{"RT014", "content-type", SeverityWarning, EngineDialects, "the answer's content type is not text/plain in UTF-8",
		"serve the file as text/plain; charset=utf-8", "",
		"Content-Type: text/html"},
	{"RT015", "contradictory-rules", SeverityWarning, EngineDialects,
		"the same path allowed and disallowed, and one of the rules never wins",
		"keep one of the two rules", "",
		"User-agent: *\nDisallow: /shop\nAllow: /shop"},

	// Format and encoding: RFC 9309 §2.2 (lines, UTF-8), §2.5 (500 KiB), and the
	// limits of single engines.
	{"RT101", "missing-colon", SeverityError, EngineDialects &^ EngineGoogle, "a blank where the colon should be",
		"write a colon after the field", "",
		"User-agent: *\nDisallow /tmp/"},
	{"RT102", "typo-field", SeverityError, EngineDialects &^ EngineGoogle, "a misspelt field",
		"correct the spelling", "",
		"User-agent: *\nDisalow: /tmp/"},
	{"RT103", "unknown-field", SeverityInfo, EngineDialects, "a field that no known crawler reads",
		"remove the line, or begin it with # if it is a remark", "",
		"User-agent: *\nDisallow: /tmp/\nOwner: me"},
	{"RT104", "garbage-line", SeverityWarning, EngineDialects, "a line that is neither blank, comment nor record",
		"remove the line, or begin it with #", "",
		"User-agent: *\nDisallow: /tmp/\nplease do not crawl this"},
	{"RT105", "bare-url", SeverityWarning, EngineDialects, "a line that holds only a URL",
		"write Sitemap: before the URL if it is one, else remove the line", "",
		"User-agent: *\nDisallow: /tmp/\nhttps://example.com/sitemap.xml"},
	{"RT106", "bom", SeverityInfo, EngineRFC9309 | EngineBing | EngineOriginal,
		"a byte order mark at the start of the file",
		"save the file as UTF-8 without a byte order mark", "",
		"\uFEFFUser-agent: *\nDisallow: /tmp/"},
	{"RT107", "utf16", SeverityError, EngineDialects, "UTF-16 text, or NUL bytes",
		"save the file as UTF-8", "",
		"User-agent: *\nDisallow: /a\x00b"},
	{"RT108", "not-utf8", SeverityWarning, EngineDialects, "bytes that are not valid UTF-8",
		"save the file as UTF-8 and percent-encode what is not ASCII in paths", "",
		"User-agent: *\nDisallow: /caf\xE9"},
	{"RT109", "bare-cr", SeverityInfo, EngineOriginal, "line ends that are only CR, or of several kinds",
		"end all lines the same way, with LF or CRLF", "",
		"User-agent: *\r\nDisallow: /tmp/\nDisallow: /old/"},
	{"RT110", "too-big", SeverityError, EngineDialects &^ EngineOriginal, "more than 500 KiB",
		"shorten the file: use directories and wildcards instead of single pages", "",
		"a file of 600,000 bytes"},
	{"RT111", "too-many-rules", SeverityWarning, EngineYandex, "more rules than Yandex accepts",
		"merge rules into directories and wildcards", "",
		"a file with 3,000 rules"},
	{"RT112", "long-line", SeverityWarning, EngineGoogle | EngineYandex,
		"a line that some engine cuts or refuses for its length",
		"shorten the path, or use wildcards", "",
		"User-agent: *\nDisallow: /shop?items=1,2,3 (and so on for 1,100 characters)"},
	{"RT113", "control-char", SeverityWarning, EngineDialects, "control or invisible characters in a value",
		"remove the characters, or percent-encode them if they belong to the path", "",
		"User-agent: *\nDisallow: /tmp/\u200B"},
	{"RT114", "empty-file", SeverityInfo, EngineDialects, "an empty file",
		"write what is meant: User-agent: * and an empty Disallow: allow everything", "",
		""},

	// Grouping and product tokens: RFC 9309 §2.2.1. Most of these work by RFC 9309
	// and fail with readers of the 1994 kind, or the other way round.
	{"RT201", "rule-before-group", SeverityError, EngineDialects, "a rule before any user-agent line",
		"put a User-agent line above the rules", "",
		"Disallow: /tmp/"},
	{"RT202", "group-fusion", SeverityWarning, EngineRFC9309 | EngineGoogle,
		"two user-agent lines with only other records between them form one group",
		"give each group rules of its own: an empty Disallow: only if nothing is to be closed to it", "",
		"User-agent: ExampleBot\nCrawl-delay: 5\nUser-agent: OtherBot\nDisallow: /"},
	{"RT203", "blank-inside-group", SeverityWarning, EngineYandex | EngineOriginal,
		"a blank line inside a group, which ends it for some readers",
		"remove the blank line, or replace it by a line that holds only #", "",
		"User-agent: *\n\nDisallow: /tmp/"},
	{"RT204", "duplicate-star", SeverityWarning, EngineYandex | EngineOriginal, "several groups for *",
		"merge the groups for * into one", "",
		"User-agent: *\nDisallow: /tmp/\n\nUser-agent: *\nDisallow: /old/"},
	{"RT205", "duplicate-agent", SeverityInfo, EngineYandex | EngineOriginal, "several groups for the same crawler",
		"merge the groups into one", "",
		"User-agent: ExampleBot\nDisallow: /tmp/\n\nUser-agent: ExampleBot\nDisallow: /old/"},
	{"RT206", "agent-version", SeverityWarning, EngineDialects &^ EngineGoogle,
		"a version or a slash in a product token",
		"write the product token that the crawler's operator documents, without a version", "",
		"User-agent: ExampleBot/1.0\nDisallow: /tmp/"},
	{"RT207", "agent-space-or-list", SeverityError, EngineDialects, "blanks or commas in a product token",
		"write the product token that the crawler's operator documents, one per User-agent line", "",
		"User-agent: ExampleBot, OtherBot\nDisallow: /tmp/"},
	{"RT208", "agent-digit", SeverityInfo, EngineRFC9309 | EngineGoogle,
		"digits in a product token, which its grammar does not have",
		"keep the name if its crawler documents it; Google reads it only up to the digit", "",
		"User-agent: MJ12bot\nDisallow: /tmp/"},
	{"RT209", "agent-star-suffix", SeverityWarning, EngineDialects, "a * beside other characters in a product token",
		"write the product token alone: * works only by itself", "",
		"User-agent: *ExampleBot*\nDisallow: /tmp/"},
	{"RT210", "lost-star-rules", SeverityWarning, EngineDialects, "a named group does not repeat what * disallows",
		"repeat the rules in the named group: crawlers with a group of their own ignore the one for *", "",
		"User-agent: *\nDisallow: /tmp/\n\nUser-agent: ExampleBot\nDisallow: /old/"},
	{"RT211", "stale-agent", SeverityInfo, EngineDialects, "a product token that is no longer used",
		"name the crawlers that replaced it, if there are any", "",
		"User-agent: anthropic-ai\nDisallow: /"},
	{"RT212", "token-only-agent", SeverityInfo, EngineGoogle | EngineApple,
		"pacing for a product token that never fetches",
		"remove the line: the token only grants or refuses a use", "",
		"User-agent: Google-Extended\nDisallow: /\nCrawl-delay: 5"},
	{"RT213", "allowlist-gap", SeverityWarning, EngineGoogle | EngineApple | EngineAmazon,
		"all crawlers are shut out except named ones, and some that are often forgotten are not named",
		"if the site is to be found there too, name them with the rules that the other search engines have", "",
		"User-agent: Googlebot\nDisallow: /tmp/\n\nUser-agent: *\nDisallow: /"},

	// Paths: RFC 9309 §2.2.2 (matching, percent-encoding) and §2.2.3 (special
	// characters).
	{"RT301", "absolute-url", SeverityError, EngineDialects, "a rule with a host, and mostly a scheme",
		"write the path alone if it is of this site; else the rule belongs into that host's robots.txt", "",
		"User-agent: *\nDisallow: https://example.com/tmp/"},
	{"RT302", "dollar-inside", SeverityWarning, wild, "a $ that is not last, and so stands for itself",
		"move the $ to the end if the end of the URL is meant; leave it if a dollar sign is", "",
		"User-agent: *\nDisallow: /*.php$?id="},
	{"RT303", "bad-percent", SeverityWarning, EngineDialects, "a % that is not followed by two hexadecimal digits",
		"write %25 if a percent sign is meant, and leave the line as it is if any escape is", "",
		"User-agent: *\nDisallow: /100%"},
	{"RT304", "lowercase-hex", SeverityInfo, EngineOriginal, "lower-case hexadecimal digits after %",
		"write them in upper case (RFC 3986 §6.2.2.1)", "",
		"User-agent: *\nDisallow: /caf%c3%a9"},
	{"RT305", "encoded-unreserved", SeverityWarning, EngineGoogle | EngineOriginal,
		"an escape of a character that needs none",
		"add a rule with the character itself: Google keeps the two apart", "",
		"User-agent: *\nDisallow: /%7Ejoe/"},
	{"RT306", "non-ascii", SeverityInfo, EngineYandex | EngineBing | EngineOriginal,
		"characters outside ASCII in a path",
		"percent-encode them", "",
		"User-agent: *\nDisallow: /caf\xE9"},
	{"RT307", "hash-in-path", SeverityWarning, EngineDialects, "a # inside a path, which starts a comment",
		"write a blank before the comment, or %23 if the path has the character", "",
		"User-agent: *\nDisallow: /tmp#old"},
	{"RT308", "fragment-or-session", SeverityWarning, EngineDialects,
		"a path that no crawler will ask for: it depends on a fragment or on one session",
		"remove the rule, or write it without fragment and session if all of the path is meant", "",
		"User-agent: *\nDisallow: /shop#!/cart"},
	{"RT309", "empty-allow", SeverityWarning, EngineYandex, "an allow line without a path",
		"write an empty Disallow: instead, which says that nothing is closed", "",
		"User-agent: *\nAllow:"},
	{"RT310", "duplicate-rule", SeverityInfo, EngineDialects, "the same rule twice for one crawler",
		"remove one of the two", "",
		"User-agent: *\nDisallow: /tmp/\nDisallow: /tmp/"},
	{"RT311", "shadowed-rule", SeverityInfo, EngineDialects, "a rule that a shorter one of the same kind covers",
		"remove this rule: the other one does its work", "",
		"User-agent: *\nDisallow: /tmp/\nDisallow: /tmp/old/"},
	{"RT312", "order-dependent", SeverityInfo, EngineOriginal,
		"readers that take the first match decide otherwise than those that take the longest",
		"put the more specific rule first, if such old readers matter", "",
		"User-agent: *\nDisallow: /shop/\nAllow: /shop/open/"},
	{"RT313", "case-variants", SeverityInfo, EngineDialects, "two rules that differ only in case",
		"keep both if the server takes both spellings; else the one that it does not use is superfluous", "",
		"User-agent: *\nDisallow: /Shop\nDisallow: /shop"},
	{"RT314", "prefix-surprise", SeverityInfo, EngineDialects,
		"a directory without its slash, which also matches what merely begins alike",
		"end the directory with a slash, if only the directory is meant", "",
		"User-agent: *\nDisallow: /shop\nAllow: /shop/open/"},
	{"RT315", "index-html", SeverityInfo, EngineGoogle,
		"an allowed index page, which opens its directory for Google only",
		"allow the directory itself as well, ending in /$", "",
		"User-agent: *\nDisallow: /shop/\nAllow: /shop/index.html"},

	// What the file does to a site, other records (§2.2.4), and how the file is
	// served (§2.3.1).
	{"RT401", "site-blocked", SeverityWarning, EngineDialects, "everything is disallowed for *",
		"remove the rule if the site is to be found", "",
		"User-agent: *\nDisallow: /"},
	{"RT402", "blocks-assets", SeverityWarning, EngineGoogle | EngineYandex | EngineBing,
		"style sheets or scripts that search engines need to render pages are disallowed",
		"allow style sheets and scripts", "",
		"User-agent: *\nDisallow: /css/"},
	{"RT403", "sensitive-path", SeverityInfo, EngineDialects, "a path that reads as confidential is published here",
		"protect it by a login: this file tells every visitor where it is", "",
		"User-agent: *\nDisallow: /backup/"},
	{"RT404", "noindex-in-robots", SeverityError, EngineDialects,
		"indexing rules in robots.txt, where no engine reads them",
		"send X-Robots-Tag or a robots meta element with the page, and let the page be crawled", "",
		"User-agent: *\nNoindex: /tmp/"},
	{"RT405", "noindex-but-blocked", SeverityError, EngineDialects,
		"a page says noindex to a crawler that may not fetch it",
		"let the page be crawled until it has left the index", "it is seen in pages, not in robots.txt",
		"Disallow: /old, and in the page /old <meta name=\"robots\" content=\"noindex\">"},
	{"RT406", "meta-conflict", SeverityWarning, EngineGoogle | EngineYandex,
		"robots rules of one page conflict: Google takes the strictest, Yandex the most permissive",
		"say it once", "it is seen in pages and their headers, not in robots.txt",
		"<meta name=\"robots\" content=\"index, noindex\">"},
	{"RT407", "sitemap-relative", SeverityError, EngineDialects, "a sitemap that is not an absolute URL",
		"write the URL with scheme and host", "",
		"User-agent: *\nDisallow: /tmp/\nSitemap: /sitemap.xml"},
	{"RT408", "sitemap-blocked", SeverityWarning, EngineGoogle | EngineYandex | EngineBing,
		"a sitemap that search engines may not fetch, though they may fetch the pages around it",
		"allow the sitemap with a longer rule", "",
		"User-agent: *\nDisallow: /*.xml$\nSitemap: https://example.com/sitemap.xml"},
	{"RT409", "crawl-delay-value", SeverityWarning, EngineYandex | EngineBing | EngineCrawlerCommons,
		"a crawl delay that is no number, out of a crawler's bounds or for no crawler",
		"write a plain number of seconds; for a crawler that takes less, write it in a group of its own", "",
		"User-agent: bingbot\nDisallow: /tmp/\nCrawl-delay: 5 seconds"},
	{"RT410", "crawl-delay-ignored", SeverityInfo, EngineGoogle | EngineYandex | EngineApple | EngineAmazon,
		"a crawl delay for a crawler that does not read it",
		"answer 429 or 503 when there are too many requests, or use the engine's own settings", "",
		"User-agent: Googlebot\nDisallow: /tmp/\nCrawl-delay: 5"},
	{"RT411", "request-rate-syntax", SeverityWarning, EngineSeznam,
		"a request rate that is not of the form 1/10s or 1/10s 1800-1900",
		"write documents/time with a unit of s, m, h or d", "",
		"User-agent: SeznamBot\nDisallow: /tmp/\nRequest-rate: 10"},
	{"RT412", "clean-param-syntax", SeverityWarning, EngineYandex, "a Clean-param that is not of the form a&b /path",
		"write parameters joined by &, then a blank and the path", "",
		"User-agent: Yandex\nDisallow: /tmp/\nClean-param: /shop/ ref"},
	{"RT413", "obsolete-directive", SeverityInfo, EngineDialects, "a field that no engine reads any more",
		"remove the line", "",
		"User-agent: *\nDisallow: /tmp/\nRevisit-after: 5 days"},
	{"RT414", "status-trap", SeverityError, EngineDialects,
		"a status code that opens or closes the whole site, whatever the file says",
		"answer 200 with the file, or 404 if nothing is to be closed", "",
		"GET /robots.txt answers 403"},
	{"RT415", "redirect-chain", SeverityWarning, EngineDialects, "redirects that not every crawler follows",
		"serve the file at /robots.txt of each origin", "",
		"http://example.com/robots.txt redirects to https://other.example/robots.txt"},
	{"RT416", "origin-variants", SeverityInfo, EngineDialects, "the http, https and www copies of the file differ",
		"serve the same file everywhere", "it takes the answers of several origins",
		"http://example.com/robots.txt and https://www.example.com/robots.txt are not the same"},

	// Preferences for the use by AI: draft-ietf-aipref-attach and -vocab, content
	// signals, RSL 1.0. All of them are other records to RFC 9309, and none changes
	// whether a URL may be fetched.
	{"RT501", "content-usage-parse", SeverityError, EngineAIPREF,
		"a Content-Usage value that does not parse, which leaves the preference unknown",
		"write label=y or label=n in lower case, separated by commas", "",
		"User-agent: *\nAllow: /\nContent-Usage: train-ai=no"},
	{"RT502", "content-usage-path", SeverityError, EngineAIPREF, "a Content-Usage path that does not begin with /",
		"begin the path with a slash", "",
		"User-agent: *\nAllow: /\nContent-Usage: *.pdf train-ai=n"},
	{"RT503", "content-usage-label", SeverityWarning, EngineAIPREF, "a Content-Usage label that is unknown or retired",
		"use train-ai, ai-use or search", "",
		"User-agent: *\nAllow: /\nContent-Usage: genai=n"},
	{"RT504", "content-usage-on-disallowed", SeverityInfo, EngineAIPREF,
		"a preference for a path that is disallowed, and so is void",
		"remove the preference, or allow the path", "",
		"User-agent: *\nDisallow: /tmp/\nContent-Usage: /tmp/ train-ai=n"},
	{"RT505", "content-usage-conflict", SeverityWarning, EngineAIPREF, "y and n for the same path and label",
		"keep one: n wins over y", "",
		"User-agent: *\nAllow: /\nContent-Usage: train-ai=y\nContent-Usage: train-ai=n"},
	{"RT506", "content-signal-value", SeverityError, EngineContentSignals,
		"a Content-Signal with an unknown key or value",
		"write search, ai-input and ai-train with yes or no, or use with immediate, reference or full", "",
		"User-agent: *\nAllow: /\nContent-Signal: ai_train=no"},
	{"RT507", "content-signal-conflict", SeverityWarning, EngineContentSignals,
		"content signals that contradict the rules or one another",
		"say the same in every group", "",
		"User-agent: *\nDisallow: /\nContent-Signal: search=yes"},
	{"RT508", "license-url", SeverityError, EngineRSL, "a License that is not an absolute URL",
		"write the URL with scheme and host", "",
		"User-agent: *\nAllow: /\nLicense: /license.xml"},
	{"RT509", "signals-disagree", SeverityWarning, EngineAIPREF | EngineContentSignals | EngineGoogle,
		"Content-Usage, Content-Signal and groups for training crawlers contradict one another",
		"say the same in each of them", "",
		"User-agent: *\nAllow: /\nContent-Usage: train-ai=y\n\nUser-agent: GPTBot\nDisallow: /"},
	{"RT510", "experimental", SeverityInfo, EngineAIPREF | EngineContentSignals,
		"a field of a draft that may still change",
		"keep the line if you mean it, and look again when the draft does", "",
		"User-agent: *\nAllow: /\nContent-Usage: train-ai=n"},
}
