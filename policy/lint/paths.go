package lint

import (
	"strings"
	"unicode/utf8"

	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/internal/ascii"
	"github.com/robotsgate/robotsgate/policy/lint/internal/model"
)

// path checks the value of one allow or disallow line. What is no path at all is
// reported as that and not looked at further, so that one slip makes one finding.
func (f *checker) path(l *model.Line) {
	v := l.Value
	if l.CommentAt < len(l.Text) && v != "" {
		f.hash(l)
	}
	comma, blank := strings.Index(v, ",/"), strings.IndexAny(v, model.Blanks)
	switch {
	case v == "" && l.Kind == model.Allow: // it says nothing, or the opposite of what it seems to
		f.add("RT309", l, l.ValueAt, "Disallow:", "Allow without a path has no effect, and disallowed everything for older robots of Yandex")
	case v == "": // nothing is closed (RFC 9309 §2.2)
	// Only a well-known name is safe to tell from a path without its slash (RT013). There is no replacement: in the
	// group where the line stands, a User-agent line would join the others, and close the site to them all.
	case model.KnownAgent(v) != "":
		f.value("RT003", l, "%s is a crawler's name, not a path, so the rule matches nothing", v)
	case comma >= 0 && blank < 0 && !model.AbsoluteURL(v):
		f.add("RT004", l, l.ValueAt+comma, "", "%s is one path, with its commas", v)
	case blank >= 0: // no URL that is sent has one
		f.add("RT004", l, l.ValueAt+blank, eachPath(l), "%s holds a blank, so it is one path that hardly any URL begins with", v)
	case !f.absolute(l):
		f.pattern(l)
	}
}

// absolute reports a rule with a host (RT301), and whether it is one. Rules are compared from
// the first byte of the path on (§2.2.2).
func (f *checker) absolute(l *model.Line) bool {
	what := "is a URL"
	rest, ok := model.CutScheme(l.Value)
	host, path, deep := strings.Cut(rest, "/")
	if !ok {
		what = "begins with a host"
		if !deep || !isHost(host) {
			return false
		}
	}
	replacement := l.With("/" + path)
	if f.host != "" && bareHost(f.host) != bareHost(host) {
		replacement = "" // that would be about this site for the sake of another
	}
	f.add("RT301", l, l.ValueAt, replacement, "%s %v, and rules are compared to paths: it matches nothing", l.Value, what)
	return true
}

// bareHost returns a host without port and "www.".
func bareHost(host string) string {
	host, _, _ = strings.Cut(strings.ToLower(host), ":")
	return strings.TrimPrefix(host, "www.")
}

// isHost reports whether the first part of a path is a host name, and not the name of a program or a page.
func isHost(name string) bool {
	name = strings.ToLower(name)
	i := strings.LastIndexByte(name, '.')
	end := name[i+1:]
	return i > 0 && strings.Trim(name, model.Letters+"0123456789-.") == "" && len(end) > 1 &&
		strings.Trim(end, model.Letters) == "" && !model.IsProgram(end) && !strings.HasPrefix(end, "htm")
}

// pattern checks a value that is one path, or the pattern of one.
func (f *checker) pattern(l *model.Line) {
	v := l.Value
	// RFC 9309 §2.2 wants a slash, its own example 5.1 begins with a star, and Google's matcher prepends nothing.
	if v[0] != '/' && v[0] != '*' {
		directory := ""
		if strings.Trim(strings.ToLower(v), model.Letters+"0123456789-_") == "" { // else what begins alike is meant
			directory = "; write " + model.Quote("/"+v+"/") + " if only the directory is meant"
		}
		f.add("RT013", l, l.ValueAt, slashed(l), "%s begins with neither / nor *, so it matches nothing%v", v, directory)
	}
	f.strayMarks(l)
	f.wildcards(l)
	f.escapes(l)
	// A crawler gets another session than the author of the rule.
	if session(v) {
		f.value("RT308", l, "%s names one session, which no later URL has", v)
	}
}

// strayMarks reports what belongs to another notation (RT316): a list's comma or a statement's semicolon behind the
// path, and a "&" as HTML writes it. What ends in a mark behind a star is about the mark.
func (f *checker) strayMarks(l *model.Line) {
	v := l.Value
	bare := strings.TrimRight(v, ",;")
	if i := strings.Index(v, "&amp;"); i >= 0 {
		f.add("RT316", l, l.ValueAt+i, l.With(strings.ReplaceAll(v, "&amp;", "&")),
			"&amp; in %s is how HTML writes &: here it stands for itself, and hardly any URL has it", v)
	} else if bare != v && bare != "" && !strings.HasSuffix(bare, "*") {
		f.add("RT316", l, l.ValueAt+len(bare), l.With(bare), "%s ends in %s, which is a part of the path: only URLs that have it match",
			v, v[len(bare):])
	}
}

