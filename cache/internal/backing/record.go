package backing

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"net/http"
	"time"
)

// What a Store holds for an origin:
//
//	"RGC5"    format and version; keys begin with it, too, so that no value of another version is found
//	4 bytes   CRC-32C of all that follows, big-endian
//	4 bytes   length of the next part, big-endian
//	JSON      a Record
//	the rest  the file as it came
const (
	Version   = "RGC5"
	prefix    = len(Version) + 8
	maxRecord = 600 << 10   // as the doc of Store says
	maxBody   = 500<<10 + 1 // what is parsed (RFC 9309 §2.5), and the byte that tells that there is more
)

// checksum is CRC-32C. Its table is made at the first call, not at the start of a program without a Store.
func checksum(data []byte) uint32 { return crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)) }

// ErrDamaged quotes nothing, because the bytes may come from anywhere.
var ErrDamaged = errors.New("cache: stored value is damaged, or not of this origin and version")

// Record is a state in JSON. It holds times and what was received. Lifetimes and what an answer means are left out:
// they follow from the settings and the dialect of the reader.
type Record struct {
	Key     string   `json:"key"` // again, for values that were mixed up
	Answer  *Answer  `json:"answer,omitempty"`
	Failure *Failure `json:"failure,omitempty"`
	Mark    *Mark    `json:"mark,omitempty"` // then there is nothing else
}

// Answer is what came, and with what.
type Answer struct {
	Status    int         `json:"status"`
	Header    http.Header `json:"header,omitempty"`
	Received  time.Time   `json:"received"`
	File      bool        `json:"file"` // what follows is a file, even if it is empty
	Truncated bool        `json:"truncated,omitempty"`
	Redirects []string    `json:"redirects,omitempty"`
	Wall      bool        `json:"wall,omitempty"`

	RedirectHeaders []http.Header `json:"redirect_headers,omitempty"`
}

// Failure is an outage: the latest failure, and how many there were since when.
type Failure struct {
	Status   int           `json:"status,omitempty"`
	Error    string        `json:"error"`
	Cause    string        `json:"cause,omitempty"`
	Received time.Time     `json:"received"`
	Asked    time.Duration `json:"retry_after_ns,omitempty"` // by the server
	Retry    time.Duration `json:"retry_ns"`
	Since    time.Time     `json:"since"`
	Count    int           `json:"count"`
}

// Record returns what the Store gets.
func (m Mark) Record(key string) *Record { return &Record{Key: key, Mark: &m} }

// Encode returns the bytes to store, or nil if they are too long.
func (rec *Record) Encode(body []byte) []byte {
	meta, err := json.Marshal(rec)
	if err != nil {
		return nil // a time beyond the year 9999
	}
	data := make([]byte, prefix, prefix+len(meta)+len(body))
	copy(data, Version)
	binary.BigEndian.PutUint32(data[len(Version)+4:], uint32(len(meta)))
	data = append(append(data, meta...), body...)
	if len(data) > maxRecord || len(body) > maxBody {
		return nil
	}
	binary.BigEndian.PutUint32(data[len(Version):], checksum(data[len(Version)+4:]))
	return data
}

// decode takes stored bytes apart, trusting none of them.
func decode(key string, data []byte) (*Record, []byte, error) {
	if len(data) < prefix || len(data) > maxRecord || string(data[:len(Version)]) != Version {
		return nil, nil, ErrDamaged
	}
	sum := binary.BigEndian.Uint32(data[len(Version):])
	size := binary.BigEndian.Uint32(data[len(Version)+4:])
	rest := data[prefix:]
	if sum != checksum(data[len(Version)+4:]) || uint64(size) > uint64(len(rest)) {
		return nil, nil, ErrDamaged
	}
	var rec Record
	body := rest[size:]
	if json.Unmarshal(rest[:size], &rec) != nil || rec.Key != key || len(body) > maxBody {
		return nil, nil, ErrDamaged
	}
	// Times are not judged here: whether they lie in the future depends on when the record is read.
	if f := rec.Failure; f == nil && rec.Answer == nil && rec.Mark == nil || f != nil && (f.Retry < 0 || f.Count < 1) {
		return nil, nil, ErrDamaged
	}
	return &rec, body, nil
}

// received returns when the answer of the record came, or that of its mark; zero if it has neither.
func (rec *Record) received() time.Time {
	switch {
	case rec == nil:
	case rec.Answer != nil:
		return rec.Answer.Received
	case rec.Mark != nil:
		return rec.Mark.Received
	}
	return time.Time{}
}
