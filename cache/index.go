package cache

import (
	"hash/maphash"
	"sync/atomic"

	"github.com/robotsgate/robotsgate/fetch"
)

// index finds entries without a lock: a hash table with open addressing, whose slots are
// written one by one, and which is replaced as a whole when it gets crowded. A reader
// that still has the old one finds an entry that was just removed, or misses one that was
// just added, as if it had come a moment earlier.
//
// It is here because a sync.Map takes two to four times as long (see cachebench below
// integration_test): it hashes an interface, and its tree costs a load from memory for
// each level. The lookup is most of what the gate adds to a request.
type index struct {
	seed    maphash.Seed
	slots   atomic.Pointer[[]atomic.Pointer[entry]] // their number is a power of two, and one of two at least is nil
	removed *entry                                  // in the slots of those that were removed: a search goes on there

	// For writers, of whom there is one at a time.
	live, used int // slots with an entry; slots that are not nil
}

func (x *index) init() {
	x.seed = maphash.MakeSeed()
	x.removed = new(entry)
	x.resize(16)
}

// hash leaves out the scheme, and the address of an origin that is reached by another
// name: those with the same Host are few.
func (x *index) hash(o fetch.Origin) uint64 { return maphash.String(x.seed, o.Host()) }

// lookup returns the entry of an origin; nil if there is none.
func (x *index) lookup(o fetch.Origin) *entry {
	hash, slots := x.hash(o), *x.slots.Load()
	for i := hash; ; i++ {
		e := slots[i&uint64(len(slots)-1)].Load()
		if e == nil {
			return nil
		}
		if e.hash == hash && e.origin == o && e != x.removed {
			return e
		}
	}
}

// add puts in an entry whose origin has none.
func (x *index) add(e *entry) {
	if 2*(x.used+1) > len(*x.slots.Load()) {
		x.resize(4 * (x.live + 1))
	}
	x.place(*x.slots.Load(), e)
}

func (x *index) place(slots []atomic.Pointer[entry], e *entry) {
	i := e.hash
	for slots[i&uint64(len(slots)-1)].Load() != nil {
		i++
	}
	slots[i&uint64(len(slots)-1)].Store(e)
	x.live++
	x.used++
}

// remove takes out an entry that is in.
func (x *index) remove(e *entry) {
	slots := *x.slots.Load()
	for i := e.hash; ; i++ {
		if slot := &slots[i&uint64(len(slots)-1)]; slot.Load() == e {
			slot.Store(x.removed)
			x.live--
			return
		}
	}
}

// resize moves the entries to a new table of at least n slots, and leaves out those that
// were removed.
func (x *index) resize(n int) {
	size := 16
	for size < n {
		size *= 2
	}
	slots := make([]atomic.Pointer[entry], size)
	x.live, x.used = 0, 0
	if old := x.slots.Load(); old != nil {
		for i := range *old {
			if e := (*old)[i].Load(); e != nil && e != x.removed {
				x.place(slots, e)
			}
		}
	}
	x.slots.Store(&slots)
}
