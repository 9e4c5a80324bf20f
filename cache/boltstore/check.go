package boltstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	bolt "go.etcd.io/bbolt"
)

// bbolt follows what it finds in a file. A branch page that is its own child makes it
// recurse until the stack ends, a page of more pages than the file makes it allocate until
// the memory ends, and neither can be recovered from. So the file is read once before bbolt
// gets to see it: the list of free pages, the branch pages, and the header and the keys of
// the leaf pages. No value is read, however large. What passes is a tree, in which each
// page is used once and each key is found where a search looks for it.
//
// The format is that of bbolt's internal/common, in the byte order of the machine.
const (
	pageHeader  = 16 // id uint64, flags, count uint16, overflow uint32
	elementSize = 16 // branch: pos, ksize uint32, child uint64; leaf: flags, pos, ksize, vsize uint32
	bucketSize  = 16 // root, sequence uint64

	branchPage   = 0x01
	leafPage     = 0x02
	freelistPage = 0x10

	metaFreelist = pageHeader + 32 // where a meta page has the id of the list of free pages
	noFreelist   = 1<<64 - 1
	longList     = 0xffff // the count of a list that has its length as its first element

	// deepest is more than a tree of two children a page needs for all that fits a disk.
	deepest = 40
)

var order = binary.NativeEndian

// check reads the tree of the file at path, while no other process writes it. It returns
// ErrDamaged, or what kept it from reading.
func check(path string) error {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return nil // nothing to check: opening it makes it, or says why not
	}
	var file *os.File
	db, err := bolt.Open(path, 0o600, &bolt.Options{
		Timeout:  openTimeout,
		ReadOnly: true, // leaves the list of free pages alone
		OpenFile: func(name string, flag int, mode os.FileMode) (_ *os.File, err error) {
			file, err = os.OpenFile(name, flag, mode)
			return file, err
		},
	})
	if err != nil {
		return err
	}
	err = guard(func() error {
		return db.View(func(tx *bolt.Tx) error {
			info, err := file.Stat()
			if err != nil {
				return err
			}
			if info.Size() < tx.Size() {
				damaged("of %d bytes there are %d", tx.Size(), info.Size())
			}
			c := checker{file: file, pageSize: uint64(db.Info().PageSize)}
			c.pages = uint64(tx.Size()) / c.pageSize
			c.used = make([]uint64, c.pages/64+1)
			c.free(uint64(tx.ID()) % 2)
			c.tree(uint64(tx.Cursor().Bucket().Root()), 0, nil, nil, buckets)
			return nil
		})
	})
	return errors.Join(err, db.Close())
}

