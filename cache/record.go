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
//	"RGC5"    format and version; keys begin with it, too, so that no value of another version is found
//	4 bytes   CRC-32C of all that follows, big-endian
//	4 bytes   length of the next part, big-endian
//	JSON      a record
//	the rest  the file as it came
const (
	recordMagic  = "RGC5"
	recordPrefix = len(recordMagic) + 8
	maxBody      = 500<<10 + 1 // what is parsed (RFC 9309 §2.5), and the byte that tells that there is more
	maxRecord    = 600 << 10   // as the doc of Store says
)

// checksum is CRC-32C. Its table is made at the first call, not at the start of a program without a Store.
func checksum(data []byte) uint32 { return crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)) }

// errBadRecord quotes nothing, because the bytes may come from anywhere.
var errBadRecord = errors.New("cache: stored value is damaged, or not of this origin and version")

// record is a state in JSON. It holds times and what was received. Lifetimes and what an answer means are left out:
// they follow from the settings and the dialect of the reader.
type record struct {
	Key     string         `json:"key"` // again, for values that were mixed up
	Answer  *answerRecord  `json:"answer,omitempty"`
	Failure *failureRecord `json:"failure,omitempty"`
	Mark    *mark          `json:"mark,omitempty"` // then there is nothing else
}

type answerRecord struct {
	Status    int         `json:"status"`
	Header    http.Header `json:"header,omitempty"`
	Received  time.Time   `json:"received"`
	File      bool        `json:"file"` // what follows is a file, even if it is empty
	Truncated bool        `json:"truncated,omitempty"`
	Redirects []string    `json:"redirects,omitempty"`
	Wall      bool        `json:"wall,omitempty"`

	RedirectHeaders []http.Header `json:"redirect_headers,omitempty"`
}

type failureRecord struct {
	Status   int           `json:"status,omitempty"`
	Error    string        `json:"error"`
	Cause    string        `json:"cause,omitempty"`
	Received time.Time     `json:"received"`
	Asked    time.Duration `json:"retry_after_ns,omitempty"` // by the server
	Retry    time.Duration `json:"retry_ns"`
	Since    time.Time     `json:"since"`
	Count    int           `json:"count"`
}

// errNotStorable is the error for what a Store does not get.
var errNotStorable = errors.New("cache: state is too long to store, or without its file")

// encodeState returns the bytes to store. The file is the answer's, if it has rules.
func encodeState(key string, s *state, file []byte) ([]byte, error) {
	rec := record{Key: key}
	if r := s.answer; r != nil {
		rec.Answer = &answerRecord{
			Status: r.StatusCode, Header: r.Header, Received: s.at, File: isRules(r), Truncated: r.Truncated,
			Redirects: r.Redirects, RedirectHeaders: r.RedirectHeaders, Wall: r.Wall,
		}
		if !rec.Answer.File {
			file = nil
		} else if file == nil {
			return nil, errNotStorable
		}
	}
	if r := s.failure; r != nil {
		rec.Failure = &failureRecord{
			Status: r.StatusCode, Error: r.Err.Error(), Cause: causeOf(r.Err), Received: s.failed, Asked: r.RetryAfter,
			Retry: s.retry, Since: s.since, Count: s.failures,
		}
	}
	return rec.encode(file)
}

func (m mark) record(key string) *record { return &record{Key: key, Mark: &m} }

func (rec *record) encode(body []byte) ([]byte, error) {
	meta, err := json.Marshal(rec)
	if err != nil {
		return nil, err
	}
	data := make([]byte, recordPrefix, recordPrefix+len(meta)+len(body))
	copy(data, recordMagic)
	binary.BigEndian.PutUint32(data[len(recordMagic)+4:], uint32(len(meta)))
	data = append(append(data, meta...), body...)
	if len(data) > maxRecord || len(body) > maxBody {
		return nil, errNotStorable
	}
	binary.BigEndian.PutUint32(data[len(recordMagic):], checksum(data[len(recordMagic)+4:]))
	return data, nil
}

