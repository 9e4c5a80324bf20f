package lint

import "strings"

// path checks the value of one allow or disallow line. What is no path at all is
// reported as that and not looked at further, so that one slip makes one finding.
func (f *file) path(l *line) {
	v := l.value
	if l.commentAt < len(l.text) && l.commentAt > 0 {
		f.hash(l)
	}
	if v == "" {
		// An empty Disallow says that nothing is closed, and is fine (RFC 9309 §2.2).
		// An empty Allow says nothing, or the opposite of what it seems to.
		if l.kind == allow {
			f.add("RT309", l, -1, "Allow: /",
				"Allow without a path has no effect, and disallowed everything for older robots of Yandex")
		}
		return
	}
	// Only a well-known name is safe to tell from a path without its slash (RT013).
	if known := knownAgent(v); known != "" {
		f.add("RT003", l, l.valueAt, "User-agent: "+known+"\nDisallow: /",
			"%s is a crawler's name, not a path", quote(v))
		return
	}
	// The grammar has no blanks in a path, and no URL that is sent has one either.
	if i := strings.IndexAny(v, blanks); i >= 0 {
		f.add("RT004", l, l.valueAt+i, l.eachPath(),
			"%s holds a blank, so it is one path that hardly any URL begins with", quote(v))
		return
	}
	// Rules are compared from the first byte of the path on (§2.2.2).
	if rest, ok := cutScheme(v); ok {
		_, path, _ := strings.Cut(rest, "/")
		f.add("RT301", l, l.valueAt, l.with("/"+path),
			"%s is a URL, and rules are compared to paths: it matches nothing", quote(v))
		return
	}
	f.pattern(l)
}

// pattern checks a value that is one path, or the pattern of one.
func (f *file) pattern(l *line) {
	v := l.value
	// RFC 9309 §2.2 wants a slash, its own example 5.1 begins with a star, and
	// Google's matcher prepends nothing.
	if v[0] != '/' && v[0] != '*' {
		slash := "/"
		if strings.IndexByte("?&=.;", v[0]) >= 0 {
			slash = "/*" // the middle of a URL was meant
		}
		f.add("RT013", l, l.valueAt, l.with(slash+v),
			"%s begins with neither / nor *, so it matches nothing", quote(v))
	}
	f.wildcards(l)
	f.escapes(l)
	if l.kind == allow && indexPage(v) {
		// Google's parser tries such a rule once more as dir/$; no other reader is
		// known to.
		dir := v[:strings.LastIndexByte(v, '/')+1]
		f.add("RT315", l, l.valueAt, l.text+"\nAllow: "+dir+"$",
			"%s also allows %s, for Google only", quote(v), quote(dir))
	}
	// A crawler gets another session than the author of the rule.
	if session(v) {
		f.add("RT308", l, l.valueAt, "", "%s names one session, which no later URL has", quote(v))
	}
}

// hash checks a comment that begins right after the path (RT307). After a blank it
// is a comment that was meant.
func (f *file) hash(l *line) {
	if strings.IndexByte(blanks+":", l.text[l.commentAt-1]) >= 0 || l.value == "" {
		return
	}
	whole := l.text[l.valueAt:]
	if i := strings.IndexAny(whole, blanks); i >= 0 {
		whole = whole[:i]
	}
	f.add("RT307", l, l.commentAt, l.with(strings.ReplaceAll(whole, "#", "%23")),
		"# begins a comment, so the rule is only %s", quote(l.value))
	// "#!" and "#/" are the paths of pages that script themselves together. Worse
	// than useless: what is left of "Disallow: /#!/private" closes the whole site.
	if next := l.text[l.commentAt+1:]; strings.HasPrefix(next, "!") || strings.HasPrefix(next, "/") {
		f.add("RT308", l, l.commentAt, "",
			"%s is a fragment, which is never sent to a server", quote(l.text[l.commentAt:]))
	}
}

// eachPath returns a rule for each part of a list of paths, or one whose blanks are
// escaped if it is none.
func (l *line) eachPath() string {
	var b strings.Builder
	for part := range strings.FieldsSeq(l.value) {
		if part[0] != '/' && part[0] != '*' {
			return l.with(strings.Join(strings.Fields(l.value), "%20"))
		}
		if b.Len() <= maxSuggestion+1 {
			b.WriteString("\n" + l.with(part))
		}
	}
	return strings.TrimPrefix(b.String(), "\n")
}

// wildcards checks '*' and '$' (RFC 9309 §2.2.3). A star at the end is implied by
// the prefix match, also where Yandex describes it as appended to every rule; it is
// not without effect, since the longer pattern wins.
func (f *file) wildcards(l *line) {
	v := l.value
	switch c := core(v); {
	case c != v && c != "/":
		f.add("RT007", l, l.valueAt+len(c), l.with(c),
			"the * at the end of %s matches nothing more; it only makes the rule count as longer", quote(v))
	case v[0] == '*': // "*.gif$" is what most people write, and RFC 9309's own example has it
		slash := "/" + v
		if c == "/" {
			slash = "/"
		}
		f.add("RT007", l, l.valueAt, l.with(slash),
			"%s begins with a wildcard, which the grammar of RFC 9309 does not have and older readers take literally",
			quote(v))
	case c != v:
		f.add("RT007", l, l.valueAt+1, l.with("/"), "%s is the same as /", quote(v))
	case strings.Contains(v, "**"): // a star matches any number of characters already
		f.add("RT007", l, l.valueAt+strings.Index(v, "**"), l.with(single(v)),
			"** in %s is the same as *", quote(v))
	case strings.HasSuffix(v, "*$"): // Yandex says so; to the others a star may match up to the end as well
		f.add("RT007", l, l.valueAt+len(v)-2, l.with(strings.TrimRight(v, "*$")),
			"*$ at the end of %s anchors nothing", quote(v))
	}
	// Google's matcher and design by §2.2.3: "$" designates the end, and only the
	// end of the pattern is one.
	if i := strings.IndexByte(v, '$'); i >= 0 && i < len(v)-1 {
		f.add("RT302", l, l.valueAt+i, l.with(dollars(v)),
			"$ is special at the end only: in %s it stands for a dollar sign", quote(v))
	}
}

