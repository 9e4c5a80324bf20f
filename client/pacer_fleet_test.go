package client_test

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/client/internal/memturns"
	"github.com/robotsgate/robotsgate/client/turns"
	"github.com/robotsgate/robotsgate/integration_test/proc"
	"github.com/robotsgate/robotsgate/integration_test/tier"
	"github.com/robotsgate/robotsgate/policy"
)

var (
	fleets     = flag.Int("fleets", 0, "how many fleets TestPacerAFleetWhateverFails tries; if 0, 60, and none under the race detector")
	firstFleet = flag.Uint64("fleet", 0, "the seed of the first")
)

// Whatever fails, each site sees one visitor, who keeps its distance, and no request waits for ever.
func TestPacerAFleetWhateverFails(t *testing.T) {
	tier.Gate(t)
	n := *fleets
	switch {
	case n == 0 && proc.UnderRace():
		t.Skip("the race detector crashes in bubbles with many timers (golang/go#78156); .ci/run runs this test without it")
	case n == 0:
		n = 60
	}
	log := slog.Default()
	slog.SetDefault(slog.New(slog.DiscardHandler)) // of stores that fail
	defer slog.SetDefault(log)
	for i := range uint64(n) {
		t.Run(fmt.Sprint("seed=", *firstFleet+i), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { newFleet(t, *firstFleet+i).run() })
		})
	}
}

const (
	lease  = 5 * time.Second // as the Pacer has it
	faulty = time.Minute     // how long all goes wrong
)

// fleet is several processes that ask sites for pages, through one store of turns.
type fleet struct {
	t      *testing.T
	store  memturns.Store
	calm   time.Time // nothing goes wrong from then on
	places int
	stops  bool          // processes are stopped, for shorter or longer than a lease
	faults bool          // calls of the store fail, or their answers are lost
	far    bool          // calls of the store take their time
	late   bool          // a call that was given up is carried out later
	alone  bool          // Pacer.RunAlone
	crawl  time.Duration // Crawl-delay, above all of Pacer.Delay; 0: there is no robots.txt
	procs  []*process
	hosts  []string

	mu     sync.Mutex // guards what follows
	rand   *rand.Rand
	sites  map[string][]*visit
	pauses time.Duration // that sites asked for
	forgot []time.Time   // when the store lost its memory
	early  map[string]int
	left   int // pages yet to be asked for
}

// process is one process. All that it does to the world passes here.
type process struct {
	*fleet
	delay  time.Duration
	pacer  *client.Pacer
	gates  []*client.Transport
	until  time.Time // it is stopped until then
	turns  map[string]*grant
	resume map[string]time.Time
}

// grant is a turn as the store knows it.
type grant struct {
	key    string
	robots bool
	at     time.Time
	last   time.Time // when it was given or renewed
	lapsed bool
	ended  bool
	used   bool
}

// visit is a request as its site sees it.
type visit struct {
	proc       *process
	robots     bool
	grant      *grant // nil: of a process alone
	start, end time.Time
}

func newFleet(t *testing.T, seed uint64) *fleet {
	f := &fleet{t: t, calm: time.Now().Add(faulty), rand: rand.New(rand.NewPCG(seed, 17)),
		sites: map[string][]*visit{}, early: map[string]int{}}
	f.places = []int{1, 1, 1, 2, 3}[f.pick(5)]
	f.stops, f.faults, f.far = f.pick(2) == 0, f.pick(2) == 0, f.pick(2) == 0
	f.late = f.faults && f.pick(2) == 0
	f.alone = f.faults && f.pick(5) == 0
	f.hosts = []string{"a.example", "b.example"}[:1+f.pick(2)]
	delay := f.upTo(2*time.Second) + 50*time.Millisecond
	for range 2 + f.pick(3) {
		p := &process{fleet: f, delay: delay, turns: map[string]*grant{}, resume: map[string]time.Time{}}
		if f.pick(6) == 0 {
			p.delay *= 3
		}
		p.pacer = &client.Pacer{Delay: p.delay, MaxUnderway: f.places, Turns: p, RunAlone: f.alone}
		for range 1 + f.pick(2) {
			p.gates = append(p.gates, &client.Transport{
				Base: p.base(), UserAgent: "ExampleBot/1.0", Pacer: p.pacer,
				Sign:  func(*http.Request) error { p.here(); return nil },
				Trace: &client.Trace{Waited: func(context.Context, client.WaitedInfo) { p.here() }},
			})
		}
		f.procs = append(f.procs, p)
	}
	if f.pick(2) == 0 {
		f.crawl = 3*delay + f.upTo(3*time.Second).Truncate(time.Millisecond)
	}
	if f.faults && f.pick(3) == 0 {
		time.AfterFunc(f.upTo(faulty), f.forget)
	}
	return f
}

