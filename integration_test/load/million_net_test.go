package load_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// simSite is an origin of the simulated internet. All of it follows from its number, so that each
// process can answer for each site, without a socket.
type simSite struct {
	kind     simKind
	lifetime time.Duration // stated, in whole seconds; 0: none
	size     int           // of robots.txt
	visits   int           // after the first
}

type simKind int

const (
	simRules simKind = iota
	simMissing
	simMoved // to a file at another host
	simLoop  // redirects without end
	simForbidden
	simLong    // more than 500 KiB
	simBusy    // 429
	simBroken  // 503
	simRefused // no connection
	simCut     // half an answer
)

// simKinds are the kinds of a thousand sites.
var simKinds = []struct {
	kind simKind
	of   int
}{
	{simRules, 600}, {simMissing, 250}, {simMoved, 40}, {simForbidden, 10}, {simLoop, 9}, {simLong, 1},
	{simBusy, 15}, {simBroken, 25}, {simRefused, 40}, {simCut, 10},
}

// healthy reports whether a site states, by header or default, how long its answer holds.
func (k simKind) healthy() bool { return k < simBusy }

// simDays are the lifetimes of a hundred sites, in days; 0 is none stated.
var simDays = []struct {
	days float64
	of   int
}{{0, 50}, {7, 10}, {1, 10}, {1. / 2, 12}, {1. / 6, 10}, {1. / 24, 8}}

// simHash mixes a number (splitmix64).
func simHash(n uint64) uint64 {
	n += 0x9e3779b97f4a7c15
	n = (n ^ n>>30) * 0xbf58476d1ce4e5b9
	n = (n ^ n>>27) * 0x94d049bb133111eb
	return n ^ n>>31
}

// simUnit is a hash as a number in (0, 1].
func simUnit(h uint64) float64 { return (float64(h>>11) + 1) / (1 << 53) }

// simSiteOf returns the site of a number. A day lasts day.
func simSiteOf(i int, day time.Duration) simSite {
	h := simHash(uint64(i))
	var s simSite
	n := int(h % 1000)
	for _, k := range simKinds {
		if n -= k.of; n < 0 {
			s.kind = k.kind
			break
		}
	}
	n = int(h / 1000 % 100)
	for _, l := range simDays {
		if n -= l.of; n < 0 {
			if l.days > 0 {
				s.lifetime = max(time.Second, time.Duration(l.days*float64(day)).Round(time.Second))
			}
			break
		}
	}
	// Sizes are log-normal with a median of 600 bytes; visits have a Pareto tail.
	a, b, c := simUnit(simHash(h)), simUnit(simHash(h+1)), simUnit(simHash(h+2))
	s.size = int(min(600*math.Exp(1.3*math.Sqrt(-2*math.Log(a))*math.Cos(2*math.Pi*b)), 500<<10))
	s.visits = int(min(math.Pow(c, -1/1.2), 200)) - 1
	return s
}

// allows reports whether a page may be fetched.
func (s simSite) allows(path string) bool {
	switch s.kind {
	case simBroken, simRefused, simCut:
		return false
	case simRules, simMoved, simLong:
		return !strings.HasPrefix(path, "/private")
	}
	return true
}

// simNet is all sites.
type simNet struct {
	day     time.Duration
	rules   []byte // of a long file
	fetched func(i int)

	forbidden, bytes atomic.Int64
}

func newSimNet(day time.Duration) *simNet {
	w := &simNet{day: day, fetched: func(int) {}}
	var b bytes.Buffer
	b.WriteString("User-agent: *\nDisallow: /private\n")
	for n := 0; b.Len() < 600<<10; n++ {
		fmt.Fprintf(&b, "Disallow: /a/directory/%d/\n", n)
	}
	w.rules = b.Bytes()
	return w
}

func (w *simNet) RoundTrip(req *http.Request) (*http.Response, error) {
	name, _, _ := strings.Cut(strings.TrimPrefix(req.URL.Host, "www."), ".")
	i, err := strconv.Atoi(strings.TrimPrefix(name, "o"))
	if err != nil {
		return nil, err
	}
	s := simSiteOf(i, w.day)
	moved := strings.HasPrefix(req.URL.Host, "www.")
	switch {
	case req.URL.Path != "/robots.txt" && !moved:
		if !s.allows(req.URL.Path) {
			w.forbidden.Add(1)
		}
		return simAnswer(req, 200, nil), nil
	case !moved && req.URL.RawQuery == "":
		w.fetched(i)
	}
	resp, err := w.robots(req, s, moved)
	if err == nil {
		w.bytes.Add(max(resp.ContentLength, 0) + 300) // and a header
		if s.lifetime > 0 {
			resp.Header.Set("Cache-Control", fmt.Sprint("max-age=", int(s.lifetime.Seconds())))
		}
	}
	return resp, err
}

func (w *simNet) robots(req *http.Request, s simSite, moved bool) (*http.Response, error) {
	switch s.kind {
	case simMissing:
		return simAnswer(req, 404, nil), nil
	case simForbidden:
		return simAnswer(req, 403, nil), nil
	case simBusy:
		return simAnswer(req, 429, nil), nil
	case simBroken:
		return simAnswer(req, 503, nil), nil
	case simRefused:
		return nil, errors.New("connection refused")
	case simLong:
		return simAnswer(req, 200, w.rules), nil
	case simMoved:
		if !moved {
			resp := simAnswer(req, 301, nil)
			resp.Header.Set("Location", "http://www."+req.URL.Host+"/robots.txt")
			return resp, nil
		}
	case simLoop:
		resp := simAnswer(req, 302, nil)
		resp.Header.Set("Location", "/robots.txt?"+req.URL.RawQuery+"a")
		return resp, nil
	}
	body := w.rules[:max(s.size, 40)]
	body = body[:bytes.LastIndexByte(body, '\n')+1]
	resp := simAnswer(req, 200, body)
	if s.kind == simCut {
		resp.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body[:len(body)/2]), simCutOff{}))
	}
	return resp, nil
}

type simCutOff struct{}

func (simCutOff) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func simAnswer(req *http.Request, status int, body []byte) *http.Response {
	return &http.Response{
		StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Request: req,
		ContentLength: int64(len(body)), Body: io.NopCloser(bytes.NewReader(body)),
	}
}
