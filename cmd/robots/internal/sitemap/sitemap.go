// Package sitemap reads the URLs that sitemaps list, as sitemaps.org describes them: urlset and sitemapindex in XML, and
// text with a URL on each line, each of them gzipped or not. A stranger writes sitemaps, so all is bounded: a file by the
// protocol's own numbers, a single element, and how many files one call reads.
package sitemap

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"
)

// The bounds of the protocol, and ours.
const (
	maxURLs  = 50_000   // of one file
	maxBytes = 50 << 20 // of one file, unpacked
	maxLoc   = 2048     // bytes of one URL
	maxToken = 64 << 10 // bytes of one tag, text or comment
	maxDepth = 32       // of elements
)

// Errors of one sitemap.
var (
	errTooLong  = fmt.Errorf("longer than %d MB", maxBytes>>20)
	errTooMany  = fmt.Errorf("lists more than %d URLs", maxURLs)
	errToken    = fmt.Errorf("a tag, text or comment of more than %d bytes", maxToken)
	errDepth    = fmt.Errorf("elements in more than %d others", maxDepth)
	errEncoding = errors.New("not in UTF-8")
	errFormat   = errors.New("neither a urlset, nor a sitemapindex, nor a list of URLs in text")
	errNested   = errors.New("an index that an index lists")
)

// Reader reads sitemaps. All fields must be set.
type Reader struct {
	// Client asks for sitemaps, by the name of UserAgent.
	Client    *http.Client
	UserAgent string

	// URL is called with each URL that is listed, as it is written. Its error ends Read. A URL that two sitemaps list
	// comes twice.
	URL func(loc string) error

	// Failed is called with each sitemap that could not be read to its end, and why; what came before counts.
	Failed func(sitemap string, err error)

	// Files is how many sitemaps Read opens at most: those of robots.txt, and of their indexes.
	Files int
}

// Read reads the sitemaps at locs, and those that they list if they are indexes. It returns an error of URL, or that of
// ctx.
func (r *Reader) Read(ctx context.Context, locs ...string) error {
	seen := map[string]bool{}
	var listed []string
	index := func(loc string) error {
		if len(listed) == r.Files {
			return r.full()
		}
		listed = append(listed, loc)
		return nil
	}
	for _, loc := range locs {
		if err := r.read(ctx, seen, loc, index); err != nil {
			return err
		}
		for _, loc := range listed {
			if err := r.read(ctx, seen, loc, func(string) error { return errNested }); err != nil {
				return err
			}
		}
		listed = listed[:0]
	}
	return nil
}

func (r *Reader) full() error { return fmt.Errorf("%d sitemaps are the most that are read", r.Files) }

// read reads one sitemap, unless it was read before.
func (r *Reader) read(ctx context.Context, seen map[string]bool, loc string, index func(string) error) error {
	if seen[loc] {
		return nil
	}
	if len(seen) >= r.Files {
		r.Failed(loc, r.full())
		return nil
	}
	seen[loc] = true
	var ended error
	err := r.file(ctx, loc, func(loc string) error { ended = r.URL(loc); return ended }, index)
	if ended == nil {
		ended = ctx.Err()
	}
	if err != nil && ended == nil {
		r.Failed(loc, err)
	}
	return ended
}

func (r *Reader) file(ctx context.Context, loc string, page, index func(string) error) error {
	u, err := url.Parse(loc)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("not the URL of a sitemap")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, loc, nil)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", r.UserAgent)
	res, err := r.Client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("status %s", res.Status)
	}
	return parse(res.Body, page, index)
}

// parse reads one sitemap. It calls page or index with what the file lists.
func parse(body io.Reader, page, index func(string) error) error {
	in := bufio.NewReader(body)
	if magic, _ := in.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		unpacked, err := gzip.NewReader(in)
		if err != nil {
			return err
		}
		in = bufio.NewReader(unpacked)
	}
	if bom, _ := in.Peek(3); string(bom) == "\ufeff" {
		in.Discard(3)
	}
	text := &bounded{in: in, left: maxBytes}
	start, _ := in.Peek(512)
	start = bytes.TrimLeft(start, " \t\r\n")
	switch {
	case bytes.HasPrefix(start, []byte("<")):
		return parseXML(text, page, index)
	case bytes.HasPrefix(start, []byte("http")):
		return parseText(text, page)
	}
	return errFormat
}

// bounded reads no more than left bytes, and no more than maxToken until token is zero again.
type bounded struct {
	in    io.Reader
	left  int
	token int
}

func (b *bounded) Read(p []byte) (int, error) {
	switch {
	case b.left <= 0:
		return 0, errTooLong
	case b.token >= maxToken:
		return 0, errToken
	}
	n, err := b.in.Read(p[:min(len(p), b.left, maxToken-b.token)])
	b.left -= n
	b.token += n
	return n, err
}

// counter hands on what a file lists, as long as the protocol lets it.
func counter(next func(string) error) func(string) error {
	n := 0
	return func(loc string) error {
		if loc = strings.TrimSpace(loc); loc == "" || len(loc) > maxLoc {
			return nil
		}
		if n++; n > maxURLs {
			return errTooMany
		}
		return next(loc)
	}
}

// parseXML reads raw tokens: the Decoder's stack of open elements would grow with the depth, and its check of names asks
// for more than a list of locations needs. Entities that a DTD declares are not known to it, so nothing expands.
func parseXML(text *bounded, page, index func(string) error) error {
	decoder := xml.NewDecoder(text)
	// The protocol knows only UTF-8, and programs declare utf-16 or ISO-8859-1 and write UTF-8: the bytes decide.
	decoder.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil }
	lists := map[string]func(string) error{"urlset": counter(page), "sitemapindex": counter(index)}
	var list func(string) error
	var path [maxDepth]string
	var loc strings.Builder
	for depth := 0; ; {
		text.token = 0
		token, err := decoder.RawToken()
		if err == io.EOF && depth == 0 && list != nil {
			return nil
		} else if err == io.EOF {
			return io.ErrUnexpectedEOF
		} else if err != nil {
			return err
		}
		inLoc := depth == 3 && path[2] == "loc" && (path[1] == "url" || path[1] == "sitemap")
		switch t := token.(type) {
		case xml.StartElement:
			if depth == 0 {
				if list = lists[t.Name.Local]; list == nil {
					return errFormat
				}
			}
			if depth == maxDepth {
				return errDepth
			}
			path[depth] = t.Name.Local
			depth++
		case xml.CharData:
			if inLoc && loc.Len() <= maxLoc {
				loc.Write(t)
			}
		case xml.EndElement:
			if depth == 0 {
				return errFormat
			}
			if depth--; inLoc {
				err := list(loc.String())
				if loc.Reset(); err != nil {
					return err
				}
			}
		}
	}
}

// parseText reads a list with a URL on each line. A line of another kind ends it: the file is no list.
func parseText(text *bounded, page func(string) error) error {
	page = counter(page)
	lines := bufio.NewScanner(text)
	lines.Buffer(nil, maxToken)
	for text.token = 0; lines.Scan(); text.token = 0 {
		line := strings.TrimSpace(lines.Text())
		if line != "" && !strings.HasPrefix(line, "http") {
			return errFormat
		}
		if !utf8.ValidString(line) {
			return errEncoding
		}
		if err := page(line); err != nil {
			return err
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return errToken
	}
	return lines.Err()
}