func (f *fleet) run() {
	var workers sync.WaitGroup
	pages := 0
	for _, p := range f.procs {
		for range 1 + f.pick(4) {
			n := 2 + f.pick(8)
			pages += n
			workers.Go(func() {
				for range n {
					p.work()
				}
			})
		}
	}
	f.mu.Lock()
	f.left += pages
	f.mu.Unlock()
	done := make(chan struct{})
	go func() { workers.Wait(); close(done) }()
	time.Sleep(faulty + 30*time.Second)
	f.mu.Lock()
	// A page takes its delay, or three times that, and 3 seconds; then there are dead places.
	bound := f.pauses + time.Duration(f.left)*(7*time.Second+3*time.Second) + time.Minute
	f.mu.Unlock()
	select {
	case <-done:
	case <-time.After(bound):
		f.t.Errorf("%v after the last fault %d pages are still waited for: %s", bound, f.left, f)
		<-done
	}
	time.Sleep(lease + time.Second)
	f.noPageIsHeld()
	time.Sleep(2 * time.Minute) // no robots.txt that is read behind its caller takes longer than that
	f.nothingIsHeld()
	for _, p := range f.procs {
		for _, g := range p.gates {
			g.CloseIdleConnections()
		}
	}
	time.Sleep(5 * time.Minute)
}

// noPageIsHeld looks for places that the store keeps for requests for pages, which have all ended.
func (f *fleet) noPageIsHeld() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.procs {
		for turn, g := range p.turns {
			if !g.robots && g.holds(time.Now()) {
				f.t.Errorf("%s: turn %s is held that has no request; %s", g.key, turn, f)
			}
		}
	}
}

// nothingIsHeld asks for a turn at each site.
func (f *fleet) nothingIsHeld() {
	for _, host := range f.hosts {
		a := turns.Ask{Turn: "last", Places: 1, Lease: lease}
		got, err := f.store.Take(f.t.Context(), "http://"+host, a)
		if err != nil || !got.Taken && got.Pause == 0 {
			f.t.Errorf("%s: a place is held that has no request: %+v, %v; %s", host, got, err, f)
		}
		f.store.Tell(f.t.Context(), "http://"+host, turns.Report{Ask: a})
	}
}

func (f *fleet) String() string {
	return fmt.Sprintf("%d processes, places %d, Crawl-delay %v, stops %v, faults %v, far %v, late %v, alone %v, forgot %v",
		len(f.procs), f.places, f.crawl, f.stops, f.faults, f.far, f.late, f.alone, f.forgot)
}

// note says what happens, in case of a failure.
func (p *process) note(format string, args ...any) {
	p.t.Logf("%8.3f  %d  %s", time.Since(p.calm).Seconds(), slices.Index(p.procs, p), fmt.Sprintf(format, args...))
}

func (f *fleet) pick(n int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.rand.IntN(n)
}

func (f *fleet) upTo(d time.Duration) time.Duration { return time.Duration(f.pick(int(d)-1) + 1) }

// chance reports whether something goes wrong that does so once in n times.
func (f *fleet) chance(kind bool, n int) bool {
	return kind && time.Now().Before(f.calm) && f.pick(n) == 0
}

func (f *fleet) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.store.Forget()
	f.forgot = append(f.forgot, time.Now())
}

// work asks for one page in one of many ways.
func (p *process) work() {
	defer func() {
		p.mu.Lock()
		p.left--
		p.mu.Unlock()
	}()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	switch p.pick(5) {
	case 0:
		ctx, cancel = context.WithTimeout(ctx, p.upTo(20*time.Second))
		defer cancel()
	case 1:
		defer time.AfterFunc(p.upTo(20*time.Second), cancel).Stop()
	}
	u := &url.URL{Scheme: "http", Host: p.hosts[p.pick(len(p.hosts))], Path: "/page"}
	gate := p.gates[p.pick(len(p.gates))]
	if p.pick(4) == 0 && p.pacer.Wait(ctx, u) != nil {
		return
	}
	time.Sleep(p.upTo(time.Second) * time.Duration(p.pick(2)))
	p.here()
	if p.pick(6) == 0 {
		turn, err := gate.Turn(ctx, u)
		if err == nil {
			v := p.arrive(u.Host, false)
			time.Sleep(p.upTo(time.Second))
			p.leave(v)
			turn.End()
		}
		return
	}
	req, _ := http.NewRequestWithContext(ctx, "GET", u.String(), nil)
	res, err := gate.RoundTrip(req)
	if err != nil {
		no, _ := errors.AsType[*client.DisallowedError](err)
		slow := p.stops && no != nil && no.Reason == policy.ReasonUnreachable // robots.txt took longer than its time-out
		if ctx.Err() == nil && !slow && !errors.Is(err, context.DeadlineExceeded) {
			p.t.Errorf("%v; %s", err, p)
		}
		return
	}
	if p.pick(8) == 0 {
		time.Sleep(p.upTo(12 * time.Second)) // with the body open
	}
	p.here()
	if p.pick(2) == 0 {
		io.Copy(io.Discard, res.Body)
	}
	res.Body.Close()
}

