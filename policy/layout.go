package policy

import (
	"sync"
	"sync/atomic"
	"time"
)

// A Policy is what one robots.txt file permits. It is safe for concurrent use and must not
// be copied. The zero Policy has no groups and allows everything. A nil *Policy stands for
// a file that was never read; it decides as Unreachable does.
type Policy struct {
	// 64 bytes, one cache line: a larger Policy would cost a second load per question.

	memo      atomic.Pointer[found]
	text      string
	tab       []uint32
	names     uint32 // how many names
	star      uint32 // the name that is "*", counted from 1, or 0
	records   uint32 // where the records begin in text
	dialect   Dialect
	reason    Reason // of a policy without a file
	lineWidth uint8  // and listsNames
	fields    uint8  // which records the file may have; see fieldBit
}

// listsNames is set in lineWidth if the records have names, see addNames.
const listsNames = 1 << 7

// Policies that many origins share. They are never written to.
var (
	empty       = Policy{}
	unavailable = Policy{reason: ReasonUnavailable}
	unreachable = Policy{reason: ReasonUnreachable}
)

// Unavailable returns the policy of a site without robots.txt. It allows everything (RFC
// 9309 §2.3.1.3).
func Unavailable() *Policy { return &unavailable }

// Unreachable returns the policy of a site whose robots.txt could not be fetched because of
// an error of the server or the network. It disallows everything but /robots.txt itself
// (RFC 9309 §2.3.1.4).
func Unreachable() *Policy { return &unreachable }

// found memoizes the group of a product token. Files can list thousands of names, some
// dialects look at each of them, and a crawler asks on every request. So a Policy
// remembers the first token that it is asked about.
type found struct {
	token string
	name  uint32
}

// robots is the target that is always allowed.
const robots = "/robots.txt"

// buffers keep normal forms, without an allocation for a target of up to 8 KiB.
var buffers = sync.Pool{New: func() any { return new([3 * 8 << 10]byte) }}

// none is the place of no rule.
const none = ^uint32(0)

// A Policy is two pieces of memory: itself, and one without pointers that holds all it keeps
// of the file. A garbage collector is not slowed by a million of them, and a question about
// one that has left the processor's cache waits for few loads. The second piece has two parts:
//
//	tab   for each name, in folded order, a nameWord and a blockWord; then the blocks
//	text  the names; for each block its patterns, end to end, and then the line
//	      numbers of its rules, lineWidth bytes each; last the records
//
// A block holds the rules of one group, or of several that are combined:
//
//	before     the lines at which its groups begin, if there is more than one;
//	           the Crawl-delay, if there is one, as two words
//	blockSize  a sizeWord
//	blockFrom  a fromWord
//	blockNext  the second bytes of patterns, as a set of their five lower bits
//	blockEnds  an endWord for where the first pattern begins, then one for each rule
//
// The rules stand in the order of precedence: the first that matches decides. More than
// smallBlock are followed by an index: see index.go.
const (
	blockSize = iota
	blockFrom
	blockNext
	blockEnds

	smallBlock = 96
)

// A nameWord tells where a name stands in text: its offset above, its length in maxName.
type nameWord uint32

const nameBits = 12

func newNameWord(at, n int) nameWord { return nameWord(at<<nameBits | n) }

func (w nameWord) at() uint32 { return uint32(w) >> nameBits }

func (w nameWord) len() uint32 { return uint32(w) & maxName }

// A blockWord tells where in tab the rules of a name stand: in a block, or in the blocks of
// a list, which is their number and then their positions.
type blockWord uint32

func newBlockWord(pos uint32) blockWord { return blockWord(pos << 1) }

func newListWord(pos uint32) blockWord { return blockWord(pos<<1 | 1) }

func (w blockWord) pos() uint32 { return uint32(w >> 1) }

func (w blockWord) isList() bool { return w&1 != 0 }

// A sizeWord is the number of rules of a block, above three flags, and above it, if all rules
// are literal, how many bytes of a target matter.
type sizeWord uint32

const (
	blockDelay   sizeWord = 1 << iota // has a Crawl-delay
	blockIndexed                      // has more than smallBlock rules
	blockOpen                         // has a rule without a second byte that a target must have

	sizeBits = iota
	seenBits = sizeBits + placeBits
	maxSeen  = 1<<(32-seenBits) - 1
)

func (w sizeWord) rules() uint32 { return uint32(w>>sizeBits) & (1<<placeBits - 1) }

// seen returns the part of a target that rules can see. Only that part need be in normal
// form.
func (w sizeWord) seen(target string) string {
	if n := int(w >> seenBits); n != 0 && n < len(target) {
		return target[:n]
	}
	return target
}

// A fromWord is the line at which the only group of a block begins, or how many groups it
// combines.
type fromWord uint32

func newLineWord(line uint32) fromWord { return fromWord(line << 1) }

func newGroupsWord(n int) fromWord { return fromWord(n<<1 | 1) }

func (w fromWord) number() uint32 { return uint32(w >> 1) }

func (w fromWord) isGroups() bool { return w&1 != 0 }

// An endWord is the offset in text at which the pattern of a rule ends, what a target must
// have in any case (a key), and flags of the rule: the lowest flagBits of them.
type endWord uint32

func newEndWord(end uint32, k key, flags uint8) endWord {
	return endWord(end<<(keyBits+flagBits)) | endWord(k)<<flagBits | endWord(flags&(1<<flagBits-1))
}

func (w endWord) end() uint32 { return uint32(w >> (keyBits + flagBits)) }

func (w endWord) flags() uint8 { return uint8(w & (1<<flagBits - 1)) }

// ruleLine is one rule; its pattern is builder.pattern.
type ruleLine struct {
	off, n uint32 // in body, or in extra
	line   uint32
	flags  uint8
	rare   key // rarest of its pattern behind the second byte, or the first star, if ruleExtra is not set
}

// Flags of a rule.
const (
	ruleAllow   = 1 << iota
	ruleWild    // "*" or a final "$" in the pattern is special
	ruleDerived // stands in no line of its own (Google's index.html)
	ruleTwofold // has escapes that are one with what they stand for; then ruleWild is set too
	ruleExtra   // the pattern is in builder.extra

	flagBits = 4 // of the flags that the compiled form keeps
)

// nameLine says that a group has a name.
type nameLine struct {
	key    uint64 // the first eight bytes, folded, to sort by before anything else
	off, n uint32 // in body
	group  uint32 // in groups
}

// nameList has the names that a Content-Usage record stands under, as a range of
// builder.names: those since the last rule or Content-Usage record.
type nameList struct{ line, group, first, last uint32 }

// fileGroup is a group of the file.
type fileGroup struct {
	line        uint32 // of its first user-agent line; identifies it
	first, last uint32 // its rules, as a range of builder.rules
	firstName   uint32 // in builder.names
	names       uint32 // how many names it has
	delay       time.Duration
	hasDelay    bool
	pos         uint32 // where it is compiled alone, if it is
}

// maxName is the longest name kept. No real product token is as long.
const maxName = 1<<nameBits - 1

const placeBits = 17 // of a rule's number: a file has at most 500 KiB / len("allow:\n") rules
