// Package page reads what a response says about the use of its content: the X-Robots-Tag header field, <meta
// name="robots"> and its kin, and the rel attribute of links. No standard defines them; the package follows what
// Google, Yandex, Bing and MDN publish, and Yandex's published parser.
//
// [ParseHeader] and [Reader] collect [Rules]: statements with the place where each stood. [Rules.For] computes what
// they come to for one crawler, as an [Effect]; [Rules.Explain] says of each statement why it has no effect, if it has
// none:
//
//	body := &page.Reader{Body: resp.Body, ContentType: resp.Header.Get("Content-Type")}
//	resp.Body = body // and read it
//	rules := page.ParseHeader(resp.Header.Values("X-Robots-Tag")).Add(body.Rules())
//	if e := rules.For(policy.RFC9309, "ExampleBot"); !e.MayIndex(time.Now()) {
//		// do not list the page
//	}
//
// These are statements about use. They change no crawling decision: the request was allowed before the page was seen. A
// page that robots.txt disallows is not fetched, so that its noindex is never seen. The rules are those of the final
// response: a redirect and an error carry no page, and a 304 leaves those of the stored response in force, unless it
// brings the header field itself (RFC 9111 §3.2, §4.3.4).
//
// # Reading
//
// A field line is a list of items, separated by commas. An item may begin with a crawler's name and a colon, which hold
// for it and for all later items of the line. Names of rules match whole, and case never matters. An item that is not
// understood is ignored, and only that. Lists in meta elements name no crawlers: the element does.
//
// A date of unavailable_after may be one of RFC 822, RFC 850 or ISO 8601. Zones
// are Z, UT, UTC, GMT, those of North America by name, and offsets; without one it is UTC.
//
// # Engines
//
// What each engine does with a rule. Restrictions that apply to a crawler add up, and the strictest value holds, except
// where the table has "lifts". The column strict is the dialects RFC9309 and Original: a crawler of one's own, which
// honors whatever it was asked for.
//
//	rule                      strict  Google  Yandex  Bing  sources
//	noindex, nofollow         yes     yes     yes     yes   G Y B
//	none                      yes     yes     yes     yes   G Y, Bing [Q]
//	all                       no      no      lifts   no    G Y
//	index, follow, archive    no      no      lifts   no    G Y B
//	noarchive                 yes     no      yes     yes*  G Y B
//	nocache                   yes     no      no      yes*  B
//	nosnippet                 yes     yes     no      yes   G B
//	max-snippet:n             yes     yes     no      yes   G B
//	max-image-preview:size    yes     yes     no      yes   G B
//	max-video-preview:n       yes     yes     no      yes   G B
//	notranslate               yes     yes     no      no    G
//	noimageindex              yes     yes     no      no    G
//	unavailable_after:date    yes     yes     no      no    G, Yandex's parser
//	indexifembedded           yes     yes     no      no    G
//	noai, noimageai           yes     no      no      no    DeviantArt 2022, img2dataset
//	noml                      yes     no      no      no    a proposal of Mojeek
//	nositelinkssearchbox      no      no      no      no    G
//	noodp, noydir, noyaca     no      no      no      no    history
//
//	*  Bing reads nocache beside noarchive as nocache alone, the less restrictive.
//	G  developers.google.com/search/docs/crawling-indexing/robots-meta-tag (2026-03-24)
//	Y  yandex.com/support/webmaster, meta robots; ydb-platform/ydb, library/cpp/http/fetch/httpfsm.rl6
//	B  Bing webmaster help, robots meta tags; blogs.bing.com 2020-06 and 2023-09
//
// Engines also differ in whose statements apply, in two places. Google's AdsBot heeds only what names it, not what is
// for all. Yandex's header parser knows the names yandex and yandexbot and no others.
//
// # Open questions
//
// Where sources disagree or are silent, this is what the package does:
//
//   - [Q] Positive words lift in Yandex's header too, as in its parser; its help names them in meta elements only.
//   - [Q] Bing publishes no rule for conflicts: restrictions add up, none included.
//   - [Q] A date that begins with a weekday goes on behind the comma if a digit follows.
//   - [Q] A meta element counts wherever it stands, in noscript and in the body too. Commas separate words of rel.
//   - [Q] "*" as a crawler's name stands for all.
//
// # Limits
//
// 64 field lines, 64 KiB of header text, 256 KiB of a page, 256 statements. What was read before a limit counts, and
// Rules and Effect are Incomplete; past the limit of a page, only if a meta element seems to follow. Those of a page in
// UTF-16 or ISO-2022-JP always are. Nothing that a server sends makes the package fail, panic, or take more than time in
// proportion to its size. Text in a Statement comes from the network: quote it before it goes to a terminal.
package page
