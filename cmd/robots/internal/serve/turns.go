package serve

// POST /v1/turns and what ends a turn. The waiting is done by package client (Transport.Turn); here a turn gets an ID
// and a lease, because the client that holds it may never come back. Waits are bounded by Limits.Turns, and take no
// place of a question: a place is reserved before the wait, and goes with the turn to its lease.

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/web"
	"github.com/robotsgate/robotsgate/fetch"
)

type turnQuestion struct {
	URL   string `json:"url"`
	Agent string `json:"agent"`
	Wait  string `json:"wait"`
}

// turnAnswer is the answer. Every field is always there, and null if it does not apply; openapi.json describes them.
type turnAnswer struct {
	Allowed    bool            `json:"allowed"`
	Turn       *string         `json:"turn"`
	Expires    *time.Time      `json:"expires"`
	Delay      *string         `json:"delay"`
	RetryAfter *float64        `json:"retry_after"` // in seconds
	Decision   *answer.Verdict `json:"decision"`
}

// A client that wants to wait longer than maxWait asks again, so an abandoned one does not hold its place for hours.
// maxJSON has room for escapes, with which JSON writes a URL longer than it is.
const (
	usualWait = 30 * time.Second // for a turn
	leastWait = 100 * time.Millisecond
	awayWait  = 5 * time.Second // until the server of turns may be back: a guess
	maxWait   = 2 * time.Minute
	maxJSON   = 4*answer.MaxURL + 4<<10 // of a small question
)

// turn answers POST /v1/turns: it decides, and waits for the turn of what is allowed. If the client has hung
// up by then, it never learns the ID. The turn is then ended at once, because others wait for it.
func (v *Service) turn(w http.ResponseWriter, r *http.Request, _ url.Values) error {
	q, wait, err := v.readTurn(w, r)
	if err != nil {
		return err
	}
	if !v.turns.Bounded.Take() {
		return web.Busy()
	}
	var turn *client.Turn // reserved for before it is waited for: a turn that comes must not be refused then
	defer func() {
		if turn == nil { // else its lease has the place
			v.turns.Bounded.Free()
		}
	}()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(v.draining, cancel)()
	// An error here is that of the question, of a client that has gone, or of the service that ends.
	var said *turnAnswer
	said, turn, err = v.take(ctx, q, wait)
	switch {
	case err != nil && v.draining.Err() != nil:
		return web.Unavailable("the service is ending")
	case err != nil:
		return err
	}
	id := ""
	if turn != nil {
		var until time.Time
		id, until = v.turns.Add(turn)
		said.Turn, said.Expires, said.Delay = &id, new(until.UTC().Truncate(time.Millisecond)), new(turn.Delay().String())
	}
	err = v.answer(w, http.StatusOK, mediaJSON, func() {}, func(to io.Writer) error {
		var out shell.Output
		out.JSON(said)
		_, err := out.WriteTo(to)
		return err
	})
	if err != nil || r.Context().Err() != nil { // the client has gone, or gets no turn
		v.turns.End(id)
	}
	return err
}

// take waits for a turn, and decides. There is none if the URL is refused, or if it does not come in time. What the
// decision rests on is found when the wait is over: it may be as long as a robots.txt, and many wait.
func (v *Service) take(ctx context.Context, q turnQuestion, wait time.Duration) (*turnAnswer, *client.Turn, error) {
	k, err := asker(v.Asker, q.Agent, "")
	if err != nil {
		return nil, nil, err
	}
	u, o, err := siteOf("url", q.URL)
	if err != nil {
		return nil, nil, err
	}
	// The robots.txt is read at the pace of the site: what a question has read is no visit that a
	// turn would keep its distance to.
	if _, _, err := v.gate.Cache.Get(ctx, o, v.known(k.Dialect)); err != nil {
		if v.away(ctx) { // to read it takes a turn, too
			return nil, nil, web.Unavailable("the server of turns is away")
		}
		within, cancel := context.WithTimeout(ctx, v.Limits.Question)
		defer cancel()
		_, err := v.gate.In(k.Dialect).Lookup(within, u)
		if err != nil && !errors.Is(err, fetch.ErrNotPublic) { // which the decision tells
			return nil, nil, fmt.Errorf("robots.txt was not read: %w", err)
		}
	}
	for range 3 {
		turn, err := v.await(ctx, &k, u, wait)
		_, refused := errors.AsType[*client.DisallowedError](err)
		refused = refused || errors.Is(err, fetch.ErrNotPublic)
		late, isLate := errors.AsType[*client.LateError](err)
		timeout := errors.Is(err, context.DeadlineExceeded)
		if err != nil && (ctx.Err() != nil || !refused && !isLate && !timeout) {
			return nil, nil, err
		}
		said, err := v.decideTurn(ctx, q)
		switch {
		case err != nil || !said.Allowed:
			if turn != nil {
				turn.End()
			}
			return said, nil, err
		case refused: // the rules have changed meanwhile
			continue
		case isLate: // At is an estimate, and may be the present time: with that, a client would ask in a loop
			said.RetryAfter = inSeconds(max(time.Until(late.At), leastWait))
		case turn == nil:
			said.RetryAfter = inSeconds(awayWait)
		}
		return said, turn, nil
	}
	return nil, nil, web.Unavailable("robots.txt changes too fast")
}