// single returns the pattern with each run of '*' as one.
func single(v string) string {
	var b strings.Builder
	for i := range len(v) {
		if v[i] != '*' || i == 0 || v[i-1] != '*' {
			b.WriteByte(v[i])
		}
	}
	return b.String()
}

// dollars returns the pattern with every '$' but the last character escaped.
func dollars(v string) string {
	return strings.ReplaceAll(v[:len(v)-1], "$", "%24") + v[len(v)-1:]
}

// escapes are the offsets of what is worth a finding in a pattern, the first of each
// kind; -1 for none.
type escapes struct{ bad, lower, unreserved, fragment int }

func findEscapes(v string) escapes {
	e := escapes{-1, -1, -1, -1}
	for i := range len(v) {
		if v[i] != '%' {
			continue
		}
		c, ok := unhex(v[i+1:])
		switch {
		case !ok:
			e.bad = first(e.bad, i)
		case c == '#':
			e.fragment = first(e.fragment, i)
		case isUnreserved(c):
			e.unreserved = first(e.unreserved, i)
		}
		if ok && strings.ContainsAny(v[i+1:i+3], "abcdef") {
			e.lower = first(e.lower, i)
		}
	}
	return e
}

// escapes checks percent-encoding and what should have been encoded (RFC 9309
// §2.2.2, RFC 3986 §2.1). Each kind is reported once a line. Google upper-cases the
// digits of escapes and decodes none; RFC 9309 decodes those of unreserved
// characters; the robots of 1994 compare bytes.
func (f *file) escapes(l *line) {
	v := l.value
	e := findEscapes(v)
	// To RFC 9309 a stray "%" stands for itself, as %25 would; other readers give up
	// on the rule, or decode what they can.
	if i := e.bad; i >= 0 {
		f.add("RT303", l, l.valueAt+i, l.with(reescape(v)),
			"the %% in %s begins no escape", quote(v[i:min(len(v), i+3)]))
	}
	if i := e.lower; i >= 0 {
		f.add("RT304", l, l.valueAt+i, l.with(reescape(v)),
			"%s has lower-case digits: readers that do not normalise escapes compare it literally",
			quote(v[i:i+3]))
	}
	if i := e.unreserved; i >= 0 {
		f.add("RT305", l, l.valueAt+i, l.with(reescape(v)),
			"%s is an ordinary character: RFC 9309 compares it decoded, Google as written",
			quote(v[i:i+3]))
	}
	// A path may hold %23, but its author mostly means the fragment of a page.
	if i := e.fragment; i >= 0 {
		f.add("RT308", l, l.valueAt+i, "",
			"%%23 stands for #, and what follows a # is never sent to a server")
	}
	// Google and RFC 9309 encode such characters as UTF-8; Yandex asks authors to do
	// so, and a file in another encoding matches nothing at all.
	if i := strings.IndexFunc(v, func(r rune) bool { return r >= 0x80 }); i >= 0 {
		f.add("RT306", l, l.valueAt+i, l.with(reescape(v)),
			"%s has characters outside ASCII, which not all readers encode alike", quote(v))
	}
}

// reescape returns the pattern as RFC 3986 §6.2.2 would write it: what is outside
// ASCII and stray percent signs escaped, escapes in upper case and only where they
// are needed.
func reescape(v string) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := 0; i < len(v) && b.Len() <= maxSuggestion; i++ {
		c, ok := v[i], false
		if c == '%' {
			if c, ok = unhex(v[i+1:]); !ok {
				c = '%'
			}
		}
		// Reserved characters stay as they are written: in a path "%2F" is never "/",
		// and Google tells the others from their escapes too.
		switch {
		case ok && isUnreserved(c) || c < 0x80 && v[i] != '%':
			b.WriteByte(c)
		default:
			b.Write([]byte{'%', digits[c>>4], digits[c&15]})
		}
		if ok {
			i += 2
		}
	}
	return b.String()
}

// first keeps the first offset.
func first(was, i int) int {
	if was >= 0 {
		return was
	}
	return i
}

// unhex reads the two hexadecimal digits at the start of s.
func unhex(s string) (octet byte, ok bool) {
	if len(s) < 2 {
		return 0, false
	}
	for i := range 2 {
		c := s[i]
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		octet = octet<<4 | c
	}
	return octet, true
}

// isUnreserved tells the characters of RFC 3986 §2.3.
func isUnreserved(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0
}

// indexPage tells the patterns that Google retries without the page's name.
func indexPage(v string) bool {
	i := strings.LastIndexByte(v, '/')
	return i >= 0 && strings.HasPrefix(v[i+1:], "index.htm")
}

// session tells a pattern that holds the value of a session identifier: eight
// letters or digits, so that "jsessionid=" or "jsessionid=*" alone, which mean
// every session, are none.
func session(v string) bool {
	lower := strings.ToLower(v)
	for _, key := range [...]string{"jsessionid=", "phpsessid="} {
		i := strings.Index(lower, key)
		if i < 0 {
			continue
		}
		value := lower[i+len(key):]
		if n := len(value) - len(strings.TrimLeft(value, letters+"0123456789")); n >= 8 {
			return true
		}
	}
	return false
}