// damaged ends a check. It panics, as bbolt does where it meets damage, and for the same guard: what
// reads a page goes on only with what is right.
func damaged(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// unread is a panic, too, with what kept a checker from reading.
type unread struct{ error }

// checker reads one state of a file.
type checker struct {
	file     io.ReaderAt
	pageSize uint64
	pages    uint64   // how many there are
	used     []uint64 // a bit for each page

	// A page's keys are needed while those below it are read, so each level has its own.
	buffers [deepest + 1][]byte
}

// contents is what the leaf pages of a tree may hold.
type contents int

const (
	buckets  contents = iota // the root: buckets only
	values                   // our own bucket: values only
	anything                 // a bucket of another program that keeps its own in this file
)

// use marks n pages as used.
func (c *checker) use(id, n uint64) {
	if id < 2 || id >= c.pages || n > c.pages-id {
		damaged("page %d and %d after it are beyond the file's %d", id, n-1, c.pages)
	}
	for ; n > 0; id, n = id+1, n-1 {
		if c.used[id/64]&(1<<(id%64)) != 0 {
			damaged("page %d is used twice", id)
		}
		c.used[id/64] |= 1 << (id % 64)
	}
}

// free reads the list of free pages that the given meta page names.
func (c *checker) free(meta uint64) {
	var ref [8]byte
	c.read(ref[:], meta*c.pageSize+metaFreelist)
	id := order.Uint64(ref[:])
	if id == noFreelist {
		return
	}
	p := c.page(id, 0)
	if p.flags != freelistPage {
		damaged("page %d has flags %#x, and not those of a list of free pages", id, p.flags)
	}
	first, n := uint64(0), uint64(p.count)
	if n == longList {
		first, n = 1, order.Uint64(p.bytes(pageHeader, 8))
	}
	if n > c.pages {
		damaged("page %d lists %d free pages of %d", id, n, c.pages)
	}
	for list := p.bytes(pageHeader+8*first, 8*n); len(list) > 0; list = list[8:] {
		c.use(order.Uint64(list), 1)
	}
}

// tree checks a page and what is below it.
func (c *checker) tree(id uint64, depth int, low, high []byte, hold contents) {
	if depth > deepest {
		damaged("page %d is %d pages deep", id, depth)
	}
	c.page(id, depth).elements(depth, low, high, hold)
}

// elements checks the elements of a page and what is below them. Its first key has to be low, the
// one that its parent has for it (bbolt finds the place of a changed page by that), and all of them
// less than high; a nil one is no bound. bbolt writes each key and its value right behind the one
// before, and the first behind the elements.
func (p *page) elements(depth int, low, high []byte, hold contents) {
	isBranch := p.flags == branchPage
	switch {
	case !isBranch && p.flags != leafPage, isBranch && p.count == 0:
		damaged("page %d has flags %#x and %d elements", p.id, p.flags, p.count)
	case p.count == 0 && low != nil:
		damaged("page %d is empty", p.id)
	}
	elements := p.bytes(pageHeader, elementSize*uint64(p.count))
	var before []byte
	var child uint64
	end := uint64(pageHeader + len(elements))
	for at := uint64(pageHeader); len(elements) > 0; at, elements = at+elementSize, elements[elementSize:] {
		flags, pos, size, value := order.Uint32(elements), order.Uint32(elements[4:]), order.Uint32(elements[8:]), order.Uint32(elements[12:])
		if isBranch {
			flags, pos, size, value = 0, flags, pos, 0
		}
		if at+uint64(pos) != end {
			damaged("page %d has a key at %d and not at %d", p.id, at+uint64(pos), end)
		}
		key := p.key(end, size, value)
		end += uint64(size) + uint64(value)
		switch {
		case before == nil && low != nil && !bytes.Equal(key, low):
			damaged("page %d begins with another key than its parent has", p.id)
		case before != nil && bytes.Compare(key, before) <= 0, high != nil && bytes.Compare(key, high) >= 0:
			damaged("page %d has a key out of order", p.id)
		case !isBranch:
			p.entry(flags, key, end-uint64(value), uint64(value), depth, hold)
		case before != nil:
			p.tree(child, depth+1, before, key, hold)
		}
		before, child = key, order.Uint64(elements[8:])
	}
	if isBranch {
		p.tree(child, depth+1, before, high, hold)
	}
}

// key returns the key at an offset of a page. What is behind it has to be in the page, too.
func (p *page) key(at uint64, size, value uint32) []byte {
	if size == 0 || size > bolt.MaxKeySize {
		damaged("page %d has a key of %d bytes", p.id, size)
	}
	key := p.bytes(at, uint64(size))
	if end := at + uint64(size) + uint64(value); end > p.size {
		damaged("page %d of %d bytes has a value up to %d", p.id, p.size, end)
	}
	return key
}

// entry checks an element of a leaf page. A bucket begins at its offset: the id of its root, or 0 and
// all of it as a page within the page.
func (p *page) entry(flags uint32, key []byte, at, size uint64, depth int, hold contents) {
	isBucket := flags == 1
	switch {
	case flags > 1, isBucket && hold == values, !isBucket && hold == buckets:
		damaged("page %d has an element with flags %#x", p.id, flags)
	case !isBucket:
		return
	case hold == buckets && bytes.Equal(key, bucket):
		hold = values
	default:
		hold = anything
	}
	if root := order.Uint64(p.bytes(at, bucketSize)); root != 0 {
		p.tree(root, depth+1, nil, nil, hold)
		return
	}
	if size < bucketSize+pageHeader {
		damaged("page %d has a bucket of %d bytes", p.id, size)
	}
	inline := &page{checker: p.checker, id: p.id, at: p.at + at + bucketSize, size: size - bucketSize}
	inline.header(0)
	if inline.flags != leafPage || inline.overflow != 0 || depth >= deepest {
		damaged("page %d has a bucket with flags %#x", p.id, inline.flags)
	}
	inline.elements(depth+1, nil, nil, hold)
}

// page is one of the tree, or one within a leaf page.
type page struct {
	*checker
	id       uint64
	at, size uint64 // where in the file
	start    []byte // some of it, from its start

	flags, count uint16
	overflow     uint64
}

// page reads the header of a page and marks it as used.
func (c *checker) page(id uint64, depth int) *page {
	c.use(id, 1)
	if c.buffers[depth] == nil {
		c.buffers[depth] = make([]byte, c.pageSize)
	}
	p := &page{checker: c, id: id, at: id * c.pageSize, size: c.pageSize, start: c.buffers[depth]}
	c.read(p.start, p.at)
	p.header(id)
	p.size += p.overflow * c.pageSize
	if p.overflow > 0 {
		c.use(id+1, p.overflow)
	}
	return p
}

// header reads the header, in which the page has to be named.
func (p *page) header(name uint64) {
	h := p.bytes(0, pageHeader)
	if named := order.Uint64(h); named != name {
		damaged("page %d says that it is %d, and not %d", p.id, named, name)
	}
	p.flags, p.count, p.overflow = order.Uint16(h[8:]), order.Uint16(h[10:]), uint64(order.Uint32(h[12:]))
}

// bytes returns a part of the page.
func (p *page) bytes(at, n uint64) []byte {
	if at > p.size || n > p.size-at {
		damaged("page %d of %d bytes has %d at %d", p.id, p.size, n, at)
	}
	if at+n <= uint64(len(p.start)) {
		return p.start[at : at+n]
	}
	b := make([]byte, n)
	p.read(b, p.at+at)
	return b
}

func (c *checker) read(b []byte, at uint64) {
	switch _, err := c.file.ReadAt(b, int64(at)); err {
	case nil:
	case io.EOF:
		damaged("it ends within page %d", at/c.pageSize)
	default:
		panic(unread{err})
	}
}