// here is where the process may be stopped.
func (p *process) here() {
	if p.chance(p.stops, 30) {
		p.mu.Lock()
		if !p.until.After(time.Now()) {
			d := []time.Duration{500, 3000, 4900, 5100, 6500, 12000}[p.rand.IntN(6)] * time.Millisecond
			p.until = time.Now().Add(d)
			p.note("is stopped for %v", d)
		}
		p.mu.Unlock()
	}
	for {
		p.mu.Lock()
		d := time.Until(p.until)
		p.mu.Unlock()
		if d <= 0 {
			return
		}
		time.Sleep(d)
		if p.pick(2) == 0 { // others of this process are ready as well, and go first
			time.Sleep(p.upTo(300 * time.Millisecond))
		}
	}
}

var errFault = errors.New("connection reset")

// call makes a call of the store.
func (p *process) call(ctx context.Context, f func()) error {
	p.here()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	fails := p.chance(p.faults, 8)
	if err := p.travel(ctx, fails && p.pick(2) == 0); err != nil {
		if p.chance(p.late, 3) {
			time.AfterFunc(p.upTo(4*time.Second), f)
		}
		return err
	}
	if f(); fails {
		return p.travel(ctx, true)
	}
	err := p.travel(ctx, false)
	p.here()
	return err
}

// travel is the way to the store, or back.
func (p *process) travel(ctx context.Context, lost bool) error {
	var took time.Duration
	if p.far && time.Now().Before(p.calm) {
		took = p.upTo([]time.Duration{time.Millisecond, 100 * time.Millisecond, time.Second}[p.pick(3)])
	}
	if lost && p.pick(2) == 0 {
		took = time.Hour // it hangs
	}
	select {
	case <-time.After(took):
	case <-ctx.Done():
		return ctx.Err()
	}
	if lost {
		return errFault
	}
	return nil
}

// Take implements turns.Store.
func (p *process) Take(ctx context.Context, key string, a turns.Ask) (turns.Reply, error) {
	answer := make(chan turns.Reply, 1) // that is not waited for if the call was given up
	err := p.call(ctx, func() {
		got, _ := p.store.Take(context.Background(), key, a)
		p.took(key, a, got)
		answer <- got
	})
	if err != nil {
		return turns.Reply{}, err
	}
	return <-answer, nil
}

func (p *process) took(key string, a turns.Ask, got turns.Reply) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if old := p.turns[a.Turn]; old != nil && old.ended && !p.late {
		p.t.Errorf("turn %s was asked for after its end; %s", a.Turn, p)
	}
	p.note("%s: take %s kind %d: %+v", key, a.Turn, a.Kind, got)
	if got.Taken && a.Kind != turns.Visit {
		now := time.Now()
		p.turns[a.Turn] = &grant{key: key, robots: a.Kind == turns.Robots, at: now, last: now}
	}
}

// Tell implements turns.Store.
func (p *process) Tell(ctx context.Context, key string, n turns.Report) error {
	return p.call(ctx, func() {
		p.store.Tell(context.Background(), key, n)
		p.told(n)
	})
}

func (p *process) told(n turns.Report) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.note("%s: tell %s event %d", "", n.Turn, n.Event)
	g := p.turns[n.Turn]
	if g == nil {
		return
	}
	now := time.Now()
	g.lapsed = g.lapsed || !now.Before(g.last.Add(lease))
	switch n.Event {
	case turns.Renewed:
		if g.ended && !p.late {
			p.t.Errorf("turn %s was renewed after its end; %s", n.Turn, p)
		}
		g.last = now
	case turns.Ended, turns.Dropped:
		g.ended = true
	}
}

// holds reports whether the store keeps the place.
func (g *grant) holds(now time.Time) bool {
	return !g.lapsed && !g.ended && now.Before(g.last.Add(lease))
}

// arrive is where a site looks at who comes.
func (p *process) arrive(host string, robots bool) *visit {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	v := &visit{proc: p, robots: robots, start: now}
	for _, g := range p.turns {
		// Which of several turns of one process it is, the site cannot know.
		if g.key != "http://"+host || g.robots != robots || !g.holds(now) || g.used && !robots && p.places == 1 {
			continue
		}
		if v.grant == nil || v.grant.used {
			v.grant = g
		}
	}
	if v.grant != nil {
		v.grant.used = true
	}
	p.note("%s: arrives, robots.txt %v", host, robots)
	if v.grant == nil && !p.alone {
		p.t.Errorf("%s, robots.txt %v: sent without a place, %v before the calm; %s", host, robots, time.Until(p.calm), p)
	}
	if !robots {
		p.look(host, v)
	}
	p.sites[host] = append(p.sites[host], v)
	return v
}