// slashed returns the rule with its slash: one is added, or what does not belong before it is removed: invisible
// characters, quotation marks and brackets around the path, a backslash or an equals sign, an escaped slash.
func slashed(l *model.Line) string {
	v := model.Visible(l.Value)
	path := strings.TrimRight(strings.TrimLeft(v, "\"'`([{<\\"), "\"'`)]}>")
	if strings.HasPrefix(path, "=/") {
		path = path[1:]
	}
	if len(path) > 3 && strings.EqualFold(path[:3], "%2F") {
		path = "/" + path[3:]
	}
	switch {
	case v == "":
		return ""
	case v[0] == '/', v[0] == '*':
		return l.With(v)
	case path != v && strings.HasPrefix(path, "/"):
		return l.With(path)
	case path != v, strings.HasPrefix(v, "./"), strings.HasPrefix(v, "../"): // it could be anything
		return ""
	case strings.IndexByte("?&=.;", v[0]) >= 0:
		return l.With("/*" + v) // the middle of a URL was meant
	}
	return l.With("/" + v)
}

// hash checks a comment that begins right after the path: a fragment (RT308), or part of
// the path (RT307). The author knows which; only the rule without it is safe to name.
func (f *checker) hash(l *model.Line) {
	comment := l.Text[l.CommentAt:]
	switch {
	case strings.IndexByte(model.Blanks+":", l.Text[l.CommentAt-1]) >= 0:
	// "#!" and "#/" are the paths of pages that script themselves together. Worse
	// than useless: what is left of "Disallow: /#!/private" closes the whole site.
	case strings.HasPrefix(comment, "#!"), strings.HasPrefix(comment, "#/"):
		f.add("RT308", l, l.CommentAt, "", "%s is a fragment, which is never sent to a server: the rule is %s", comment, l.Value)
	default:
		f.add("RT307", l, l.CommentAt, "", "# begins a comment, so the rule is only %s", l.Value)
	}
}

// eachPath returns a rule for each part of a list of paths, or one whose blanks are escaped if it is none.
func eachPath(l *model.Line) string {
	words := strings.Fields(l.Value)
	parts := make([]string, len(words))
	for i, word := range words {
		parts[i] = strings.TrimRight(word, ",;")
		switch part := parts[i]; {
		case model.Core(part) == "/", part == "":
			return "" // all of the site, or a comma alone
		case part[0] == '/', part[0] == '*':
		case strings.HasSuffix(words[0], ":"):
			return "" // another record, pasted in
		default:
			return l.With(strings.Join(words, "%20"))
		}
	}
	return eachLine(l, parts)
}

// eachLine returns a line with each of the values that is not empty.
func eachLine(l *model.Line, values []string) string {
	var b strings.Builder
	for _, v := range values {
		if v != "" && b.Len() <= maxReplacement+1 {
			b.WriteString("\n" + l.With(v))
		}
	}
	return strings.TrimPrefix(b.String(), "\n")
}

// wildcards checks '*' and '$' (RFC 9309 §2.2.3). A star at the end is implied by the prefix match, also where Yandex
// describes it as appended to every rule; it is not without effect, since the longer pattern wins.
func (f *checker) wildcards(l *model.Line) {
	v := l.Value
	switch c := model.Core(v); {
	case c != v && c != "/":
		f.star(l, l.ValueAt+len(c), l.With(c), "the * at the end of %s matches nothing more; it only makes the rule count as longer", v)
	case v[0] == '*': // "*.gif$" is what most people write, and RFC 9309's own example has it
		slash := l.With("/" + v)
		if c == "/" {
			slash = l.With("/")
		} else if v[1] == '/' {
			slash = "" // "*/x" is about "/x" as well, which "/*/x" is not
		}
		f.once("RT007", l, l.ValueAt, slash,
			"%s begins with a wildcard, which the grammar of RFC 9309 does not have and older readers take literally", v)
	case c != v:
		f.star(l, l.ValueAt+1, l.With("/"), "%s is the same as /", v)
	case strings.Contains(v, "**"): // a star matches any number of characters already
		f.once("RT007", l, l.ValueAt+strings.Index(v, "**"), l.With(model.Single(v)), "** in %s is the same as *", v)
	case strings.HasSuffix(v, "*$"): // Yandex says so; to the others a star may match up to the end as well
		f.once("RT007", l, l.ValueAt+len(v)-2, l.With(strings.TrimRight(v, "*$")), "*$ at the end of %s anchors nothing", v)
	}
	// Google's matcher and design by §2.2.3: "$" designates the end, and only the
	// end of the pattern is one. A name that begins with it, as in /$metadata, is meant so.
	i := strings.IndexByte(v, '$')
	if i >= 0 && i < len(v)-1 && !(strings.HasSuffix(v[:i], "/") && strings.Trim(strings.ToLower(v[i+1:i+2]), model.Letters+"{") == "") {
		f.add("RT302", l, l.ValueAt+i, "", "$ is special at the end only: in %s it stands for a dollar sign", v)
	}
}

