package cache

import (
	"hash/maphash"
	"iter"
	"sync/atomic"

	"github.com/robotsgate/robotsgate/fetch"
)

// index finds entries without a lock: a hash table with open addressing, whose slots are
// written one by one, and which is replaced as a whole when it gets crowded. A reader
// that still has the old one finds an entry that was just removed or replaced, or misses
// one that was just added, as if it had come a moment earlier.
//
// It is here because a sync.Map takes two to four times as long (see cachebench below
// integration_test): it hashes an interface, and its tree costs a load from memory for
// each level. The lookup is most of what the gate adds to a request.
type index struct {
	seed    maphash.Seed
	slots   atomic.Pointer[[]slot] // their number is a power of two, and one of four at least is empty
	removed *entry                 // in the slots of those that were removed: a search goes on there

	// For writers, one at a time.
	live, used int // slots with an entry; slots that are not empty
}

// slot has the hash beside its entry: no other entry than the right one has to be brought from
// memory. The hash of a slot never changes, because slots of removed entries are not reused.
type slot struct {
	entry atomic.Pointer[entry] // nil: empty, from here on nothing was ever put
	hash  uint64                // of the origin; written once, before entry
}

func (x *index) init() {
	x.seed = maphash.MakeSeed()
	x.removed = new(entry)
	x.resize(16)
}

// hash is of the origin alone, so that all its places are found in a row. It leaves out the
// scheme, of which there are few, too.
func (x *index) hash(o fetch.Origin) uint64 {
	host, reached := o.HostField(), o.URLHost()
	hash := maphash.String(x.seed, host)
	if reached != host {
		hash ^= maphash.String(x.seed, reached)
	}
	return hash
}

// find returns the entry of a place; nil if there is none.
func (x *index) find(o place) *entry {
	for e := range x.of(o.Origin) {
		if e.place() == o {
			return e
		}
	}
	return nil
}

// lookup is find for src's place for all, and faster.
func (x *index) lookup(o fetch.Origin, src *Source) *entry {
	hash, slots := x.hash(o), *x.slots.Load()
	for i := hash; ; i++ {
		s := &slots[i&uint64(len(slots)-1)]
		e := s.entry.Load()
		if e == nil {
			return nil
		}
		if s.hash == hash && e.origin == o && e.kind == src.kind() && !e.is(single) && e != x.removed {
			return e
		}
	}
}

// of returns all entries of an origin.
func (x *index) of(o fetch.Origin) iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		hash, slots := x.hash(o), *x.slots.Load()
		for i := hash; ; i++ {
			s := &slots[i&uint64(len(slots)-1)]
			e := s.entry.Load()
			if e == nil || s.hash == hash && e.origin == o && e != x.removed && !yield(e) {
				return
			}
		}
	}
}

// add puts in an entry whose origin has none.
func (x *index) add(e *entry) {
	if 4*(x.used+1) > 3*len(*x.slots.Load()) {
		x.resize(2 * (x.live + 1))
	}
	x.place(*x.slots.Load(), e, x.hash(e.origin))
}

func (x *index) place(slots []slot, e *entry, hash uint64) {
	i := hash
	for slots[i&uint64(len(slots)-1)].entry.Load() != nil {
		i++
	}
	s := &slots[i&uint64(len(slots)-1)]
	s.hash = hash
	s.entry.Store(e)
	x.live++
	x.used++
}

// slot returns the slot of an entry that is in, else nil.
func (x *index) slot(e *entry) *slot {
	slots := *x.slots.Load()
	for i := x.hash(e.origin); ; i++ {
		switch s := &slots[i&uint64(len(slots)-1)]; s.entry.Load() {
		case e:
			return s
		case nil:
			return nil
		}
	}
}

// remove takes out an entry, if it is in.
func (x *index) remove(e *entry) {
	if s := x.slot(e); s != nil {
		s.entry.Store(x.removed)
		x.live--
	}
}

// resize moves the entries to a new table of at least n slots, and leaves out those that
// were removed.
func (x *index) resize(n int) {
	size := 16
	for size < n {
		size *= 2
	}
	slots := make([]slot, size)
	x.live, x.used = 0, 0
	if old := x.slots.Load(); old != nil {
		for i := range *old {
			if e := (*old)[i].entry.Load(); e != nil && e != x.removed {
				x.place(slots, e, (*old)[i].hash)
			}
		}
	}
	x.slots.Store(&slots)
}