// look looks at a page beside those before.
func (p *process) look(host string, v *visit) {
	if at := p.resume[host]; v.start.Before(at) && p.places == 1 {
		p.t.Errorf("%s: a page %v before the Retry-After that this process got; %s", host, at.Sub(v.start), p)
	}
	live, early := 0, time.Duration(0) // what was lacking
	for _, o := range p.sites[host] {
		want := min(p.delay, o.proc.delay) // a store forgets when the delays have passed that it was asked for
		if p.crawl > 0 {
			want = p.crawl
		}
		if o.robots && (p.crawl == 0 || p.places > 1 || o.end.IsZero()) || o.excused(v) {
			continue
		}
		if o.robots && p.stops && v.grant != nil && o.start.After(v.grant.at) {
			continue // it waits for no place, and a process that was stopped on one sends while that lasts
		}
		if o.end.IsZero() {
			live++
		} else if p.places == 1 {
			early = max(early, want-v.start.Sub(o.end))
		}
		if p.places > 1 && !p.stops && !p.far && !p.faults {
			early = max(early, want-v.start.Sub(o.start))
		}
	}
	if live < p.places && early <= 0 {
		return
	}
	if p.early[host]++; p.early[host] > len(p.forgot)*p.places {
		p.t.Errorf("%s: a page beside %d others, %v too early; %s", host, live, early, p)
	}
}

// excused reports whether o is nothing to v: the store could not know of it.
func (o *visit) excused(v *visit) bool {
	if o.proc.alone {
		return o.proc != v.proc
	}
	over := v.start
	if !o.end.IsZero() {
		over = o.end
	}
	if o.grant == nil || o.grant.lapsed || !over.Before(o.grant.last.Add(lease)) {
		return true // its process was stopped, or could not renew it
	}
	for _, at := range o.proc.forgot {
		if o.grant.at.Before(at) && !o.start.Before(at) || o.start.Before(at) && (o.end.IsZero() || o.end.After(at)) {
			return true
		}
	}
	return false
}

func (p *process) leave(v *visit) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if v.end.IsZero() {
		v.end = time.Now()
		p.note("leaves, robots.txt %v", v.robots)
	}
}

// visit is a request at its site. It returns the status, Retry-After and the body.
func (p *process) visit(ctx context.Context, host, path string) (status int, after, body string) {
	v := p.arrive(host, path == "/robots.txt")
	defer p.leave(v)
	took := p.upTo(time.Second)
	if p.chance(p.stops, 10) {
		took = p.upTo(12 * time.Second)
	}
	select {
	case <-time.After(took):
	case <-ctx.Done():
		return 500, "", ""
	}
	if path == "/robots.txt" && p.crawl > 0 {
		return 200, "", fmt.Sprintf("User-agent: *\nCrawl-delay: %.9f\n", p.crawl.Seconds())
	} else if path == "/robots.txt" {
		return 404, "", ""
	}
	if p.chance(true, 20) {
		p.mu.Lock()
		p.pauses += 5 * time.Second
		p.resume[host] = time.Now().Add(5 * time.Second)
		p.mu.Unlock()
		return 503, "5", "busy"
	}
	return 200, "", "page"
}

// base returns one of the ways to send requests.
func (p *process) base() http.RoundTripper {
	way := p.pick(3)
	if way == 0 {
		return silentBase{p}
	}
	return &http.Transport{DisableKeepAlives: way == 1, DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
		p.here()
		near, far := net.Pipe()
		host, _, _ := net.SplitHostPort(addr)
		go p.serve(far, host, way == 1)
		return near, nil
	}}
}

// silentBase tells httptrace nothing.
type silentBase struct{ *process }

func (b silentBase) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	b.note("silent base")
	status, after, body := b.visit(req.Context(), req.URL.Host, req.URL.Path)
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	return answer(status, after, body), nil
}

// serve is one connection with a site.
func (p *process) serve(c net.Conn, host string, once bool) {
	defer c.Close()
	in := bufio.NewReader(c)
	for {
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		ctx, cancel := context.WithCancel(context.Background())
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			if _, err := in.Peek(1); err != nil {
				cancel()
			}
		}()
		status, after, body := p.visit(ctx, host, req.URL.Path)
		var more string
		if after != "" {
			more = "Retry-After: " + after + "\r\n"
		}
		_, err = fmt.Fprintf(c, "HTTP/1.1 %d .\r\nContent-Length: %d\r\n%s\r\n%s", status, len(body), more, body)
		if err != nil || once || req.Close || p.pick(4) == 0 {
			cancel()
			return
		}
		<-gone
		cancel()
	}
}
