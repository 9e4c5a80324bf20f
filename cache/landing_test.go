package cache

import (
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// A reader that looks at an entry while a flight lands must not put back the old result.
func TestALateReaderDoesNotUndoALanding(t *testing.T) {
	var m memory
	m.init(0, 0)
	o := testOrigin(t, "https", 1)
	before := &state{answer: &fetch.Result{StatusCode: 200, Policy: policy.Unavailable()}}
	after := &state{answer: &fetch.Result{StatusCode: 404, Policy: policy.Unavailable()}}
	m.put(o, before, before.answer, time.Hour)
	e := m.lookup(o)
	m.put(o, after, after.answer, time.Hour)
	m.extend(e, before, before.answer, 2*time.Hour)
	if got := m.lookup(o); got != e || got.result.Load() != after.answer || got.until.Load() != int64(time.Hour) {
		t.Errorf("%+v until %v, want the result of the flight", got.result.Load(), time.Duration(got.until.Load()))
	}
	m.extend(e, after, after.answer, 2*time.Hour)
	if got := e.until.Load(); got != int64(2*time.Hour) {
		t.Errorf("held until %v, want 2h", time.Duration(got))
	}
}
