package sitemap

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
)

const (
	head  = `<?xml version="1.0" encoding="UTF-8"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`
	tail  = `</urlset>`
	one   = `<url><loc>https://a.example/1</loc></url>`
	index = `<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><sitemap><loc>%s</loc></sitemap></sitemapindex>`
)

func zipped(s string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	io.WriteString(w, s)
	w.Close()
	return b.String()
}

// repeated is a file of n times the same text, without the memory that it would take.
func repeated(begin, text string, n int, end string) io.Reader {
	readers := make([]io.Reader, 0, 1000)
	block := strings.Repeat(text, 1000)
	for range n / 1000 {
		readers = append(readers, strings.NewReader(block))
	}
	return io.MultiReader(strings.NewReader(begin), io.MultiReader(readers...), strings.NewReader(end))
}

func TestASitemapIsReadAsFarAsItCanBe(t *testing.T) {
	const u = "https://a.example/1"
	long := "https://a.example/" + strings.Repeat("a", maxLoc)
	for name, row := range map[string]struct {
		file io.Reader
		want int // URLs
		err  string
	}{
		"a urlset":                    {strings.NewReader(head + one + one + tail), 2, ""},
		"without declaration":         {strings.NewReader("<urlset>" + one + tail), 1, ""},
		"a byte order mark":           {strings.NewReader("\ufeff" + head + one + tail), 1, ""},
		"a prefix":                    {strings.NewReader(`<s:urlset xmlns:s="x"><s:url><s:loc>` + u + `</s:loc></s:url></s:urlset>`), 1, ""},
		"white space, CDATA, &amp;":   {strings.NewReader(head + "<url><loc>\n <![CDATA[https://a.example/]]>1?a&amp;b\n</loc></url>" + tail), 1, ""},
		"images and languages beside": {strings.NewReader(head + "<url><image:image><image:loc>https://a.example/i</image:loc></image:image><loc>" + u + "</loc><xhtml:link href='https://a.example/de'/></url>" + tail), 1, ""},
		"lines and comments around":   {strings.NewReader("\n" + `<?xml version="1.0"?><?xml-stylesheet href="a.xsl"?><urlset>` + one + tail + "\n<!-- x -->\n"), 1, ""},
		"a comment inside":            {strings.NewReader(head + "<url><loc>https://a.<!-- x -->example/1</loc></url>" + tail), 1, ""},
		"empty":                       {strings.NewReader(head + tail), 0, ""},
		"gzipped":                     {strings.NewReader(zipped(head + one + tail)), 1, ""},
		"text":                        {strings.NewReader(u + "\n\n" + u + "\r\n" + u), 3, ""},
		"a URL too long":              {strings.NewReader(head + "<url><loc>" + long + "</loc></url>" + one + tail), 1, ""},
		"cut":                         {strings.NewReader(head + one + "<url><loc>https://a.example/2"), 1, "EOF"},
		"cut gzip":                    {strings.NewReader(zipped(head + one + tail)[:60]), 0, "EOF"},
		"no sitemap":                  {strings.NewReader("<!doctype html><html><body>404</body></html>"), 0, errFormat.Error()},
		"nothing":                     {strings.NewReader(""), 0, errFormat.Error()},
		"JSON":                        {strings.NewReader(`{"urls":[]}`), 0, errFormat.Error()},
		"RSS":                         {strings.NewReader(`<rss><channel></channel></rss>`), 0, errFormat.Error()},
		"text and prose":              {strings.NewReader(u + "\nand more\n"), 1, errFormat.Error()},
		"UTF-16":                      {strings.NewReader("\xff\xfe<\x00u\x00"), 0, errFormat.Error()},
		"UTF-8 by another name":       {strings.NewReader(`<?xml version="1.0" encoding="utf-16"?><urlset>` + one + tail), 1, ""},
		"another encoding":            {strings.NewReader(`<?xml version="1.0" encoding="ISO-8859-1"?><urlset>` + one + "<url><loc>https://a.example/\xe9</loc></url>" + tail), 1, "invalid UTF-8"},
		"bytes that are not UTF-8":    {strings.NewReader(head + "<url><loc>https://a.example/\xff</loc></url>" + tail), 0, "invalid UTF-8"},
		"a bomb of entities":          {strings.NewReader(`<!DOCTYPE u [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><urlset><url><loc>&b;</loc></url></urlset>`), 0, "invalid character entity"},
		"an external entity":          {strings.NewReader(`<!DOCTYPE u [<!ENTITY a SYSTEM "file:///etc/passwd">]><urlset><url><loc>&a;</loc></url></urlset>`), 0, "invalid character entity"},
		"too many URLs":               {repeated(head, one, maxURLs+1000, tail), maxURLs, errTooMany.Error()},
		"too long":                    {repeated(head, "<x>"+strings.Repeat(" ", 1017)+"</x>", 52_000, tail), 0, errTooLong.Error()},
		"a bomb of gzip":              {strings.NewReader(zipped(head + strings.Repeat("<x>"+strings.Repeat(" ", 1017)+"</x>", 52_000))), 0, errTooLong.Error()},
		"a gigabyte of one element":   {repeated(head+"<url><loc>", strings.Repeat("a", 1000), 1_000_000, ""), 0, errToken.Error()},
		"a gigabyte of one comment":   {repeated(head+"<!--", strings.Repeat("a", 1000), 1_000_000, ""), 0, errToken.Error()},
		"a gigabyte of one attribute": {repeated(head+`<url a="`, strings.Repeat("a", 1000), 1_000_000, ""), 0, errToken.Error()},
		"a gigabyte of one DTD":       {repeated("<!DOCTYPE u [", strings.Repeat("a", 1000), 1_000_000, ""), 0, errToken.Error()},
		"a gigabyte of one line":      {repeated("http://", strings.Repeat("a", 1000), 1_000_000, ""), 0, errToken.Error()},
		"elements in elements":        {repeated(head, "<a>", 1_000_000, ""), 0, errDepth.Error()},
		"ends of nothing":             {repeated("<urlset></urlset>", "</a>", 1000, ""), 0, errFormat.Error()},
		"a second document":           {strings.NewReader(head + one + tail + "<html></html>"), 1, errFormat.Error()},
		"an index of pages in pages":  {strings.NewReader("<urlset>" + fmt.Sprintf(index, u) + tail), 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := 0
			page := func(loc string) error {
				if got++; loc != u && loc != u+"?a&b" {
					t.Fatalf("got %q, want %q", loc, u)
				}
				return nil
			}
			err := parse(row.file, page, func(string) error { return errNested })
			if got != row.want {
				t.Errorf("got %d URLs, want %d", got, row.want)
			}
			if text := fmt.Sprint(err); row.err == "" && err != nil || !strings.Contains(text, row.err) {
				t.Errorf("got error %v, want %q", err, row.err)
			}
		})
	}
}

