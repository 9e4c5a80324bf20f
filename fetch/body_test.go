package fetch_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// full returns a file of n bytes: the text, then comment lines, then the end.
func full(n int, text, end string) string {
	b := strings.Repeat("# a comment of 32 octets, ended.\n", n/33+1)
	return text + b[:n-len(text)-len(end)-1] + "\n" + end
}

func wide(s string, big bool) string {
	var b strings.Builder
	for i := range len(s) {
		if big {
			b.WriteByte(0)
		}
		b.WriteByte(s[i])
		if !big {
			b.WriteByte(0)
		}
	}
	return b.String()
}

func TestRFC9309_TheLineThatTheLimitCutsIsDropped(t *testing.T) {
	const max = maxFile
	for _, c := range []struct {
		name, body string
		want       string // of file's rules
		disallowed bool   // "/x", by the line at the limit
	}{
		{"one byte less", full(max-1, file, "Disallow: /x\n"), "rules", true},
		{"exactly", full(max, file, "Disallow: /x"), "rules", true},
		{"one byte more, a line end", full(max+1, file, "Disallow: /x\n"), "rules", true},
		{"one byte more, in a line", full(max+1, file, "Disallow: /x"), "rules", false},
		{"the last byte is a line end", full(max, file, "Disallow: /x\n") + "more", "rules", true},
		{"the last byte is a CR", full(max, file, "Disallow: /x\r") + "more", "rules", true},
		{"the last byte is the CR of CRLF", full(max, file, "Disallow: /x\r") + "\nmore", "rules", true},
		{"no line end", strings.Repeat("x", max+1), "allow", false},
		{"UTF-16, little-endian", "\xFF\xFE" + wide(full(max, file, "Disallow: /x"), false), "rules", false},
		{"UTF-16, big-endian", "\xFE\xFF" + wide(full(max, file, "Disallow: /x"), true), "rules", false},
		{"UTF-16, cut in a rule", "\xFE\xFF" + wide(full(max/2, file, "Disallow: /x"), true), "rules", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			rt, _ := answers(response(200, c.body))
			f := fetch.Fetcher{Transport: rt}
			r := fetched(t, &f, "http://a.test", nil, c.want)
			if r.Truncated != (len(c.body) > max) || string(r.Body) != c.body[:min(len(c.body), max+1)] {
				t.Errorf("truncated %v, %d of %d bytes, want at most %d of them", r.Truncated, len(r.Body), len(c.body), max+1)
			}
			if d := r.Policy.Decide("a", "/x"); d.Allowed == c.disallowed {
				t.Errorf("/x: got %v, want disallowed %v", d, c.disallowed)
			}
			if cap(r.Body) > len(r.Body)+len(r.Body)/8+64 {
				t.Errorf("%d bytes hold %d of memory, want an eighth more at most", len(r.Body), cap(r.Body))
			}
		})
	}
}

func TestExtension_AFileThatIsTooLongIsOpenForYandex(t *testing.T) {
	for _, d := range dialects {
		for size, want := range map[int]string{maxFile: "rules", maxFile + 1: "rules"} {
			rt, _ := answers(response(200, full(size, file, "")))
			if d == policy.Yandex && size > maxFile {
				want = "allow"
			}
			r := fetched(t, &fetch.Fetcher{Transport: rt}, "http://a.test", nil, "rules").In(d)
			check(t, r, nil, want)
			if r.Truncated != (size > maxFile) || r.Dialect != d {
				t.Errorf("%d bytes: got Truncated %v in %v, want %v in %v", size, r.Truncated, r.Dialect, size > maxFile, d)
			}
		}
	}
}

func TestContentCodings(t *testing.T) {
	for _, c := range []struct {
		coding []string
		body   string
		want   string
	}{
		{nil, file, "rules"},
		{[]string{""}, file, "rules"},
		{[]string{"identity"}, file, "rules"},
		{[]string{"gzip"}, gzipped(file), "rules"},
		{[]string{"x-gzip"}, gzipped(file), "rules"},
		{[]string{"identity, gzip"}, gzipped(file), "rules"},
		{[]string{"gzip"}, "", "allow"},
		{[]string{"gzip"}, file, "disallow"},
		{[]string{"gzip"}, gzipped(file)[:30], "disallow"},
		{[]string{"gzip"}, gzipped(file[:13]) + gzipped("") + gzipped(file[13:]), "rules"},
		{[]string{"gzip"}, gzipped(file) + "\x00", "disallow"}, // half of a member, as far as one knows
		{[]string{"gzip"}, gzipped(file) + strings.Repeat("\x00", 512), "disallow"},
		{[]string{"gzip"}, gzipped(file) + strings.Repeat("\x00", 5<<20), "disallow"},
		{[]string{"gzip"}, gzipped(file) + "\x00x", "disallow"},
		{[]string{"gzip"}, gzipped(file[:13]) + "\x00" + gzipped(file[13:]), "disallow"},
		{[]string{"gzip"}, "\x00" + gzipped(file), "disallow"},
		{[]string{"gzip"}, gzipped(file) + gzipped(file)[:5], "disallow"},
		{[]string{"gzip"}, gzipped(file) + "x", "disallow"},
		{[]string{"gzip"}, gzipped(file)[:12] + "\xff\xff" + gzipped(file)[14:], "disallow"},
		{[]string{"gzip", "gzip"}, gzipped(gzipped(file)), "disallow"},
		{[]string{"br"}, file, "disallow"},
		{[]string{"deflate"}, file, "disallow"},
		{[]string{"gzip", "br"}, file, "disallow"},
		{nil, gzipped(file), "allow"}, // not labelled: bytes without a rule
	} {
		var header []string
		for _, v := range c.coding {
			header = append(header, "Content-Encoding", v)
		}
		rt, n := answers(response(200, c.body, header...))
		f := fetch.Fetcher{Transport: rt, Retries: -1}
		r, err := f.Fetch(t.Context(), originOf(t, "http://a.test"), nil)
		t.Run(fmt.Sprintf("%q of %d bytes", c.coding, len(c.body)), func(t *testing.T) {
			check(t, r, err, c.want)
			if *n != 1 {
				t.Errorf("got %d requests, want 1", *n)
			}
		})
	}
}

