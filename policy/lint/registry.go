package lint

import "slices"

// Rule is one entry of the registry. ID and Name never change: configurations and links may
// refer to them.
type Rule struct {
	ID       string   `json:"id"`
	Name     string   `json:"name"`
	Severity Severity `json:"severity"`
	Engines  Engines  `json:"engines"` // that a finding concerns
	Summary  string   `json:"summary"` // the mistake, in half a sentence
	Advice   string   `json:"advice"`  // how to mend it

	// Unchecked is why this package cannot find the mistake, for rules that need more than
	// a file and its answer. It is "" for all others.
	Unchecked string `json:"unchecked,omitempty"`
}

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

// wild are the readers to whom '*' and '$' are special.
const wild = RFC9309 | Google | Yandex | Bing

// rules is the registry, sorted by identifier. A rule is an Error if the line has no effect
// or the opposite one, a Warning if crawlers differ on it, and Info if it is a matter of
// style or merely worth knowing. Engines are those that are misled, not those that warn.
var rules = [...]Rule{
	// The fifteen classic mistakes, as articles for site owners have listed them
	// since the 2000s.
	{"RT001", "file-name-case", Error, All, "the file's name is not exactly /robots.txt",
		"name the file robots.txt, in lower case", ""},
	{"RT002", "file-name-robot", Error, All, "the file is called robot.txt",
		"name the file robots.txt", ""},
	{"RT003", "swapped-field", Error, All, "a rule's value is a crawler's name, or a user-agent's value is a path",
		"write the name after User-agent and the path after Disallow", ""},
	{"RT004", "multiple-paths", Error, All, "blanks inside the path of a rule",
		"write one path per line, and a blank inside a path as %20", ""},
	{"RT005", "empty-user-agent", Error, All, "a user-agent line without a value",
		"name a crawler, or write User-agent: *", ""},
	{"RT006", "host-format", Warning, Yandex, "Host has a scheme, a path or an IP address, or stands there at all",
		"remove the line: redirect to the main host instead", ""},
	{"RT007", "redundant-wildcard", Info, All, "a wildcard that matches nothing more, or that begins the path",
		"leave out wildcards that change nothing, and begin paths with a slash", ""},
	{"RT008", "html-body", Error, All, "the answer is an HTML page instead of a robots.txt file",
		"serve the file as plain text, or answer 404 if there is none", ""},
	{"RT009", "shouting", Info, RFC9309, "fields or product tokens in capital letters",
		"write fields and names as their specifications do; only paths are case-sensitive", ""},
	{"RT010", "file-enumeration", Info, All, "many rules list the files of one directory",
		"disallow the directory, if all of it is meant", ""},
	{"RT011", "extension-in-star", Warning, All, "a record of one engine's own in a group for every crawler",
		"put the line under the User-agent of the engine that reads it", ""},
	{"RT012", "no-rule-in-group", Warning, All, "a group without allow or disallow",
		"add an empty Disallow: line if nothing is to be closed", ""},
	{"RT013", "no-leading-slash", Error, All, "a path that begins with neither / nor *",
		"begin the path with a slash", ""},
	{"RT014", "content-type", Warning, All, "the answer's content type is not text/plain in UTF-8",
		"serve the file as text/plain; charset=utf-8", ""},
	{"RT015", "contradictory-rules", Warning, All, "the same path allowed and disallowed, and one of the rules never wins",
		"keep one of the two rules", ""},

	// Format and encoding: RFC 9309 §2.2 (lines, UTF-8), §2.5 (500 KiB), and the
	// limits of single engines.
	{"RT101", "missing-colon", Error, All &^ Google, "a blank where the colon should be",
		"write a colon after the field", ""},
	{"RT102", "typo-field", Error, All &^ Google, "a misspelt field",
		"correct the spelling", ""},
	{"RT103", "unknown-field", Info, All, "a field that no known crawler reads",
		"remove the line, or begin it with # if it is a remark", ""},
	{"RT104", "garbage-line", Warning, All, "a line that is neither blank, comment nor record",
		"remove the line, or begin it with #", ""},
	{"RT105", "bare-url", Warning, All, "a line that holds only a URL",
		"write Sitemap: before the URL if it is one", ""},
	{"RT106", "bom", Info, RFC9309 | Bing | Original, "a byte order mark at the start of the file",
		"save the file as UTF-8 without a byte order mark", ""},
	{"RT107", "utf16", Error, All, "UTF-16 text, or NUL bytes",
		"save the file as UTF-8", ""},
	{"RT108", "not-utf8", Warning, All, "bytes that are not valid UTF-8",
		"save the file as UTF-8 and percent-encode what is not ASCII in paths", ""},
	{"RT109", "bare-cr", Info, Original, "line ends that are only CR, or of several kinds",
		"end all lines the same way, with LF or CRLF", ""},
	{"RT110", "too-big", Error, All &^ Original, "more than 500 KiB",
		"shorten the file: use directories and wildcards instead of single pages", ""},
	{"RT111", "too-many-rules", Warning, Yandex, "more rules than Yandex accepts",
		"merge rules into directories and wildcards", ""},
	{"RT112", "long-line", Warning, Google | Yandex, "a line that some engine cuts or refuses for its length",
		"shorten the path, or use wildcards", ""},
	{"RT113", "control-char", Warning, All, "control or invisible characters in a value",
		"remove the characters, or percent-encode them if they belong to the path", ""},
	{"RT114", "empty-file", Info, All, "an empty file",
		"write what is meant: User-agent: * and an empty Disallow: allow everything", ""},

	// Grouping and product tokens: RFC 9309 §2.2.1. Most of these work by RFC 9309
	// and fail with readers of the 1994 kind, or the other way round.
	{"RT201", "rule-before-group", Error, All, "a rule before any user-agent line",
		"put a User-agent line above the rule", ""},
	{"RT202", "group-fusion", Warning, RFC9309 | Google, "two user-agent lines with only other records between them form one group",
		"give each group a rule of its own, if only an empty Disallow:", ""},
	{"RT203", "blank-inside-group", Warning, Yandex | Original, "a blank line inside a group, which ends it for some readers",
		"remove the blank line, or replace it by a line that holds only #", ""},
	{"RT204", "duplicate-star", Warning, Yandex | Original, "several groups for *",
		"merge the groups for * into one", ""},
	{"RT205", "duplicate-agent", Info, Yandex | Original, "several groups for the same crawler",
		"merge the groups into one", ""},
	{"RT206", "agent-version", Warning, All &^ Google, "a version or a slash in a product token",
		"write the product token alone", ""},
	{"RT207", "agent-space-or-list", Error, All, "blanks or commas in a product token",
		"write one product token per User-agent line", ""},
	{"RT208", "agent-digit", Info, RFC9309 | Google, "digits in a product token, which its grammar does not have",
		"keep the name if its crawler documents it; Google reads it only up to the digit", ""},
	{"RT209", "agent-star-suffix", Warning, All, "a * beside other characters in a product token",
		"write the product token alone: * works only by itself", ""},
	{"RT210", "lost-star-rules", Warning, All, "a named group does not repeat what * disallows",
		"repeat the rules in the named group: crawlers with a group of their own ignore the one for *", ""},
	{"RT211", "stale-agent", Info, All, "a product token that is no longer used",
		"name the crawlers that replaced it", ""},
	{"RT212", "token-only-agent", Info, Google | Apple, "pacing for a product token that never fetches",
		"remove the line: the token only grants or refuses a use", ""},
	{"RT213", "allowlist-gap", Warning, Google | Apple | Amazon, "all crawlers are shut out except named ones, and some that are often forgotten are not named",
		"name them too, each with the rules that are meant for it", ""},

	// Paths: RFC 9309 §2.2.2 (matching, percent-encoding) and §2.2.3 (special
	// characters).
	{"RT301", "absolute-url", Error, All, "a rule with scheme and host",
		"write the path alone: the file speaks for its own origin only", ""},
	{"RT302", "dollar-inside", Warning, wild, "a $ that is not last, and so stands for itself",
		"move the $ to the end, or write %24 if a dollar sign is meant", ""},
	{"RT303", "bad-percent", Warning, All, "a % that is not followed by two hexadecimal digits",
		"write %25 for a percent sign", ""},
	{"RT304", "lowercase-hex", Info, Original, "lower-case hexadecimal digits after %",
		"write them in upper case (RFC 3986 §6.2.2.1)", ""},
	{"RT305", "encoded-unreserved", Warning, Google | Original, "an escape of a character that needs none",
		"write the character itself", ""},
	{"RT306", "non-ascii", Info, Yandex | Bing | Original, "characters outside ASCII in a path",
		"percent-encode them", ""},
	{"RT307", "hash-in-path", Warning, All, "a # inside a path, which starts a comment",
		"write a blank before the comment, or %23 if the path has the character", ""},
	{"RT308", "fragment-or-session", Info, All, "a path that no crawler will ask for: it depends on a fragment or on one session",
		"remove the rule, or write the path without fragment and session", ""},
	{"RT309", "empty-allow", Warning, Yandex, "an allow line without a path",
		"write Allow: / or remove the line", ""},
	{"RT310", "duplicate-rule", Info, All, "the same rule twice for one crawler",
		"remove one of the two", ""},
	{"RT311", "shadowed-rule", Info, All, "a rule that a shorter one of the same kind covers",
		"remove the longer rule", ""},
	{"RT312", "order-dependent", Warning, Original, "readers that take the first match decide otherwise than those that take the longest",
		"put the more specific rule first", ""},
	{"RT313", "case-variants", Info, All, "two rules that differ only in case",
		"keep the spelling that the site uses: paths are case-sensitive", ""},
	{"RT314", "prefix-surprise", Info, All, "a directory without its slash, which also matches what merely begins alike",
		"end the directory with a slash", ""},
	{"RT315", "index-html", Info, Google, "an allowed index page, which opens its directory for Google only",
		"allow the directory itself as well, ending in /$", ""},

	// What the file does to a site, other records (§2.2.4), and how the file is
	// served (§2.3.1).
	{"RT401", "site-blocked", Warning, All, "everything is disallowed for *",
		"remove the rule if the site is to be found", ""},
	{"RT402", "blocks-assets", Warning, Google | Yandex | Bing, "style sheets or scripts that search engines need to render pages are disallowed",
		"allow style sheets and scripts", ""},
	{"RT403", "sensitive-path", Info, All, "a path that reads as confidential is published here",
		"protect it by a login: this file tells every visitor where it is", ""},
	{"RT404", "noindex-in-robots", Error, All, "indexing rules in robots.txt, where no engine reads them",
		"send X-Robots-Tag or a robots meta element with the page, and let the page be crawled", ""},
	{"RT405", "noindex-but-blocked", Error, All, "a page says noindex and is disallowed, so no crawler sees it",
		"let the page be crawled until it has left the index", "it is seen in pages, not in robots.txt"},
	{"RT406", "meta-conflict", Warning, Google | Yandex, "robots rules of one page conflict: Google takes the strictest, Yandex the most permissive",
		"say it once", "it is seen in pages and their headers, not in robots.txt"},
	{"RT407", "sitemap-relative", Error, All, "a sitemap that is not an absolute URL",
		"write the URL with scheme and host", ""},
	{"RT408", "sitemap-blocked", Warning, Google | Yandex | Bing, "a sitemap that its readers may not fetch",
		"allow the sitemap", ""},
	{"RT409", "crawl-delay-value", Warning, Yandex | Bing | CrawlerCommons, "a crawl delay that is no number, out of bounds or for no crawler",
		"write a plain number of seconds from 1 to 30", ""},
	{"RT410", "crawl-delay-ignored", Info, Google | Yandex | Apple | Amazon, "a crawl delay for a crawler that does not read it",
		"answer 429 or 503 when there are too many requests, or use the engine's own settings", ""},
	{"RT411", "request-rate-syntax", Warning, Seznam, "a request rate that is not of the form 1/10s or 1/10s 1800-1900",
		"write documents/time with a unit of s, m, h or d", ""},
	{"RT412", "clean-param-syntax", Warning, Yandex, "a Clean-param that is not of the form a&b /path",
		"write parameters joined by &, then a blank and the path", ""},
	{"RT413", "obsolete-directive", Info, All, "a field that no engine reads any more",
		"remove the line", ""},
	{"RT414", "status-trap", Error, All, "a status code that opens or closes the whole site, whatever the file says",
		"answer 200 with the file, or 404 if nothing is to be closed", ""},
	{"RT415", "redirect-chain", Warning, All, "redirects that not every crawler follows",
		"serve the file at /robots.txt of each origin", ""},
	{"RT416", "origin-variants", Info, All, "the http, https and www copies of the file differ",
		"serve the same file everywhere", "it takes the answers of several origins"},

	// Preferences for the use by AI: draft-ietf-aipref-attach and -vocab, content
	// signals, RSL 1.0. All of them are other records to RFC 9309, and none changes
	// whether a URL may be fetched.
	{"RT501", "content-usage-parse", Error, AIPREF, "a Content-Usage value that does not parse, which leaves the preference unknown",
		"write label=y or label=n in lower case, separated by commas", ""},
	{"RT502", "content-usage-path", Error, AIPREF, "a Content-Usage path that does not begin with /",
		"begin the path with a slash", ""},
	{"RT503", "content-usage-label", Warning, AIPREF, "a Content-Usage label that is unknown or retired",
		"use train-ai, ai-use or search", ""},
	{"RT504", "content-usage-on-disallowed", Info, AIPREF, "a preference for a path that is disallowed, and so is void",
		"remove the preference, or allow the path", ""},
	{"RT505", "content-usage-conflict", Warning, AIPREF, "y and n for the same path and label",
		"keep one: n wins over y", ""},
	{"RT506", "content-signal-value", Error, ContentSignals, "a Content-Signal with an unknown key or value",
		"write search, ai-input and ai-train with yes or no, or use with immediate, reference or full", ""},
	{"RT507", "content-signal-conflict", Warning, ContentSignals, "content signals that contradict the rules or one another",
		"say the same in every group", ""},
	{"RT508", "license-url", Error, RSL, "a License that is not an absolute URL",
		"write the URL with scheme and host", ""},
	{"RT509", "signals-disagree", Warning, AIPREF | ContentSignals | Google, "Content-Usage, Content-Signal and groups for training crawlers contradict one another",
		"say the same in each of them", ""},
	{"RT510", "experimental", Info, AIPREF | ContentSignals, "a field of a draft that may still change",
		"keep the line if you mean it, and look again when the draft does", ""},
}