// star remarks on a wildcard that matches nothing more. One that makes its rule win over another is there for that. All
// rules are judged at once: many files have a star in each line. The other findings keep their budget.
func (f *checker) star(l *model.Line, at int, replacement, format string, args ...any) {
	if f.idle == nil && !f.unbounded {
		f.idle = map[*model.Line]bool{}
		var edits []edit
		for _, l := range f.Lines {
			if core := model.Core(l.Value); l.Rule() && core != l.Value {
				edits = append(edits, edit{l, l.With(core)})
			}
		}
		judge := judge{file: f.File, asked: unordered, budget: findingsBudget}
		for _, e := range judge.keep(edits) {
			f.idle[e.line] = true
		}
		if judge.unsure {
			f.of("RT007").doubtful = true
		}
	}
	if f.unbounded || f.idle[l] {
		f.once("RT007", l, at, replacement, format, args...)
	}
}

// escapes checks percent-encoding and what should have been encoded (RFC 9309 §2.2.2, RFC 3986 §2.1). Each kind is
// reported once a line, where its first stands. Google upper-cases the digits of escapes and decodes none; RFC 9309
// decodes those of unreserved characters; the robots of 1994 compare bytes.
func (f *checker) escapes(l *model.Line) {
	v, seen := l.Value, map[string]bool{}
	first := func(id string, is bool) bool {
		is = is && !seen[id]
		seen[id] = seen[id] || is
		return is
	}
	escaped := func() string {
		if len(v) > maxReplacement || strings.ContainsFunc(v, model.Invisible) { // which RT113 removes
			return ""
		}
		return l.With(reescape(v))
	}
	for i := range len(v) {
		// Google and RFC 9309 encode such characters as UTF-8; Yandex asks authors to do so, and a file in another encoding
		// matches nothing at all.
		if r, _ := utf8.DecodeRuneInString(v[i:]); first("RT306", v[i] >= 0x80 && utf8.RuneStart(v[i]) && !model.Invisible(r)) {
			f.once("RT306", l, l.ValueAt+i, escaped(), "%s has characters outside ASCII, which not all readers encode alike", v)
		}
		if v[i] != '%' {
			continue
		}
		c, ok := ascii.Unescape(v[i+1:])
		// To RFC 9309 a stray "%" stands for itself, as %25 would; other readers give up on the rule, or decode what they can.
		if first("RT303", !ok) {
			replacement := ""
			if !strings.HasPrefix(v[i+1:], "*") { // any escape is meant, and to Google it says so
				replacement = escaped()
			}
			f.add("RT303", l, l.ValueAt+i, replacement, "the %% in %s begins no escape", v[i:min(len(v), i+3)])
		}
		if first("RT304", ok && strings.ContainsAny(v[i+1:i+3], "abcdef")) {
			f.once("RT304", l, l.ValueAt+i, escaped(), "%s has lower-case digits: readers that do not normalise escapes compare it literally",
				v[i:i+3])
		}
		if first("RT305", ok && ascii.IsUnreserved(c)) {
			f.add("RT305", l, l.ValueAt+i, escaped(), "%s is an ordinary character: RFC 9309 compares it decoded, Google as written", v[i:i+3])
		}
		if first("RT308", ok && c == '#') { // a path may hold %23, but its author mostly means the fragment of a page
			f.add("RT308", l, l.ValueAt+i, "", "%%23 stands for #, and what follows a # is never sent to a server")
		}
	}
}

// reescape returns a pattern in policy's normal form: what is outside ASCII and stray percent signs escaped, escapes
// in upper case and only where they are needed.
func reescape(v string) string {
	_, normal, _ := strings.Cut(policy.Parse([]byte("User-agent: *\nDisallow: "+v)).String(), "Disallow: ")
	return strings.TrimSuffix(normal, "\n")
}

// session tells a pattern that holds the value of a session identifier: eight letters or digits, so that "jsessionid="
// or "jsessionid=*" alone, which mean every session, are none.
func session(v string) bool {
	for _, key := range [...]string{"jsessionid=", "phpsessid="} {
		_, value, _ := strings.Cut(strings.ToLower(v), key)
		if n := len(value) - len(strings.TrimLeft(value, model.Letters+"0123456789")); n >= 8 {
			return true
		}
	}
	return false
}
