package cache

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"net/http"
	"strings"
	"time"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// What a Store holds for an origin:
//
//	"RGC2"    format and version: another version is a miss, not an error
//	4 bytes   CRC-32C of all that follows, big-endian
//	4 bytes   length of the next part, big-endian
//	JSON      a record
//	the rest  the file as it was parsed; its policy is parsed from it again
const (
	recordMagic  = "RGC2"
	recordPrefix = len(recordMagic) + 8

	// tombstone takes the place of rules that have been superseded by what cannot be
	// stored. It reads as no value, whether or not the Store has forgotten it by then.
	tombstone = recordMagic
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errRecord is all there is to say about bytes that may come from anywhere.
var errRecord = errors.New("cache: stored value is damaged, or not of this origin and version")

// record is a state in JSON. It has moments and what was received, but no lifetimes:
// these follow from the header and from the settings of whoever reads it.
type record struct {
	Origin  string         `json:"origin"` // the key again, for values that were mixed up
	Answer  *answerRecord  `json:"answer,omitempty"`
	Failure *failureRecord `json:"failure,omitempty"`
}

type answerRecord struct {
	Dialect   policy.Dialect `json:"dialect"`
	Rules     bool           `json:"rules"` // false: unavailable
	Status    int            `json:"status"`
	Header    http.Header    `json:"header,omitempty"`
	Received  time.Time      `json:"received"`
	Truncated bool           `json:"truncated,omitempty"`
	Redirects []string       `json:"redirects,omitempty"`
	UserAgent string         `json:"user_agent,omitempty"`

	RedirectHeaders []http.Header `json:"redirect_headers,omitempty"`
}

type failureRecord struct {
	Status   int           `json:"status,omitempty"`
	Error    string        `json:"error"`
	Received time.Time     `json:"received"`
	Retry    time.Duration `json:"retry_ns"`
	Since    time.Time     `json:"since"`
	Count    int           `json:"count"`
}

// encodeState returns the bytes to store. The body is that of the answer, if it has rules.
func encodeState(key string, s *state, body []byte) ([]byte, error) {
	rec := record{Origin: key}
	if r := s.answer; r != nil {
		rec.Answer = &answerRecord{
			Dialect: r.Dialect, Rules: isRules(r), Status: r.StatusCode, Header: r.Header,
			Received: s.at, Truncated: r.Truncated, Redirects: r.Redirects, RedirectHeaders: r.RedirectHeaders,
			UserAgent: r.UserAgent,
		}
	}
	if r := s.failure; r != nil {
		rec.Failure = &failureRecord{
			Status: r.StatusCode, Error: r.Err.Error(), Received: s.failed,
			Retry: s.retry, Since: s.since, Count: s.failures,
		}
	}
	meta, err := json.Marshal(&rec)
	if err != nil {
		return nil, err
	}
	data := make([]byte, recordPrefix, recordPrefix+len(meta)+len(body))
	copy(data, recordMagic)
	binary.BigEndian.PutUint32(data[len(recordMagic)+4:], uint32(len(meta)))
	data = append(append(data, meta...), body...)
	if len(data) > MaxValue || len(body) > fetch.MaxBytes {
		return nil, errors.New("cache: state is too long to store")
	}
	binary.BigEndian.PutUint32(data[len(recordMagic):], crc32.Checksum(data[len(recordMagic)+4:], castagnoli))
	return data, nil
}

// decodeRecord takes stored bytes apart, trusting none of them.
func decodeRecord(key string, data []byte) (*record, []byte, error) {
	if len(data) < recordPrefix || len(data) > MaxValue || !strings.HasPrefix(string(data[:len(recordMagic)]), recordMagic) {
		return nil, nil, errRecord
	}
	sum := binary.BigEndian.Uint32(data[len(recordMagic):])
	size := binary.BigEndian.Uint32(data[len(recordMagic)+4:])
	rest := data[recordPrefix:]
	if sum != crc32.Checksum(data[len(recordMagic)+4:], castagnoli) || uint64(size) > uint64(len(rest)) {
		return nil, nil, errRecord
	}
	var rec record
	body := rest[size:]
	if json.Unmarshal(rest[:size], &rec) != nil || rec.Origin != key || !rec.valid() || len(body) > fetch.MaxBytes {
		return nil, nil, errRecord
	}
	return &rec, body, nil
}

// valid reports whether the parts make sense together. Times are not judged here: to
// be from the future is a matter of when it is read.
func (rec *record) valid() bool {
	if f := rec.Failure; f != nil && (f.Retry < 0 || f.Count < 1) {
		return false
	}
	return rec.Answer != nil || rec.Failure != nil
}

// adds reports whether the record knows of an answer or of a failure that s does not.
func (rec *record) adds(s *state) bool {
	if s == nil {
		return true
	}
	a, f := rec.Answer, rec.Failure
	return a != nil && (s.answer == nil || a.Received.After(s.at.Round(0))) ||
		f != nil && (s.failure == nil || f.Received.After(s.failed.Round(0)))
}

// latest is when the record's origin was last heard of.
func (rec *record) latest() (t time.Time) {
	if rec.Answer != nil {
		t = rec.Answer.Received
	}
	if rec.Failure != nil && rec.Failure.Received.After(t) {
		t = rec.Failure.Received
	}
	return t
}

// state is the record under the settings of this cache. Its policy is parsed from the
// file, with the limits of the parser, and its lifetimes are worked out from the header,
// within the bounds of the cache: neither can be forged to be more than a server could say.
func (rec *record) state(t *terms, body []byte, draw func(lo, hi float64) float64) *state {
	s := &state{}
	if a := rec.Answer; a != nil {
		r := &fetch.Result{
			Policy: policy.Unavailable(), Dialect: a.Dialect, StatusCode: a.Status, Header: a.Header, Body: body,
			Time: a.Received, Truncated: a.Truncated, Redirects: a.Redirects, RedirectHeaders: a.RedirectHeaders,
			UserAgent: a.UserAgent,
		}
		if a.Rules {
			r.Policy = a.Dialect.Parse(body)
		}
		s = t.answeredWith(r, a.Received, draw)
		s.answer = slim(r)
	}
	if f := rec.Failure; f != nil {
		s.failure = slim(&fetch.Result{
			Policy: policy.Unreachable(), StatusCode: f.Status, Time: f.Received, Err: errors.New(f.Error),
		})
		// A wait that was not to be shorter than a Retry-After is at most a day.
		s.failed, s.retry, s.since, s.failures = f.Received, min(f.Retry, maxRetryAfter), f.Since, f.Count
		s.assume(t)
	}
	return s
}