// decodeRecord takes stored bytes apart, trusting none of them.
func decodeRecord(key string, data []byte) (*record, []byte, error) {
	if len(data) < recordPrefix || len(data) > maxRecord || string(data[:len(recordMagic)]) != recordMagic {
		return nil, nil, errBadRecord
	}
	sum := binary.BigEndian.Uint32(data[len(recordMagic):])
	size := binary.BigEndian.Uint32(data[len(recordMagic)+4:])
	rest := data[recordPrefix:]
	if sum != checksum(data[len(recordMagic)+4:]) || uint64(size) > uint64(len(rest)) {
		return nil, nil, errBadRecord
	}
	var rec record
	body := rest[size:]
	if json.Unmarshal(rest[:size], &rec) != nil || rec.Key != key || len(body) > maxBody {
		return nil, nil, errBadRecord
	}
	// Times are not judged here: whether they lie in the future depends on when the record is read.
	if f := rec.Failure; f == nil && rec.Answer == nil && rec.Mark == nil || f != nil && (f.Retry < 0 || f.Count < 1) {
		return nil, nil, errBadRecord
	}
	return &rec, body, nil
}

// received returns when the answer of the record came, or that of its mark; zero if it has neither.
func (rec *record) received() time.Time {
	switch {
	case rec == nil:
	case rec.Answer != nil:
		return rec.Answer.Received
	case rec.Mark != nil:
		return rec.Mark.Received
	}
	return time.Time{}
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

// usable reports whether the record can be of use where times are measured by now. It may drop the record's failure.
func (rec *record) usable(now time.Time) bool {
	latest := now.Add(clockSlack)
	a, f := rec.Answer, rec.Failure
	if a != nil && f != nil && f.Received.After(latest) {
		// A process with a fast clock met an outage. That takes nothing away from the copy.
		rec.Failure, f = nil, nil
	}
	// The age of a record from the future cannot be measured.
	return !(a != nil && a.Received.After(latest) || f != nil && f.Received.After(latest))
}

// state reads the record in a dialect, under the settings of this cache. Lifetimes follow from the header, within the
// bounds of the cache, so a forged record can say no more than a server could. s is nil if nothing can be read. whole
// reports whether the answer, if there is one, could be read.
func (rec *record) state(t *terms, body []byte, d policy.Dialect) (s *state, whole bool) {
	s, whole = &state{}, true
	if a := rec.Answer; a != nil {
		if !a.File {
			body = nil // a dialect that needs the file is unreachable
		}
		r := read(fetch.Result{
			StatusCode: a.Status, Header: a.Header, Body: body, Time: a.Received, Truncated: a.Truncated,
			Redirects: a.Redirects, RedirectHeaders: a.RedirectHeaders, Wall: a.Wall,
		}, d)
		if whole = !failed(r); whole { // in this dialect
			s = t.answeredWith(r, a.Received)
			s.answer = t.trim(r)
		}
	}
	if f := rec.Failure; f != nil {
		why := &fetch.Failure{Text: truncate(f.Error, 1<<10), Cause: truncate(f.Cause, 32)}
		// In this dialect it may be no failure, or one of the moment. Such a status would not have been stored.
		r := read(fetch.Result{StatusCode: f.Status, Time: f.Received, Err: why}, d)
		if r.Err != nil {
			s.failure = t.trim(r)
			s.failure.RetryAfter = min(max(0, f.Asked), maxRetryAfter)
			// Retry may come from a Retry-After, which is at most a day.
			s.failed, s.retry, s.since, s.failures = f.Received, min(f.Retry, maxRetryAfter), f.Since, f.Count
			s.assume(t)
		}
	}
	if s.answer == nil && s.failure == nil {
		return nil, whole
	}
	return s, whole
}

// truncate returns s, or its beginning.
func truncate(s string, most int) string {
	return strings.ToValidUTF8(strings.Clone(s[:min(len(s), most)]), "")
}

// read finds out what a stored answer means in a dialect.
func read(r fetch.Result, d policy.Dialect) *fetch.Result {
	storedErr := r.Err
	if r.StatusCode/100 == 4 && causeOf(r.Err) == "" { // the error was about the status
		r.Err = nil
	}
	n := r.In(d)
	n.Wall = n.Wall || r.Wall // its sign may be a field that is not kept
	if n.Err != nil && storedErr != nil {
		n.Err = storedErr
	}
	return n
}