// decideTurn is the answer without a turn.
func (v *Service) decideTurn(ctx context.Context, q turnQuestion) (*turnAnswer, error) {
	about, err := v.about(ctx, q.URL, q.Agent, "")
	if err != nil {
		return nil, err
	}
	verdicts, err := v.judge(about)
	if err != nil {
		return nil, err
	}
	said := &turnAnswer{Allowed: verdicts[0].Allowed, Decision: verdicts[0]}
	if said.Decision.Unreachable() {
		said.RetryAfter = inSeconds(said.Decision.Robots.AskAgain())
	}
	return said, nil
}

// away reports whether the server of turns does not answer. It takes a second at most.
func (v *Service) away(ctx context.Context) bool {
	within, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return v.gate.Ping(within) != nil && ctx.Err() == nil
}

// await waits for a turn, at least leastWait: a wait of 0s asks for one that is there, and over Redis even that is an
// exchange with the server.
func (v *Service) await(ctx context.Context, k *answer.Asker, u *url.URL, wait time.Duration) (*client.Turn, error) {
	ctx, cancel := context.WithTimeout(ctx, max(wait, leastWait))
	defer cancel()
	v.metrics.turnsWaiting.Inc()
	defer v.metrics.turnsWaiting.Dec()
	begin := time.Now()
	defer func() { v.metrics.turnTime.Observe(time.Since(begin).Seconds()) }()
	gate, ctx, err := v.gate.For(ctx, k, u)
	if err != nil {
		return nil, err
	}
	return gate.Turn(ctx, u)
}

func inSeconds(d time.Duration) *float64 { return new(d.Round(time.Millisecond).Seconds()) }

// readTurn reads the body of POST /v1/turns, and how long it is willing to wait.
func (v *Service) readTurn(w http.ResponseWriter, r *http.Request) (q turnQuestion, wait time.Duration, err error) {
	if err := v.readJSON(w, r, &q, mediaJSON); err != nil {
		return q, 0, err
	}
	if q.Wait == "" {
		return q, usualWait, nil
	}
	wait, err = time.ParseDuration(q.Wait)
	if err != nil || wait < 0 || wait > maxWait {
		return q, 0, web.BadParameter("wait", "wait is %s: write 0s to %s, such as 30s", answer.Quoted(q.Wait), maxWait)
	}
	return q, wait, nil
}

// endTurn answers POST and DELETE /v1/turns/ID. A status is passed to the Pacer, which backs off after a 429 or
// a 5xx, and after 0, which means that no answer came. Without one, nothing is said about the site.
func (v *Service) endTurn(w http.ResponseWriter, r *http.Request, _ url.Values) error {
	var said struct {
		Status     *int   `json:"status"`
		RetryAfter string `json:"retry_after"` // as the field
	}
	if err := v.readJSON(w, r, &said, mediaJSON, ""); err != nil {
		return err
	}
	status := said.Status
	if status != nil && *status != 0 && (*status < 100 || *status > 599) {
		return web.BadParameter("status", "status is %d: it is that of the answer, or 0 if there was none", *status)
	}
	turn := v.turns.Take(r.PathValue("id")) // its lease is over from here on: of two who end it, one does
	if turn == nil {
		return web.NewProblem(http.StatusNotFound, "turn", "there is no such turn: it has ended, or expired")
	}
	if status != nil {
		turn.Answered(*status, http.Header{"Retry-After": {said.RetryAfter}})
	}
	turn.End()
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// readJSON reads a small body that is one object. With "" among types, an empty body is allowed, and changes nothing.
func (v *Service) readJSON(w http.ResponseWriter, r *http.Request, into any, types ...string) error {
	body, release, err := v.text(w, r, maxJSON, costOfJSON+1, types...) // 1 for the text itself
	if err != nil {
		return err
	}
	defer release()
	if len(bytes.TrimSpace(body)) == 0 && slices.Contains(types, "") {
		return nil
	}
	return readObject(body, into)
}

// leases are the turns that clients hold for a time, each by an ID that cannot be guessed: its holder may end the
// turn. Each has a place in Bounded, taken before Add, until Take or End.
type leases struct {
	Time    time.Duration // until one lapses
	Bounded web.Places

	held sync.Map // of a lease, by the ID of its turn
}

type lease struct {
	turn   *client.Turn
	lapses *time.Timer
}

func (l *leases) Add(turn *client.Turn) (id string, until time.Time) {
	id, until = rand.Text(), time.Now().Add(l.Time) // 130 bits
	l.held.Store(id, lease{turn, time.AfterFunc(l.Time, func() { l.End(id) })})
	return id, until
}

// Take ends a lease and returns its turn, or nil if there is none. Of two who end the same, one gets it.
func (l *leases) Take(id string) *client.Turn {
	h, ok := l.held.LoadAndDelete(id)
	if !ok {
		return nil
	}
	l.Bounded.Free()
	h.(lease).lapses.Stop()
	return h.(lease).turn
}

// End ends a lease as its time does, and the turn with it.
func (l *leases) End(id string) {
	if turn := l.Take(id); turn != nil {
		turn.End()
	}
}

// Close ends all leases as their time does. What is added meanwhile may not be among them.
func (l *leases) Close() {
	l.held.Range(func(id, _ any) bool {
		l.End(id.(string))
		return true
	})
}
