package pace

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// delayOf is the delay that is kept at o now.
func (k *Keeper) delayOf(o fetch.Origin) time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	if l := k.known(o); l != nil {
		return l.delay(time.Now())
	}
	return k.floor()
}

// What is kept of what robots.txt asks for.
func TestTheDelayThatIsKept(t *testing.T) {
	delays := func(n ...string) (files []string) {
		for _, d := range n {
			files = append(files, "user-agent: *\n"+d)
		}
		return files
	}
	for _, tt := range []struct {
		name    string
		k       *Keeper
		files   []string // one after the other, each for the next of readers
		readers []string // the last goes on
		kept    time.Duration
	}{
		{"none", &Keeper{Delay: s, MaxDelay: 30 * s}, delays(""), nil, s},
		{"a longer one", &Keeper{Delay: s, MaxDelay: 30 * s}, delays("crawl-delay: 5"), nil, 5 * s},
		{"a shorter one", &Keeper{Delay: s, MaxDelay: 30 * s}, delays("crawl-delay: 0.25"), nil, s / 4},
		{"zero", &Keeper{Delay: s, MaxDelay: 30 * s}, delays("crawl-delay: 0"), nil, 0},
		{"not below MinDelay", &Keeper{Delay: s, MinDelay: 2 * s, MaxDelay: 30 * s}, delays("crawl-delay: 0.25"), nil, 2 * s},
		{"MinDelay without any", &Keeper{Delay: s, MinDelay: 2 * s, MaxDelay: 30 * s}, delays(""), nil, 2 * s},
		{"MinDelay above MaxDelay", &Keeper{Delay: s, MinDelay: 60 * s, MaxDelay: 30 * s}, delays("crawl-delay: 40"), nil, 60 * s},
		{"above MaxDelay", &Keeper{Delay: s, MaxDelay: 30 * s}, delays("crawl-delay: 3600"), nil, 30 * s},
		{"Request-rate", &Keeper{Delay: s, MaxDelay: 30 * s}, delays("request-rate: 1/10"), nil, 10 * s},
		{"the larger of both", &Keeper{Delay: s, MaxDelay: 30 * s}, delays("crawl-delay: 5\nrequest-rate: 1/4"), nil, 5 * s},
		{"a new file", &Keeper{Delay: s, MaxDelay: 30 * s}, delays("crawl-delay: 5", "crawl-delay: 3"), nil, 3 * s},
		{"a new file without", &Keeper{Delay: s, MaxDelay: 30 * s}, delays("crawl-delay: 5", ""), nil, s},
		{"the largest of two readers", &Keeper{Delay: s, MaxDelay: 30 * s}, delays("crawl-delay: 5", "crawl-delay: 3"), []string{"a", "b"}, 5 * s},
		{"Delay, if one is asked for less and one for nothing", &Keeper{Delay: s, MaxDelay: 30 * s}, delays("crawl-delay: 0.5", ""), []string{"a", "b"}, s},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.readers = append(tt.readers, "bot")
			for i, f := range tt.files {
				tt.k.learn(tt.readers[min(i, len(tt.readers)-1)], f)
			}
			if kept := tt.k.delayOf(site); kept != tt.kept {
				t.Errorf("kept %v, want %v", kept, tt.kept)
			}
		})
	}
}

func TestAnOutageTakesNoDelayAway(t *testing.T) {
	k := keeper()
	k.learn("bot", "user-agent: *\ncrawl-delay: 5")
	k.Learn(site, "bot", nil, policy.Group{})
	if kept := k.delayOf(site); kept != 5*s {
		t.Errorf("%v", kept)
	}
}

// A reader that is not heard of for an hour slows the others no more; one that asks only in an outage is heard of.
func TestAReaderIsForgottenAfterAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keeper()
		k.learn("slow", "user-agent: *\ncrawl-delay: 9")
		for i, want := range []time.Duration{9 * s, 9 * s, 9 * s, 2 * s} {
			k.learn("bot", "user-agent: *\ncrawl-delay: 2")
			if kept := k.delayOf(site); kept != want {
				t.Errorf("after %d times 40 minutes: %v, want %v", i, kept, want)
			}
			if i < 2 {
				k.Learn(site, "slow", nil, policy.Group{})
			}
			time.Sleep(40 * time.Minute)
		}
	})
}

func TestTheReadersOfOneOriginAreBounded(t *testing.T) {
	k := keeper()
	k.learn("slow", "user-agent: *\ncrawl-delay: 9")
	for i := range 100 {
		k.learn(fmt.Sprint("bot", i), "user-agent: *\ncrawl-delay: 2")
	}
	if kept := k.delayOf(site); kept != 9*s || len(k.known(site).lessons) != mostReaders {
		t.Errorf("%v, of %d readers", kept, len(k.known(site).lessons))
	}
}

// The same rules are learned from once, however often they are asked for, and are not kept in memory for that.
func TestRulesAreLearnedFromOnceAndNotHeld(t *testing.T) {
	k := keeper()
	p := policy.Parse([]byte("user-agent: *\ncrawl-delay: 5"))
	g := p.Group("bot")
	k.Learn(site, "bot", p, g)
	if n := testing.AllocsPerRun(100, func() { k.Learn(site, "bot", p, g) }); n != 0 {
		t.Errorf("%v allocations to learn nothing", n)
	}
	gone := make(chan bool)
	runtime.AddCleanup(p, func(int) { close(gone) }, 0)
	g, p = policy.Group{}, nil
	for range 10 {
		runtime.GC()
		select {
		case <-gone:
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
	t.Error("the rules are held")
}

// Who waits learns of another delay at once, a shorter one too.
func TestWhoWaitsLearnsOfAnotherDelay(t *testing.T) {
	inWorld(t, keeper(), func(w *world) {
		w.k.learn("bot", "user-agent: *\ncrawl-delay: 20")
		w.send(request{name: "a"})
		w.send(request{name: "b", after: 1})
		w.send(request{name: "c", after: 2})
		time.Sleep(5 * s)
		w.k.learn("bot", "user-agent: *\ncrawl-delay: 10")
		time.Sleep(7 * s)
		w.k.learn("bot", "user-agent: *\ncrawl-delay: 15")
	}, "0 a", "11 b", "27 c")
}

// A Request-rate with hours holds in them: the bubble begins at midnight UTC.
func TestTheHoursOfARequestRate(t *testing.T) {
	inWorld(t, keeper(), func(w *world) {
		w.k.learn("bot", "user-agent: *\nrequest-rate: 1/30 0000-0001\nrequest-rate: 1/5 0001-0002")
		for i := range 6 {
			w.send(request{name: fmt.Sprint(i), after: time.Duration(i), header: 1})
		}
	}, "0 0", "30 1", "60 2", "65 3", "70 4", "75 5")
}
