package origins

import (
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// Faults is the table of misbehaviours: at least one of each class. The verdicts are those
// of a fetcher with 5 to 6 s for all, 3 to 4 s per attempt, and up to 3 s for connecting,
// TLS and a header each.
func Faults() []Fault {
	var all []Fault
	for _, group := range [][]Fault{statuses(), redirects(), files(), codings(), framing(), connections(), ladders()} {
		all = append(all, group...)
	}
	return all
}

func statuses() []Fault {
	page := "<!doctype html><title>Not here</title><p>Nothing to see.\n"
	open := "User-agent: *\nAllow: /\n"
	return []Fault{
		{Class: 1, Name: "404", RFC9309: Allow, Google: Allow, Site: Answer(404, page)},
		{Class: 1, Name: "400", RFC9309: Allow, Google: Allow, Site: Answer(400, page)},
		{Class: 1, Name: "499", RFC9309: Allow, Google: Allow, Site: Answer(499, page)},
		{Class: 1, Name: "404 whose body breaks off", RFC9309: Allow, Google: Allow, Site: broken(Head("HTTP/1.1 404 Not Found", "Content-Length: 1000"))},
		{Class: 2, Name: "401 with a challenge", RFC9309: Allow, Google: Allow, Site: Answer(401, page, `WWW-Authenticate: Basic realm="x"`)},
		{Class: 3, Name: "403 with rules for a body", RFC9309: Allow, Google: Allow, Site: Answer(403, "User-agent: *\nDisallow: /\n")},
		{Class: 4, Name: "410", RFC9309: Allow, Google: Allow, Site: Answer(410, page)},
		{Class: 4, Name: "451", RFC9309: Allow, Google: Allow, Site: Answer(451, page)},
		{Class: 5, Name: "429", RFC9309: Allow, Google: Disallow, Site: Answer(429, page)},
		{Class: 5, Name: "429 with Retry-After", RFC9309: Allow, Google: Disallow, Site: Answer(429, page, "Retry-After: 120")},
		{Class: 6, Name: "500", RFC9309: Disallow, Google: Disallow, Site: Answer(500, page)},
		{Class: 6, Name: "502", RFC9309: Disallow, Google: Disallow, Site: Answer(502, page)},
		{Class: 6, Name: "503", RFC9309: Disallow, Google: Disallow, Site: Answer(503, page)},
		{Class: 6, Name: "504", RFC9309: Disallow, Google: Disallow, Site: Answer(504, page)},
		{Class: 6, Name: "520", RFC9309: Disallow, Google: Disallow, Site: Answer(520, page)},
		{Class: 7, Name: "503, come back in a century", RFC9309: Disallow, Google: Disallow, Site: Answer(503, "", "Retry-After: 3155760000")},
		{Class: 7, Name: "503, come back before", RFC9309: Disallow, Google: Disallow, Site: Answer(503, "", "Retry-After: -5")},
		{Class: 7, Name: "503, more seconds than fit", RFC9309: Disallow, Google: Disallow, Site: Answer(503, "", "Retry-After: 99999999999999999999999")},
		{Class: 8, Name: "503 with a body that permits all", RFC9309: Disallow, Google: Disallow, Site: Answer(503, open)},
		{Class: 9, Name: "status 000", RFC9309: Disallow, Google: Disallow, Site: Answer("HTTP/1.1 000 Nothing", open)},
		{Class: 9, Name: "status 099", RFC9309: Disallow, Google: Disallow, Site: Answer("HTTP/1.1 099 Nothing", open)},
		{Class: 9, Name: "status 600", RFC9309: Disallow, Google: Disallow, Site: Answer(600, open)},
		{Class: 9, Name: "status 999", RFC9309: Disallow, Google: Disallow, Site: Answer(999, open)},
		{Class: 9, Name: "status with a sign", RFC9309: Disallow, Google: Disallow, Site: Answer("HTTP/1.1 +20 OK", open)},
		{Class: 10, Name: "101 without an upgrade", RFC9309: Disallow, Google: Disallow, Site: broken(Head("HTTP/1.1 101 Switching Protocols", "Upgrade: x", "Connection: Upgrade") + open)},
		{Class: 11, Name: "304 unasked", RFC9309: Disallow, Google: Disallow, Site: broken(Head("HTTP/1.1 304 Not Modified", `ETag: "x"`))},
		{Class: 60, Name: "407", RFC9309: Allow, Google: Allow, Site: Answer(407, page, `Proxy-Authenticate: Basic realm="x"`)},
	}
}

func redirects() []Fault {
	to := func(location string) func(string) []*Origin { return Answer(302, File, "Location: "+location) }
	return []Fault{
		{Class: 12, Name: "one redirect", RFC9309: Rules, Google: Rules, Site: Hops(1, 301, false)},
		{Class: 12, Name: "five redirects", RFC9309: Rules, Google: Rules, Site: Hops(5, 302, false)},
		{Class: 12, Name: "five redirects, each to another host", RFC9309: Rules, Google: Rules, Site: Hops(5, 308, true)},
		{Class: 13, Name: "six redirects", RFC9309: Allow, Google: Allow, Site: Hops(6, 302, false)},
		{Class: 13, Name: "twenty redirects, each to another host", RFC9309: Allow, Google: Allow, Site: Hops(20, 307, true)},
		{Class: 13, Name: "redirect to itself", RFC9309: Allow, Google: Allow, Site: to("/robots.txt")},
		{Class: 14, Name: "redirect to file", RFC9309: Disallow, Google: Disallow, Site: to("file:///etc/hostname")},
		{Class: 14, Name: "redirect to ftp", RFC9309: Disallow, Google: Disallow, Site: to("ftp://a.test/robots.txt")},
		{Class: 14, Name: "redirect to data", RFC9309: Disallow, Google: Disallow, Site: to("data:text/plain,User-agent:%20*")},
		{Class: 14, Name: "redirect to gopher", RFC9309: Disallow, Google: Disallow, Site: to("gopher://a.test/0robots.txt")},
		{Class: 15, Name: "redirect without Location", RFC9309: Disallow, Google: Disallow, Site: Answer(301, File)},
		{Class: 15, Name: "redirect to what is no URL", RFC9309: Disallow, Google: Disallow, Site: to("http://[::1/robots.txt")},
		{Class: 15, Name: "redirect to a port that is none", RFC9309: Disallow, Google: Disallow, Site: to("http://a.test:99999/robots.txt")},
		{Class: 16, Name: "redirect to the metadata service", RFC9309: Disallow, Google: Disallow, Site: to("http://169.254.169.254/latest/meta-data/")},
		{Class: 16, Name: "redirect to loopback", RFC9309: Disallow, Google: Disallow, Site: to("http://127.0.0.1/robots.txt")},
		{Class: 16, Name: "redirect to loopback in IPv6", RFC9309: Disallow, Google: Disallow, Site: to("http://[::1]/robots.txt")},
		{Class: 16, Name: "redirect to loopback as a number", RFC9309: Disallow, Google: Disallow, Site: to("http://2130706433/robots.txt")},
		{Class: 16, Name: "redirect to a name in a private network", RFC9309: Disallow, Google: Disallow, Site: inside("10.0.0.7")},
		{Class: 16, Name: "redirect to a name on this machine", RFC9309: Disallow, Google: Disallow, Site: inside("127.0.0.1")},
		{Class: 17, Name: "redirects slower than all the time there is", RFC9309: Disallow, Google: Disallow, Site: slowHops(1200 * time.Millisecond)},
		{Class: 18, Name: "https to http", RFC9309: Rules, Google: Rules, HTTPS: true, Site: func(name string) []*Origin {
			host := "plain." + name
			return append(to("http://"+host+"/robots.txt")(name), one(good...)(host)...)
		}},
	}
}

func files() []Fault {
	comments := strings.Repeat("# "+strings.Repeat("x", 97)+"\n", 21_000)
	return []Fault{
		{Class: 19, Name: "empty file", RFC9309: Allow, Google: Allow, Site: Answer(200, "")},
		{Class: 19, Name: "204", RFC9309: Allow, Google: Allow, Site: one(Write(Head("HTTP/1.1 204 No Content")))},
		{Class: 20, Name: "a page instead of a file", RFC9309: Allow, Google: Allow, Site: Answer(200, "<html><body><p>Disallow nothing</body></html>", "Content-Type: text/html")},
		{Class: 21, Name: "a page around the rules", RFC9309: Rules, Google: Rules, Site: Answer(200, "<html><pre>\n"+File+"</pre></html>\n", "Content-Type: text/html")},
		{Class: 22, Name: "byte order mark", RFC9309: Rules, Google: Rules, Site: Answer(200, "\xEF\xBB\xBF"+File)},
		{Class: 22, Name: "part of a byte order mark", RFC9309: Rules, Google: Rules, Site: Answer(200, "\xEF\xBB"+File)},
		{Class: 22, Name: "CR as line end", RFC9309: Rules, Google: Rules, Site: Answer(200, strings.ReplaceAll(File, "\n", "\r"))},
		{Class: 22, Name: "LF CR as line end", RFC9309: Rules, Google: Rules, Site: Answer(200, strings.ReplaceAll(File, "\n", "\n\r"))},
		{Class: 23, Name: "NUL bytes", RFC9309: Rules, Google: Rules, Site: Answer(200, "User-agent: *\n\x00\x00\x00\nDisallow: /private\n")},
		{Class: 23, Name: "bytes that are not UTF-8", RFC9309: Rules, Google: Rules, Site: Answer(200, "# caf\xE9 \xFF\xFE\n"+File+"Disallow: /\xC3\x28\n")},
		{Class: 24, Name: "UTF-16 without a mark", RFC9309: Allow, Google: Allow, Site: Answer(200, utf16(File, false))},
		{Class: 24, Name: "UTF-16 with a mark", RFC9309: Rules, Google: Allow, Site: Answer(200, utf16(File, true))},
		{Class: 25, Name: "2 MB", RFC9309: Rules, Google: Rules, Site: Answer(200, File+comments)},
		{Class: 25, Name: "a body without end", RFC9309: Rules, Google: Rules, Site: one(Write(Head("HTTP/1.1 200 OK")+File), Flood("# and on\n"))},
		{Class: 25, Name: "a chunked body without end", RFC9309: Rules, Google: Rules, Site: one(Write(chunked(File, 1000, "", "")), Flood("9\r\n# and on\n\r\n"))},
		{Class: 26, Name: "rules after 1 MB", RFC9309: Allow, Google: Allow, Site: Answer(200, comments[:1_000_000]+"\n"+File)},
		{Class: 55, Name: "a line of 100 KB", RFC9309: Rules, Google: Rules, Site: Answer(200, "# "+strings.Repeat("x", 100_000)+"\n"+File)},
		{Class: 56, Name: "20,000 groups", RFC9309: Rules, Google: Rules, Site: Answer(200, crowded(20_000, ""))},
		{Class: 56, Name: "57,000 rules", RFC9309: Rules, Google: Rules, Site: Answer(200, crowded(1, strings.Repeat("allow:/\n", 57_000)))},
		{Class: 56, Name: "wildcards", RFC9309: Rules, Google: Rules, Site: Answer(200, crowded(5, strings.Repeat("Disallow: /*a*a*a*a*a*a*b\n", 3_500)))},
		{Class: 57, Name: "max-age of 0", RFC9309: Rules, Google: Rules, Site: Answer(200, File, "Cache-Control: max-age=0")},
		{Class: 57, Name: "max-age below 0", RFC9309: Rules, Google: Rules, Site: Answer(200, File, "Cache-Control: max-age=-1")},
		{Class: 57, Name: "max-age that overflows", RFC9309: Rules, Google: Rules, Site: Answer(200, File, "Cache-Control: max-age=99999999999999999999")},
		{Class: 57, Name: "max-age given twice", RFC9309: Rules, Google: Rules, Site: Answer(200, File, "Cache-Control: max-age=60", "Cache-Control: max-age=86400")},
	}
}

func codings() []Fault {
	gz := func(status, body string) func(string) []*Origin {
		return Answer("HTTP/1.1 "+status, body, "Content-Encoding: gzip")
	}
	return []Fault{
		{Class: 27, Name: "gzip", RFC9309: Rules, Google: Rules, Site: gz("200 OK", Gzip(File))},
		{Class: 27, Name: "gzip in two members", RFC9309: Rules, Google: Rules, Site: gz("200 OK", Gzip("User-agent: *\n")+Gzip("Disallow: /private\n"))},
		{Class: 27, Name: "an empty file that is said to be gzip", RFC9309: Allow, Google: Allow, Site: gz("200 OK", "")},
		{Class: 28, Name: "gzip bomb", RFC9309: Rules, Google: Rules, Site: func(name string) []*Origin { return gz("200 OK", Bomb())(name) }},
		{Class: 29, Name: "empty gzip members without end", RFC9309: Disallow, Google: Disallow, Site: one(Write(Head("HTTP/1.1 200 OK", "Content-Encoding: gzip")), Flood(emptyMember))},
		{Class: 29, Name: "gzip with a wrong checksum", RFC9309: Disallow, Google: Disallow, Site: gz("200 OK", wrongSum())},
		{Class: 29, Name: "gzip cut short", RFC9309: Disallow, Google: Disallow, Site: gz("200 OK", Gzip(File)[:40])},
		{Class: 29, Name: "gzip cut before it begins", RFC9309: Disallow, Google: Disallow, Site: broken(Head("HTTP/1.1 200 OK", "Content-Encoding: gzip"))},
		{Class: 29, Name: "gzip and something else", RFC9309: Disallow, Google: Disallow, Site: gz("200 OK", Gzip(File)+"more")},
		{Class: 29, Name: "plain text that is said to be gzip", RFC9309: Disallow, Google: Disallow, Site: gz("200 OK", File)},
		{Class: 30, Name: "brotli", RFC9309: Disallow, Google: Disallow, Site: Answer(200, "\x8b\x0f\x80abc\x03", "Content-Encoding: br")},
		{Class: 30, Name: "gzip in gzip", RFC9309: Disallow, Google: Disallow, Site: Answer(200, Gzip(Gzip(File)), "Content-Encoding: gzip, gzip")},
		{Class: 30, Name: "gzip in gzip, in two fields", RFC9309: Disallow, Google: Disallow, Site: Answer(200, Gzip(Gzip(File)), "Content-Encoding: gzip", "Content-Encoding: gzip")},
		{Class: 30, Name: "an unknown coding", RFC9309: Disallow, Google: Disallow, Site: Answer(200, File, "Content-Encoding: rot13")},
	}
}

func framing() []Fault {
	return []Fault{
		{Class: 31, Name: "chunk size that is no number", RFC9309: Disallow, Google: Disallow, Site: broken(chunked(File, 10, "", "zz\r\n"))},
		{Class: 31, Name: "no last chunk", RFC9309: Disallow, Google: Disallow, Site: broken(chunked(File, 10, "", ""))},
		{Class: 32, Name: "chunk extensions without end", RFC9309: Disallow, Google: Disallow, Site: one(Write(chunked(File, 10, "", "5;")), Flood("x=y;"))},
		{Class: 32, Name: "trailers without end", RFC9309: Disallow, Google: Disallow, Site: one(Write(chunked(File, 10, "", "0\r\n")), Flood("X: y\r\n"))},
		{Class: 33, Name: "two lengths", RFC9309: Disallow, Google: Disallow, Site: broken(Head("HTTP/1.1 200 OK", "Content-Length: 10", "Content-Length: 33") + File)},
		{Class: 33, Name: "a length below 0", RFC9309: Disallow, Google: Disallow, Site: broken(Head("HTTP/1.1 200 OK", "Content-Length: -1") + File)},
		{Class: 34, Name: "no status line", RFC9309: Disallow, Google: Disallow, Site: broken(File)},
		{Class: 35, Name: "banner of a mail server", RFC9309: Disallow, Google: Disallow, Site: OnAccept(Program{Write("220 mail.test ESMTP ready\r\n"), Hang})},
		{Class: 35, Name: "banner of a secure shell", RFC9309: Disallow, Google: Disallow, Site: OnAccept(Program{Write("SSH-2.0-OpenSSH_9.9\r\n"), Close})},
		{Class: 38, Name: "reset in the body", RFC9309: Disallow, Google: Disallow, Site: one(Write(Head("HTTP/1.1 200 OK", "Content-Length: 1000")+File), Pause(50*time.Millisecond), Reset)},
		{Class: 38, Name: "end in the body", RFC9309: Disallow, Google: Disallow, Site: broken(Head("HTTP/1.1 200 OK", "Content-Length: 1000") + File)},
		{Class: 53, Name: "header without end", RFC9309: Disallow, Google: Disallow, Site: one(Write("HTTP/1.1 200 OK\r\n"), Flood("X-Y: z\r\n"))},
		{Class: 53, Name: "interim responses without end", RFC9309: Disallow, Google: Disallow, Site: one(Flood(Head("HTTP/1.1 103 Early Hints", "Link: </style.css>; rel=preload")))},
		{Class: 54, Name: "one field of 10 MB", RFC9309: Disallow, Google: Disallow, Site: one(Write("HTTP/1.1 200 OK\r\nX-Y: "+strings.Repeat("z", 10<<20)+"\r\n\r\n"+File), Close)},
	}
}

func connections() []Fault {
	https := Fault{RFC9309: Disallow, Google: Disallow, HTTPS: true}
	secure := func(class int, name string, site func(string) []*Origin) Fault {
		f := https
		f.Class, f.Name, f.Site = class, name, site
		return f
	}
	refuse := func(name string) []*Origin { return []*Origin{{Name: name, Dial: Refused}} }
	silent := func(name string) []*Origin { return []*Origin{{Name: name, Dial: Unanswered}} }
	return []Fault{
		{Class: 36, Name: "reset on accept", RFC9309: Disallow, Google: Disallow, Site: OnAccept(Program{Reset})},
		{Class: 37, Name: "end on accept", RFC9309: Disallow, Google: Disallow, Site: OnAccept(Program{Close})},
		{Class: 37, Name: "end of the server's side on accept", RFC9309: Disallow, Google: Disallow, Site: OnAccept(Program{HalfClose, Hang})},
		{Class: 39, Name: "connection refused", RFC9309: Disallow, Google: Disallow, Site: refuse},
		{Class: 40, Name: "connection unanswered", RFC9309: Disallow, Google: Disallow, Site: silent},
		{Class: 41, Name: "silence", RFC9309: Disallow, Google: Disallow, Site: one(Hang)},
		{Class: 41, Name: "silence before the request is read", RFC9309: Disallow, Google: Disallow, Site: OnAccept(Program{Hang})},
		{Class: 42, Name: "header in drips", RFC9309: Disallow, Google: Disallow, Site: one(Drip(Reply(200, File), 400*time.Millisecond))},
		{Class: 43, Name: "body in drips", RFC9309: Disallow, Google: Disallow, Site: one(Write(Head("HTTP/1.1 200 OK", "Content-Length: 1000")), Drip(File, 400*time.Millisecond), Hang)},
		{Class: 44, Name: "no end after the last rule", RFC9309: Disallow, Google: Disallow, Site: stalled(Head("HTTP/1.1 200 OK") + File)},
		{Class: 44, Name: "no last chunk, and no end", RFC9309: Disallow, Google: Disallow, Site: stalled(chunked(File, 10, "", ""))},
		secure(45, "silence in the TLS handshake", OnAccept(Program{Hang})),
		secure(45, "TLS handshake in drips", OnAccept(Program{Drip("\x16\x03\x03\x40\x00\x02\x00\x3f\xfc", 300*time.Millisecond), Hang})),
		secure(45, "no TLS on the port of https", WithTLS(TLSNone)),
		secure(46, "certificate expired", WithTLS(TLSExpired)),
		secure(46, "certificate of another host", WithTLS(TLSWrongHost)),
		secure(46, "certificate of 5,000 other hosts", WithTLS(TLSManyNames)),
		secure(46, "certificate signed by itself", WithTLS(TLSSelfSigned)),
		secure(46, "certificate of an authority that is not trusted", WithTLS(TLSUntrusted)),
		secure(47, "TLS 1.0 only", WithTLS(TLSOld)),
		secure(47, "certificate demanded of the client", WithTLS(TLSClientCert)),
		{Class: 48, Name: "name does not exist", RFC9309: Disallow, Google: Disallow, Site: dead(dnsmessage.RCodeNameError, 0)},
		{Class: 48, Name: "name server fails", RFC9309: Disallow, Google: Disallow, Site: dead(dnsmessage.RCodeServerFailure, 0)},
		{Class: 48, Name: "name without address", RFC9309: Disallow, Google: Disallow, Site: dead(dnsmessage.RCodeSuccess, 0)},
		{Class: 49, Name: "1,000 dead addresses", RFC9309: Disallow, Google: Disallow, Site: dead(dnsmessage.RCodeSuccess, 1000)},
		secure(50, "HTTP/2 that goes away", insistsOnHTTP2(Write(settings+goAway), Close)),
		secure(50, "HTTP/2 that refuses each stream", insistsOnHTTP2(Write(settings+refused), Close)),
		{Class: 50, Name: "HTTP/2 unasked, and it goes away", RFC9309: Disallow, Google: Disallow, Site: one(Write(settings+goAway), Close)},
		secure(51, "HTTP/2 PING flood", insistsOnHTTP2(Write(settings), Flood(frame(6, 0, 0, "12345678")))),
		secure(51, "HTTP/2 SETTINGS flood", insistsOnHTTP2(Write(settings), Flood(settings))),
		secure(51, "HTTP/2 CONTINUATION flood", insistsOnHTTP2(Write(settings+frame(1, 0, 1, "")), Flood(frame(9, 0, 1, "\x00\x01a\x01b")))),
		secure(51, "HTTP/2 padding flood", insistsOnHTTP2(Write(settings), Flood(frame(0, 8, 1, "\xff"+strings.Repeat("\x00", 255))))),
		{Class: 52, Name: "first connection reset", RFC9309: Rules, Google: Rules, Retry: true, Site: func(name string) []*Origin {
			o := one(good...)(name)
			o[0].Accept = []Program{{Reset}, nil}
			return o
		}},
		{Class: 52, Name: "first body breaks off", RFC9309: Rules, Google: Rules, Retry: true, Site: InTurn(Program{Write(Head("HTTP/1.1 200 OK", "Content-Length: 1000") + "User"), Close}, good)},
		{Class: 52, Name: "first answer is 503", RFC9309: Rules, Google: Rules, Retry: true, Site: InTurn(Program{Write(Reply(503, ""))}, good)},
	}
}

// insistsOnHTTP2 writes frames to a client that has made a TLS connection and sent anything.
func insistsOnHTTP2(p ...Step) func(string) []*Origin {
	return func(name string) []*Origin {
		return []*Origin{{Name: name, TLS: TLSHTTP2, Paths: map[string][]Program{"/robots.txt": {p}}}}
	}
}

// ladders are good at first.
func ladders() []Fault {
	return []Fault{
		{Class: 58, Name: "503 later", RFC9309: Rules, Google: Rules, Then: Disallow, Site: InTurn(good, Program{Write(Reply(503, ""))})},
		{Class: 58, Name: "silence later", RFC9309: Rules, Google: Rules, Then: Disallow, Site: InTurn(good, Program{Hang})},
		{Class: 59, Name: "404 later", RFC9309: Rules, Google: Rules, Then: Allow, Site: InTurn(good, Program{Write(Reply(404, ""))})},
	}
}
