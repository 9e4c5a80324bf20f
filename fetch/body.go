package fetch

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/robotsgate/robotsgate/fetch/internal/harden"
)

// maxFile is how many bytes of a file are parsed, after decoding: the least that RFC 9309 §2.5 allows.
const maxFile = 500 << 10

// fileShare is what a longer file takes of maxMemory, all at once: if each file held a part and waited for more, all
// could wait for ever.
const fileShare = maxFile + 1

// readFile returns the decoded body of res, at most maxFile and one byte. That byte tells Parse that the file is
// longer. After an error the body is not whole, and none of it may be used: what is missing could forbid what the rest
// permits. readFile calls more before it reads beyond a usual file.
func readFile(res *http.Response, more func() error) (body []byte, err error) {
	said := int64(-1)
	if res.StatusCode == http.StatusPartialContent {
		if said = wholeLength(res.Header); said == 0 {
			return nil, errPart
		}
	}
	coded, err := isGzip(res.Header)
	if err != nil {
		return nil, err
	}
	// A connection of ours has the same limit. This one holds for any transport: empty gzip members could go on for ever
	// without one decoded byte.
	sent := &harden.LimitedReader{R: res.Body, Left: harden.MaxConn, Err: harden.ErrTooMuch}
	var r io.Reader = sent
	length := res.ContentLength
	if coded {
		length = 0 // the length of the coded file says little
		if r, err = gunzip(res, r); err != nil {
			return nil, err
		}
	}
	body, err = readAll(io.LimitReader(r, maxFile+1), length, more)
	switch {
	case err != nil:
		return nil, corrupt(err)
	case said > 0 && len(body) <= maxFile && harden.MaxConn-sent.Left != said:
		return nil, errPart
	}
	if res.ProtoMajor == 1 && res.ProtoMinor == 0 && beginsWithChunk(body) {
		return nil, harden.FinalError("chunks in HTTP/1.0, whose sizes are no part of the file")
	}
	return body, nil
}

// usualFile is a length that few files exceed. More memory has to be admitted, because a stranger chooses how much it
// is, and for how long.
const usualFile = 16 << 10

// readAll is io.ReadAll for at most maxFile and one byte. length is what was announced, or below 1.
func readAll(r io.Reader, length int64, more func() error) (body []byte, err error) {
	body = make([]byte, 0, min(max(length+1, bytes.MinRead), usualFile))
	limit := usualFile
	for err == nil && len(body) < fileShare {
		if len(body) == usualFile && limit == usualFile {
			if err = more(); err != nil {
				return nil, err
			}
			limit = fileShare
		}
		if len(body) == cap(body) {
			body = append(make([]byte, 0, min(2*len(body), limit)), body...)
		}
		var n int
		n, err = r.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
	}
	if err == io.EOF {
		err = nil
	}
	return body, err
}

const errPart = harden.FinalError("status 206 with a part of the file, which was not asked for")

// wholeLength returns the length of the file if the header of a 206 says that it holds all of it, -1 if it does not
// say, and 0 if it may hold less (RFC 9110 §15.3.7): half of the rules permits what the others forbid. Every part has a
// Content-Range. We asked for no range, so a 206 without that field is the whole file under the wrong status.
func wholeLength(h http.Header) int64 {
	if strings.HasPrefix(strings.ToLower(h.Get("Content-Type")), "multipart/byteranges") {
		return 0
	}
	said := strings.ToLower(strings.Join(h.Values("Content-Range"), ","))
	if said == "" {
		return -1
	}
	said, fromStart := strings.CutPrefix(said, "bytes 0-")
	last, length, _ := strings.Cut(said, "/")
	end, err := strconv.ParseInt(last, 10, 63)
	if !fromStart || err != nil || end < 0 || length != strconv.FormatInt(end+1, 10) {
		return 0
	}
	return end + 1
}

// beginsWithChunk reports whether b is in chunks (RFC 9112 §7.1). In HTTP/1.0 that is faulty framing (§6.1), but
// net/http drops the field that tells and takes the chunks for the file. The size of a chunk could then part
// "Disallow:" from its path.
func beginsWithChunk(b []byte) bool {
	line, rest, _ := bytes.Cut(bytes.TrimLeft(b, "\r\n"), []byte("\n"))
	size, _, _ := bytes.Cut(line, []byte(";"))
	n, err := strconv.ParseUint(string(bytes.TrimSpace(size)), 16, 31)
	return err == nil && (int(n) > len(rest) || bytes.HasPrefix(bytes.TrimPrefix(rest[n:], []byte("\r")), []byte("\n")))
}

// isGzip reports whether the body has to be decoded. A coding that was not offered, or two of them, is an error:
// undecoded bytes would parse as a file without rules.
func isGzip(h http.Header) (bool, error) {
	var codings []string
	for c := range strings.SplitSeq(strings.Join(h.Values("Content-Encoding"), ","), ",") {
		c = strings.ToLower(strings.TrimSpace(c))
		if c != "" && c != "identity" {
			codings = append(codings, c)
		}
	}
	switch all := strings.Join(codings, ", "); all {
	case "":
		return false, nil
	case "gzip", "x-gzip": // RFC 9110 §8.4.1.3
		return true, nil
	default:
		return false, harden.FinalError(fmt.Sprintf("content coding %q was not asked for", cut(all)))
	}
}

func gunzip(res *http.Response, r io.Reader) (io.Reader, error) {
	z, err := gzip.NewReader(r) // of any number of members (RFC 1952 §2.2)
	// Servers label empty files too. An empty body counts as one if the message states its length. If it ends with the
	// connection, it may have been cut off.
	if err == io.EOF && (res.ContentLength == 0 || len(res.TransferEncoding) > 0) {
		return http.NoBody, nil
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, corrupt(err)
	}
	return z, nil
}

// corrupt makes an error of a body final, unless it is the network's.
func corrupt(err error) error {
	if _, ok := errors.AsType[flate.CorruptInputError](err); ok || err == gzip.ErrHeader || err == gzip.ErrChecksum {
		return harden.FinalError("the gzip coding is damaged: " + err.Error())
	}
	return err
}
