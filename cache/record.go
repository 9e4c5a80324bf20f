package cache

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash/crc32"
	"net/http"
	"time"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// What a Store holds for an origin:
//
//	"RGC4"    format and version: another version is a miss, not an error
//	4 bytes   CRC-32C of all that follows, big-endian
//	4 bytes   length of the next part, big-endian
//	JSON      a record
//	the rest  the file as it came
const (
	recordMagic  = "RGC4"
	recordPrefix = len(recordMagic) + 8
)

// key is the place's key in a Store, where all dialects share it: the version of the value,
// the origin, and what sets the answer apart, the User-Agent as a hash. A space is part of no
// host.
func (p place) key() string {
	key := recordMagic + " " + p.Origin.String() + p.fetcher.String()
	if p.agent != "" {
		sum := sha256.Sum256([]byte(p.agent))
		key += " as " + hex.EncodeToString(sum[:16])
	}
	return key
}

// checksum is CRC-32C. Its table is made at the first call: to a program without a Store, that
// would be a fifth of its start.
func checksum(data []byte) uint32 { return crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)) }

// errRecord says no more, because the bytes may come from anywhere.
var errRecord = errors.New("cache: stored value is damaged, or not of this origin and version")

// record is a state in JSON. It holds times and what was received. Lifetimes and what an answer
// means are left out: they follow from the settings and the dialect of the reader.
type record struct {
	Origin  string         `json:"origin"` // the key again, for values that were mixed up
	Agent   string         `json:"agent"`  // of who wrote this, and then had no other place
	Answer  *answerRecord  `json:"answer,omitempty"`
	Failure *failureRecord `json:"failure,omitempty"`

	// Rules is until when rules were to be kept that no Store may have (no-store), or that are too long for it. It
	// is a mark that there were some: a status of the moment does not permit what they forbid.
	Rules time.Time `json:"rules_until,omitzero"`
}

type answerRecord struct {
	Status    int         `json:"status"`
	Header    http.Header `json:"header,omitempty"`
	Received  time.Time   `json:"received"`
	File      bool        `json:"file"` // the rest is a file, even if it is empty
	Truncated bool        `json:"truncated,omitempty"`
	Redirects []string    `json:"redirects,omitempty"`
	UserAgent string      `json:"user_agent,omitempty"`

	RedirectHeaders []http.Header `json:"redirect_headers,omitempty"`

	// Written is the only dialect that can read the file, because a policy has written it
	// down. It is nil if the file is the origin's, which all dialects can read.
	Written *policy.Dialect `json:"written_in,omitempty"`
}

type failureRecord struct {
	Status   int           `json:"status,omitempty"`
	Error    string        `json:"error"`
	Cause    string        `json:"cause,omitempty"`
	Received time.Time     `json:"received"`
	Retry    time.Duration `json:"retry_ns"`
	Since    time.Time     `json:"since"`
	Count    int           `json:"count"`
}

// encodeState returns the bytes to store. The file is the answer's, if it has rules.
func encodeState(key, agent string, s *state, file *fetch.Result) ([]byte, error) {
	rec := record{Origin: key, Agent: agent}
	var body []byte
	if r := s.answer; r != nil {
		rec.Answer = &answerRecord{
			Status: r.StatusCode, Header: r.Header, Received: s.at, File: isRules(r),
			Truncated: r.Truncated, Redirects: r.Redirects, RedirectHeaders: r.RedirectHeaders, UserAgent: r.UserAgent,
		}
		if rec.Answer.File {
			if body = r.Body; body == nil && file != nil {
				body = file.Body
			}
			if body == nil {
				// Memory has none. The policy can write itself down, with its lines renumbered.
				body, rec.Answer.Written = []byte(r.Policy.String()), &r.Dialect
			}
		}
	}
	if r := s.failure; r != nil {
		rec.Failure = &failureRecord{
			Status: r.StatusCode, Error: r.Err.Error(), Cause: fetch.CauseOf(r.Err), Received: s.failed,
			Retry: s.retry, Since: s.since, Count: s.failures,
		}
	}
	return rec.encode(body)
}

// encodeMark returns the bytes that say until when there were rules.
func encodeMark(key, agent string, until time.Time) ([]byte, error) {
	return (&record{Origin: key, Agent: agent, Rules: until}).encode(nil)
}

func (rec *record) encode(body []byte) ([]byte, error) {
	meta, err := json.Marshal(rec)
	if err != nil {
		return nil, err
	}
	data := make([]byte, recordPrefix, recordPrefix+len(meta)+len(body))
	copy(data, recordMagic)
	binary.BigEndian.PutUint32(data[len(recordMagic)+4:], uint32(len(meta)))
	data = append(append(data, meta...), body...)
	if len(data) > MaxValue || len(body) > fetch.MaxBytes+1 {
		return nil, errors.New("cache: state is too long to store")
	}
	binary.BigEndian.PutUint32(data[len(recordMagic):], checksum(data[len(recordMagic)+4:]))
	return data, nil
}

