// Package dirstore is a cache.Store in a directory of files, one for each key: robots.txt results (RFC 9309 §2.4)
// survive a restart. Any number of processes on one machine may share the directory: each finds what the others have
// read. To have one fetch for all, see package redisstore.
//
// After a crash or kill -9 each value is its old or its new version, never a mix; after a power failure the last ones
// may be damaged. A damaged file harms only its own site, whose robots.txt is fetched anew. The modification time of a
// file is its expiry: copy the directory with cp -p.
package dirstore

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/robotsgate/robotsgate/cache"
)

// Store is a directory. It is safe for concurrent use, and holds nothing open between calls.
type Store struct{ dir string }

const (
	maxValue = 600 << 10 // that a Cache puts

	// suffix ends the names of all files of a Store: what else is in the directory stays.
	suffix = ".robots"

	// sweepOne is how many Puts there are to one that sweeps its folder, of which there are 256.
	sweepOne = 256

	// grace is how long after its end a file is removed. One that is being written has no end yet, and is
	// younger; one that a killed process has left is not.
	grace = time.Hour
)

// Open makes the directory with mode 0700 if it is not there; its parent must be. The error says so if
// dir is a file, or if nothing can be written there.
func Open(dir string) (*Store, error) {
	err := os.Mkdir(dir, 0o700)
	if info, _ := os.Stat(dir); info != nil && !info.IsDir() {
		return nil, fmt.Errorf("dirstore: %s is a file, such as earlier versions kept: remove it, or name a directory", dir)
	}
	if err == nil || errors.Is(err, fs.ErrExist) {
		var probe *os.File
		if probe, err = os.CreateTemp(dir, "*"+suffix); err == nil {
			err = cmp.Or(probe.Close(), os.Remove(probe.Name()))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("dirstore: %w", err)
	}
	return &Store{dir}, nil
}

// Get implements cache.Store. What is damaged, or under another key, is returned as it is, less what is too long, for
// the Cache to find out: it is no cache.ErrMiss, because there was something, and no failure of the directory.
func (s *Store) Get(ctx context.Context, key string) ([]byte, error) {
	path := s.path(key)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.ModTime().After(time.Now()) {
		return nil, cache.ErrMiss
	}
	var text []byte
	if most := len(key) + len("\n") + maxValue; err == nil && info.Size() <= int64(most) {
		text, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, fmt.Errorf("dirstore: get: %w", err)
	}
	data, _ := bytes.CutPrefix(text, []byte(key+"\n"))
	return data, nil
}

// Put implements cache.Store. It leaves the disk to write when it likes.
func (s *Store) Put(ctx context.Context, key string, data []byte, ttl time.Duration) error {
	path := s.path(key)
	if err := write(path, append([]byte(key+"\n"), data...), time.Now().Add(ttl)); err != nil {
		return fmt.Errorf("dirstore: put: %w", err)
	}
	if rand.N(sweepOne) == 0 {
		sweep(filepath.Dir(path))
	}
	return nil
}

// write writes a temporary file and renames it, so that no reader sees half a file.
func write(path string, text []byte, end time.Time) error {
	folder := filepath.Dir(path)
	_ = os.MkdirAll(folder, 0o700) // if that fails, so does what follows
	file, err := os.CreateTemp(folder, "*"+suffix)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err = cmp.Or(err, file.Close(), os.Chtimes(file.Name(), time.Time{}, end)); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		_ = os.Remove(file.Name()) // or a sweep does
	}
	return err
}

// sweep removes what has lapsed. What another process puts there between the two calls is lost, which costs a fetch.
func sweep(folder string) {
	files, _ := os.ReadDir(folder)
	lapsed := time.Now().Add(-grace)
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), suffix) {
			continue
		}
		if info, err := file.Info(); err == nil && info.ModTime().Before(lapsed) {
			_ = os.Remove(filepath.Join(folder, file.Name()))
		}
	}
}

// path is where the file of a key is: keys may hold what names of files may not.
func (s *Store) path(key string) string {
	sum := sha256.Sum256([]byte(key))
	name := hex.EncodeToString(sum[:])
	return filepath.Join(s.dir, name[:2], name[2:]+suffix)
}
