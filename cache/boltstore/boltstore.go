// Package boltstore is a cache.Store in one file, on go.etcd.io/bbolt: robots.txt
// results (RFC 9309 §2.4) survive a restart. After a crash or kill -9, each value is its old
// or its new version, never a mix.
//
// One process can have the file open. For several, see package redisstore.
package boltstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/robotsgate/robotsgate/cache"
)

// Store is an open file. It is safe for concurrent use.
type Store struct {
	db *bolt.DB

	committing sync.Mutex // guards the next two, and is held for the time of a commit
	sweep      []byte     // where to look for forgotten values next
	damage     error      // what a write met; nil: nothing

	mu      sync.Mutex // guards waiting
	waiting []*value
}

const (
	// openTimeout is how long to wait for a process that has the file open, which may
	// just be ending.
	openTimeout = time.Second

	// batchDelay is how long a Put waits for others to share its commit. The cache
	// puts from several goroutines when there is much to put.
	batchDelay = 2 * time.Millisecond

	// swept is how many values each Put looks at for the time they end. All of them
	// get their turn: the file grows with the origins of a month, not of a life.
	swept = 4
)

var bucket = []byte("robots.txt 1")

// ErrDamaged is the error, wrapped, for a file whose contents are not what bbolt writes,
// however short it is.
// Remove the file: it held nothing that cannot be fetched again.
var ErrDamaged = errors.New("the file is damaged, remove it")

// Open opens the file, and makes it with mode 0600 if it is not there. The error names the file,
// and says if this process or another has it open, or if the file is damaged ([ErrDamaged]). To
// find that out, Open reads the tree, but no values: 11 ms for 20,000.
func Open(path string) (*Store, error) {
	var db *bolt.DB
	err := guard(func() (err error) {
		if err = check(path); err != nil {
			return err
		}
		if db, err = bolt.Open(path, 0o600, &bolt.Options{Timeout: openTimeout, FreelistType: bolt.FreelistMapType}); err != nil {
			return err
		}
		// If this fails, the file stays open: a transaction that broke off may hold the locks that Close waits for.
		return db.Update(func(tx *bolt.Tx) error {
			_, err := tx.CreateBucketIfNotExists(bucket)
			return err
		})
	})
	if errors.Is(err, bolterrors.ErrTimeout) {
		if isOpenHere(path) {
			return nil, fmt.Errorf("boltstore: %s is open in this process: close the cache.Cache that has it, or share that", path)
		}
		return nil, fmt.Errorf("boltstore: %s is open in another process; "+
			"give each its own file, or share one Redis", path)
	}
	if err != nil && db == nil && !ofTheSystem(err) && !errors.Is(err, ErrDamaged) { // of a write, bbolt tells no cause
		err = fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if err != nil {
		return nil, fmt.Errorf("boltstore: open %s: %w", path, err)
	}
	return &Store{db: db}, nil
}

// ofTheSystem reports whether err is about the way to a file's contents, and not about them.
func ofTheSystem(err error) bool {
	_, path := errors.AsType[*fs.PathError](err)
	_, number := errors.AsType[syscall.Errno](err)
	return path || number
}

// isOpenHere reports whether this process has the file open, where the system has a /dev/fd to
// tell.
func isOpenHere(path string) bool {
	file, err := os.Stat(path)
	if err != nil {
		return false
	}
	open, _ := os.ReadDir("/dev/fd")
	return slices.ContainsFunc(open, func(fd fs.DirEntry) bool {
		info, err := os.Stat("/dev/fd/" + fd.Name())
		return err == nil && os.SameFile(info, file)
	})
}

// Close closes the file. The cache.Cache that has the Store does this when it is closed. If a
// write found the file damaged, Close returns an error and leaves the file open until the
// process ends.
func (s *Store) Close() error {
	s.committing.Lock()
	defer s.committing.Unlock()
	if s.damage != nil {
		return fmt.Errorf("boltstore: close: %w", s.damage)
	}
	return s.db.Close()
}

// Get implements cache.Store.
func (s *Store) Get(ctx context.Context, key string) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var data []byte
	err := guard(func() error {
		return s.db.View(func(tx *bolt.Tx) error {
			stored := tx.Bucket(bucket).Get([]byte(key))
			if stored == nil || ended(stored, time.Now()) {
				return cache.ErrMiss
			}
			data = bytes.Clone(stored[8:]) // the file's memory ends with the transaction
			return nil
		})
	})
	if err != nil && err != cache.ErrMiss {
		err = fmt.Errorf("boltstore: get: %w", err)
	}
	return data, err
}

// Put implements cache.Store. It returns when the value is on the disk.
func (s *Store) Put(ctx context.Context, key string, data []byte, ttl time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	stored := binary.BigEndian.AppendUint64(make([]byte, 0, 8+len(data)), uint64(time.Now().Add(ttl).Unix()))
	stored = append(stored, data...)
	v := &value{key: []byte(key), stored: stored, written: make(chan error, 1)}
	s.mu.Lock()
	s.waiting = append(s.waiting, v)
	first := len(s.waiting) == 1
	s.mu.Unlock()
	if first {
		time.Sleep(batchDelay)
		s.commit()
	}
	if err := <-v.written; err != nil {
		return fmt.Errorf("boltstore: put: %w", err)
	}
	return nil
}

// value is one that waits for its commit.
type value struct {
	key, stored []byte
	written     chan error // gets the outcome
}

// commit writes all that waits in one transaction. (*bolt.DB).Batch does the same, but
// commits on a goroutine of its own, where a damaged file would end the process.
func (s *Store) commit() {
	s.committing.Lock() // while others wait for it, more gather
	defer s.committing.Unlock()
	s.mu.Lock()
	group := s.waiting
	s.waiting = nil
	s.mu.Unlock()

	err := s.update(group)
	for _, v := range group {
		if err != nil && len(group) > 1 {
			v.written <- s.update([]*value{v}) // it may be one that spoils it for all
		} else {
			v.written <- err
		}
	}
}

// update makes one transaction; committing is held.
func (s *Store) update(group []*value) error {
	if s.damage != nil {
		return s.damage
	}
	err := guard(func() error {
		return s.db.Update(func(tx *bolt.Tx) error {
			b, now := tx.Bucket(bucket), time.Now()
			for _, v := range group {
				if err := s.forget(b, now); err != nil {
					return err
				}
				if err := b.Put(v.key, v.stored); err != nil {
					return err
				}
			}
			return nil
		})
	})
	if errors.Is(err, ErrDamaged) {
		s.damage = err // the transaction that broke off may hold the file's lock for ever
	}
	return err
}

// forget looks at the next few values and deletes those whose time has ended.
func (s *Store) forget(b *bolt.Bucket, now time.Time) error {
	c := b.Cursor()
	k, v := c.Seek(s.sweep)
	for range swept {
		if k == nil {
			s.sweep = nil // from the start again
			return nil
		}
		if ended(v, now) {
			if err := c.Delete(); err != nil {
				return err
			}
		}
		k, v = c.Next()
	}
	s.sweep = bytes.Clone(k)
	return nil
}

// ended reports whether a stored value, the second it ends in and then the data, is to
// be forgotten.
func ended(stored []byte, now time.Time) bool {
	return len(stored) < 8 || int64(binary.BigEndian.Uint64(stored)) <= now.Unix()
}

// guard turns what a damaged file does into an error: bbolt panics or reads beyond the end of its
// mapping, and a checker panics.
func guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch p := recover().(type) {
		case nil:
		case unread:
			err = p.error
		default:
			err = fmt.Errorf("%w: %v", ErrDamaged, p)
		}
	}()
	return f()
}