// decodeRecord takes stored bytes apart, trusting none of them.
func decodeRecord(key string, data []byte) (*record, []byte, error) {
	if len(data) < recordPrefix || len(data) > MaxValue || string(data[:len(recordMagic)]) != recordMagic {
		return nil, nil, errRecord
	}
	sum := binary.BigEndian.Uint32(data[len(recordMagic):])
	size := binary.BigEndian.Uint32(data[len(recordMagic)+4:])
	rest := data[recordPrefix:]
	if sum != checksum(data[len(recordMagic)+4:]) || uint64(size) > uint64(len(rest)) {
		return nil, nil, errRecord
	}
	var rec record
	body := rest[size:]
	if json.Unmarshal(rest[:size], &rec) != nil || rec.Origin != key || len(body) > fetch.MaxBytes+1 {
		return nil, nil, errRecord
	}
	// Times are not judged here: whether they lie in the future depends on when the record is read.
	if f := rec.Failure; f == nil && rec.Answer == nil && rec.Rules.IsZero() || f != nil && (f.Retry < 0 || f.Count < 1) {
		return nil, nil, errRecord
	}
	return &rec, body, nil
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

// usable reports whether the record can be of use at a place, where times are measured by now.
// It may drop the record's failure.
func (rec *record) usable(o place, now time.Time) bool {
	latest := now.Add(clockSlack)
	a, f := rec.Answer, rec.Failure
	if a != nil && f != nil && f.Received.After(latest) {
		// Stamped by another clock than the answer: a process whose clock is fast met an
		// outage. That takes nothing away from the copy.
		rec.Failure, f = nil, nil
	}
	if a != nil && a.Received.After(latest) || f != nil && f.Received.After(latest) {
		return false // its periods cannot be measured, unless it is this clock that is wrong
	}
	return a == nil || a.UserAgent == "" || o.agent != "" // no Cache puts that at the place for all
}

// isFileOf reports whether the record has the file of s's answer, as the origin sent it.
func (rec *record) isFileOf(s *state) bool {
	return rec != nil && rec.Answer != nil && rec.Answer.Received.Equal(s.at) && rec.Answer.File && rec.Answer.Written == nil
}

// state reads the record for a kind of callers, under the settings of this cache. Lifetimes are worked
// out from the header, within the bounds of the cache. So neither they nor the policy can be
// forged to say more than a server could. s is nil if nothing can be read. whole reports
// whether the answer could be read, if there is one.
func (rec *record) state(t *terms, body []byte, k kind, draw func(lo, hi float64) float64,
) (s *state, whole bool) {
	d := k.dialect
	s, whole = &state{}, true
	if a := rec.Answer; a != nil {
		if !a.File || a.Written != nil && *a.Written != d {
			body = nil // the dialect has no file, and is unreachable if it needs one
		}
		r := read(fetch.Result{
			StatusCode: a.Status, Header: a.Header, Body: body, Time: a.Received, Truncated: a.Truncated,
			Redirects: a.Redirects, RedirectHeaders: a.RedirectHeaders, UserAgent: a.UserAgent,
		}, d)
		walls := (&fetch.Fetcher{ObeyWalls: true}).Kind()
		if failed(r) || k.fetcher&walls != 0 && r.Wall() != "" { // to this dialect
			whole = false
		} else {
			s = t.answeredWith(r, a.Received, draw)
			if s.answer = t.trim(r); a.Written != nil {
				s.answer.Body = nil // it is not what the origin sent
			}
		}
	}
	if f := rec.Failure; f != nil {
		// This dialect may take the failure for none, or for one of the moment. It would not
		// have stored either.
		r := read(fetch.Result{StatusCode: f.Status, Time: f.Received, Err: &fetch.Failure{Text: f.Error, Cause: f.Cause}}, d)
		if r.Err != nil {
			s.failure = t.trim(r)
			// A wait that was not to be shorter than a Retry-After is at most a day.
			s.failed, s.retry, s.since, s.failures = f.Received, min(f.Retry, maxRetryAfter), f.Since, f.Count
			s.assume(t)
		}
	}
	if s.answer == nil && s.failure == nil {
		return nil, whole
	}
	return s, whole
}

// read finds out what a stored answer means in a dialect.
func read(r fetch.Result, d policy.Dialect) *fetch.Result {
	said := r.Err
	if r.StatusCode/100 == 4 && !ofAProxy(&r) && fetch.CauseOf(r.Err) == "" { // any error was about the status
		r.Err = nil
	}
	n := r.In(d)
	if n.Err != nil && said != nil {
		n.Err = said
	}
	return n
}