// site has files by their paths.
type site map[string]string

func (s site) RoundTrip(req *http.Request) (*http.Response, error) {
	file, ok := s[req.URL.Path[1:]]
	status := map[bool]int{true: http.StatusOK, false: http.StatusNotFound}[ok]
	return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(file)), Request: req}, nil
}

func TestSitemapsOfASite(t *testing.T) {
	const at = "https://a.example/"
	web := map[string]string{
		"index": fmt.Sprintf(index, at+"a"),
		"two":   strings.Replace(fmt.Sprintf(index, at+"a"), "</sitemap>", "</sitemap><sitemap><loc>"+at+"gone</loc></sitemap><sitemap><loc>"+at+"b.gz</loc></sitemap>", 1),
		"four":  strings.Replace(fmt.Sprintf(index, at+"x"), "</sitemap>", "</sitemap>"+strings.Repeat("<sitemap><loc>"+at+"x</loc></sitemap>", 4), 1),
		"self":  fmt.Sprintf(index, at+"self"),
		"deep":  fmt.Sprintf(index, at+"index"),
		"short": fmt.Sprintf(index, "/a"),
		"page":  head + "<url><loc>index.html</loc></url>" + tail,
		"a":     head + one + tail,
		"b.gz":  zipped(head + "<url><loc>https://a.example/2</loc></url>" + tail),
	}
	for _, row := range []struct {
		locs, want, failed []string
	}{
		{[]string{"a"}, []string{"1"}, nil},
		{[]string{"a", "a"}, []string{"1"}, nil},
		{[]string{"index", "a"}, []string{"1"}, nil},
		{[]string{"two"}, []string{"1", "2"}, []string{"gone"}},
		{[]string{"self"}, nil, nil},
		{[]string{"deep"}, nil, []string{"index"}},
		{[]string{"gone", "a"}, []string{"1"}, []string{"gone"}},
		{[]string{"short"}, nil, []string{"/a"}},
		{[]string{"page"}, []string{"index.html"}, nil},
		{[]string{"page", "gone", "index", "b.gz"}, []string{"index.html", "1"}, []string{"gone", "b.gz"}},
		{[]string{"four"}, nil, []string{"four", "x"}},
	} {
		var got, failed []string
		r := &Reader{
			Client: &http.Client{Transport: site(web)},
			URL:    func(loc string) error { got = append(got, strings.TrimPrefix(loc, at)); return nil },
			Failed: func(loc string, err error) { failed = append(failed, strings.TrimPrefix(loc, at)) },
			Files:  4,
		}
		var locs []string
		for _, loc := range row.locs {
			locs = append(locs, at+loc)
		}
		if err := r.Read(context.Background(), locs...); err != nil {
			t.Errorf("%v: got error %v, want none", row.locs, err)
		}
		if !slices.Equal(got, row.want) || !slices.Equal(failed, row.failed) {
			t.Errorf("%v: got %v and failed %v, want %v and %v", row.locs, got, failed, row.want, row.failed)
		}
	}
}

func TestAnErrorOfTheCallerEndsTheReading(t *testing.T) {
	full := errors.New("disk full")
	r := &Reader{
		Client: &http.Client{Transport: site{"s": head + one + one + tail}},
		URL:    func(string) error { return full },
		Failed: func(loc string, err error) { t.Errorf("%s failed with %v, want no word", loc, err) },
		Files:  1,
	}
	if err := r.Read(context.Background(), "https://a.example/s"); err != full {
		t.Errorf("got %v, want %v", err, full)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(head + one + tail))
	f.Add([]byte(zipped(head + one + tail)))
	f.Add([]byte("https://a.example/1\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		parse(bytes.NewReader(data), func(loc string) error {
			if loc == "" || len(loc) > maxLoc {
				t.Errorf("got a URL of %d bytes, want 1 to %d", len(loc), maxLoc)
			}
			return nil
		}, func(string) error { return nil })
	})
}