// RFC 9110 §14.4, §15.3.7: what a 206 holds stands in Content-Range.
func TestA206CountsIfItHoldsTheWholeFile(t *testing.T) {
	for _, c := range []struct {
		header []string
		want   string
	}{
		{nil, "rules"},
		{[]string{"Content-Range", "bytes 0-32/33"}, "rules"},
		{[]string{"Content-Range", "Bytes 0-32/33"}, "rules"},
		{[]string{"Content-Range", "bytes 0-32/99"}, "disallow"},
		{[]string{"Content-Range", "bytes 0-98/99"}, "disallow"}, // it says so, and has 33
		{[]string{"Content-Range", "bytes 1-32/33"}, "disallow"},
		{[]string{"Content-Range", "bytes 0-32/*"}, "disallow"},
		{[]string{"Content-Range", "bytes */33"}, "disallow"},
		{[]string{"Content-Range", "bytes 0-9223372036854775807/9223372036854775807"}, "disallow"},
		{[]string{"Content-Range", "bytes 0--1/0"}, "disallow"},
		{[]string{"Content-Range", "bytes 0-18446744073709551615/0"}, "disallow"},
		{[]string{"Content-Range", "bytes 0-32/33", "Content-Range", "bytes 0-32/99"}, "disallow"},
		{[]string{"Content-Type", "multipart/byteranges; boundary=x"}, "disallow"},
		{[]string{"Content-Type", "Multipart/ByteRanges;boundary=x", "Content-Range", "bytes 0-32/33"}, "disallow"},
	} {
		rt, n := answers(response(206, file, c.header...))
		f := fetch.Fetcher{Transport: rt}
		r, err := f.Fetch(t.Context(), originOf(t, "http://a.test"), nil)
		t.Run(fmt.Sprintf("%q", c.header), func(t *testing.T) {
			check(t, r, err, c.want)
			if *n != 1 {
				t.Errorf("got %d requests, want 1", *n)
			}
		})
	}
}

// RFC 9112 §6.1: Transfer-Encoding in HTTP/1.0 is faulty framing. net/http does not show it.
func TestRFC9112_ChunksInHTTP10AreFaulty(t *testing.T) {
	const field = "Transfer-Encoding: chunked"
	big := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", maxFile+100, full(maxFile+100, file, ""))
	for _, c := range []struct{ name, message, want string }{
		{"a size that parts a rule", head("HTTP/1.0 200 OK", field) + "17\r\nUser-agent: *\nDisallow:\r\n3\r\n /\n\r\n0\r\n\r\n", "disallow"},
		{"an empty file", head("HTTP/1.0 200 OK", field) + "0\r\n\r\n", "disallow"},
		{"a length besides", head("HTTP/1.0 200 OK", field, "Content-Length: 43") + "21\r\n" + file + "\r\n0\r\n\r\n", "disallow"},
		{"cut", head("HTTP/1.0 200 OK", field) + "21\r\n" + file[:10], "disallow"},
		{"a chunk above the limit", head("HTTP/1.0 200 OK", field) + big, "disallow"},
		{"line feeds alone", head("HTTP/1.0 200 OK", field) + "17\nUser-agent: *\nDisallow:\n3\n /\n\n0\n\n", "disallow"},
		{"behind an empty line", head("HTTP/1.0 200 OK", field) + "\r\n17\r\nUser-agent: *\nDisallow:\r\n3\r\n /\n\r\n0\r\n\r\n", "disallow"},
		{"the field alone", head("HTTP/1.0 200 OK", field) + file, "rules"},
		{"no chunks", head("HTTP/1.0 200 OK") + file, "rules"},
		{"an empty line first", head("HTTP/1.0 200 OK") + "\r\n" + file, "rules"},
		{"a number first", head("HTTP/1.0 200 OK") + "10\r\n" + file, "rules"},
		{"nothing", head("HTTP/1.0 200 OK"), "allow"},
		{"a file that looks so, in HTTP/1.1", reply(200, "0\r\n\r\n"+file), "rules"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := fetch.Fetcher{Retries: -1, Transport: piped(func() []byte { return []byte(c.message) })}
			fetched(t, &f, "http://a.test", nil, c.want)
		})
	}
}
