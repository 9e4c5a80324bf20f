package cache

import (
	"strings"
	"time"

	"github.com/robotsgate/robotsgate/cache/internal/backing"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// stored is what the Store adds to what memory knows of an origin.
type stored struct {
	state   *state        // the newer one of memory and Store, or nil
	file    *fetch.Result // state.answer with its body, to be validated, or nil
	at      time.Time     // when the Store was read
	enough  bool          // state answers the question
	unknown bool          // there may be a better state that could not be read
	rules   time.Time     // mark.Until of rules that only a mark tells of, in the Store or owed to it
	holds   bool          // the Store may have a value
}

// doubt reports whether there may be rules that we do not know.
func (st *stored) doubt() bool { return st.unknown || st.at.Before(st.rules) }

// fromStore returns what a record adds to what is known. rec is nil if there is none, or if that could not be read.
func (t *terms) fromStore(known *state, rec *backing.Record, body []byte, unread bool, d policy.Dialect, now time.Time) stored {
	st := stored{at: now, unknown: unread, holds: unread || rec != nil}
	if rec == nil {
		rec = new(backing.Record)
	} else if !usable(rec, now) {
		rec, st.unknown = new(backing.Record), true
	}
	s := known
	if rec.Mark != nil && !s.replaces(rec.Mark) {
		st.rules = rec.Mark.Until
	}
	if adds(rec, s) {
		theirs, whole := t.decode(rec, body, d)
		s = s.merged(theirs)
		st.unknown = st.unknown || !whole // others can use the answer: a failure must not displace it
	}
	doubt, again := st.unknown, storeAgain
	if !doubt {
		doubt, again = st.doubt() && t.outage != Strict, min(century, st.rules.Sub(now))
	}
	st.state = s.reviewed(t, doubt, again, now)
	if st.state != nil {
		_, _, due := t.at(st.state, now)
		st.enough = due == notDue
	}
	// The body belongs to this answer only if both were received at one moment.
	if file := st.state.validatable(); file != nil && rec.Answer != nil && rec.Answer.File && rec.Answer.Received.Equal(st.state.at) {
		whole := *file
		whole.Body = body
		st.file = &whole
	}
	return st
}

// toStore returns what the Store gets of a state after r: its value, or a mark if that cannot be stored. It is nil if
// what the Store has, as in st, is to stay. owed is whether it is owed a mark.
func (s *state) toStore(key string, r *fetch.Result, st stored, owed bool) []byte {
	if r.OfTheMoment() || r.Err != nil && st.doubt() {
		return nil // it goes on to hold, even if it could not be read
	}
	file := r.Body
	if r.Err != nil && st.file != nil { // the outage does not displace the answer before it
		file = st.file.Body
	} else if r.Err != nil && s.answer != nil {
		file = s.answer.Body
	}
	if !s.volatile {
		if data := s.encode(key, file); data != nil {
			return data
		}
	}
	m := s.mark()
	switch none := m == (backing.Mark{}); {
	case none && !st.holds:
		return nil
	case none: // what the Store has must go
		m = backing.Mark{Received: s.at, Until: s.at}
	case !owed && st.rules.After(m.Until.Add(-24*time.Hour)): // the mark there is less than a day older
		return nil
	}
	return m.Record(key).Encode(nil)
}

// encode returns the bytes to store, or nil for what a Store does not get: what is too long, or without its file. That
// is the answer's, if it has rules.
func (s *state) encode(key string, file []byte) []byte {
	rec := backing.Record{Key: key}
	if r := s.answer; r != nil {
		rec.Answer = &backing.Answer{
			Status: r.StatusCode, Header: r.Header, Received: s.at, File: isRules(r), Truncated: r.Truncated,
			Redirects: r.Redirects, RedirectHeaders: r.RedirectHeaders, Wall: r.Wall,
		}
		if !rec.Answer.File {
			file = nil
		} else if file == nil {
			return nil
		}
	}
	if r := s.failure; r != nil {
		rec.Failure = &backing.Failure{
			Status: r.StatusCode, Error: r.Err.Error(), Cause: causeOf(r.Err), Received: s.failed, Asked: r.RetryAfter,
			Retry: s.retry, Since: s.since, Count: s.failures,
		}
	}
	return rec.Encode(file)
}

// adds reports whether the record knows of an answer or of a failure that s does not.
func adds(rec *backing.Record, s *state) bool {
	if s == nil {
		return true
	}
	a, f := rec.Answer, rec.Failure
	return a != nil && (s.answer == nil || a.Received.After(s.at.Round(0))) ||
		f != nil && (s.failure == nil || f.Received.After(s.failed.Round(0)))
}

// usable reports whether the record can be of use where times are measured by now. It may drop the record's failure.
func usable(rec *backing.Record, now time.Time) bool {
	latest := now.Add(clockSlack)
	a, f := rec.Answer, rec.Failure
	if a != nil && f != nil && f.Received.After(latest) {
		// A process with a fast clock met an outage. That takes nothing away from the copy.
		rec.Failure, f = nil, nil
	}
	// The age of a record from the future cannot be measured.
	return !(a != nil && a.Received.After(latest) || f != nil && f.Received.After(latest))
}

// decode reads the record in a dialect, under the settings of this cache. Lifetimes follow from the header, within the
// bounds of the cache, so a forged record can say no more than a server could. s is nil if nothing can be read. whole
// reports whether the answer, if there is one, could be read.
func (t *terms) decode(rec *backing.Record, body []byte, d policy.Dialect) (s *state, whole bool) {
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
		why := &fetch.Failure{Text: truncate(f.Error, 1<<10), Cause: truncate(f.Cause, 40)}
		// In this dialect it may be no failure, or one of the moment. Such a status would not have been stored.
		r := read(fetch.Result{StatusCode: f.Status, Time: f.Received, Err: why}, d)
		if r.Err != nil {
			s.failure = t.trim(r)
			s.failure.RetryAfter = min(max(0, f.Asked), maxRetryAfter)
			s.retry = min(f.Retry, maxRetryAfter) // it may be that of a Retry-After, which is at most a day
			s.failed = f.Received
			s.since = f.Since
			s.failures = f.Count
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
