package serve

import "time"

// What strangers send is their choice in number, size and pace, so each of these has a bound. Who asks too much at a
// time gets a 429 with a Retry-After, what is too large gets a 413, and who stalls loses the connection.

// The bounds of the service. maxText is twice what crawlers read, since that a file is too long is a finding, too.
// maxBody is for a question of /v1/match: a maxText of control characters, which JSON writes with six bytes each,
// and its URLs. A form of the page has the same bound. maxRest is for clients that send all before they read: they
// would see a broken connection, and not the 413.
const (
	maxText  = 1 << 20 // of a robots.txt
	maxBody  = 6*maxText + 2<<20
	maxRest  = 32 << 20 // of a body that is not read to its end
	maxAgent = 1 << 10  // of a product token, which each answer repeats
	maxFiles = 32 << 20 // of memory for files that were asked for, with what was read from them
)

// The memory that questions may take for each byte of what a stranger sends, as measured with the bodies that
// take most: json.Decoder keeps a string three times, lint 40 bytes for one of a line. They are what admit is
// asked for. If what reads a body takes more memory one day, its factor has to grow, or Limits.Work is no
// bound.
const (
	costOfJSON  = 5
	costOfParse = 8        // of a robots.txt, for each dialect
	costOfLint  = 32       // of a robots.txt
	smallPolicy = 16 << 10 // is not admitted: each has a spool, and 2,048 of these, which is all, hold 32 MiB
	smallWork   = 1 << 20  // has room of its own, see Service.Open
)

// The bounds of the page. What it shows is for people, who ask about a few URLs; a program has other paths. maxLink
// fits into web.MaxHeader, so that a link which is kept can be asked again.
const (
	maxPageURLs = 50       // a longer list is for POST /v1/decide
	maxPageText = 64 << 10 // bytes of all of them
	maxLink     = 16 << 10 // bytes that a link may have
	lintAtOnce  = 64 << 10 // bytes of a file; to judge a longer one takes longer than to decide
	costOfPage  = 48       // memory for each byte of a file or form: five dialects and lint read it
)

// Limits are the bounds that tests cannot wait for: they set smaller ones. No field has a usual value for
// zero.
//
// What is held while a client is waited for is refused at once with a 429 if there is no more: that may last minutes.
// Memory for work is waited for, since work takes moments.
type Limits struct {
	Questions int   // under way; more get a 429
	Streams   int   // of POST /v1/decide; each holds some MiB
	Work      int64 // bytes of memory to read bodies and files in; more waits
	Policies  int64 // bytes of memory for large files that answers are given by; more get a 429
	Spool     int64 // bytes on disk for bodies on their way here, and answers on theirs; more get a 429
	Turns     int   // waited for, or not ended yet

	Header   time.Duration // for a request without its body
	Body     time.Duration // for a body that is no stream
	Answer   time.Duration // for a piece of an answer to be taken
	Question time.Duration // for an answer to be found
	Stream   time.Duration // for the next lines of a stream, and for its next answers to be taken
	Idle     time.Duration // for the next request
}

// UsualLimits suit a machine with some hundred MiB to spare. Question is longer than the usual --timeout, so that a
// slow site is told as what it is, and not as a question that took too long. The other times are for clients: who
// sends or takes nothing for so long has stalled.
var UsualLimits = Limits{
	Questions: 1024, Streams: 32, Turns: 4096, Work: 64 << 20, Policies: 32 << 20, Spool: 512 << 20,
	Header: 10 * time.Second, Body: 30 * time.Second, Answer: 30 * time.Second,
	Question: 2*time.Minute + 10*time.Second, Stream: 2 * time.Minute, Idle: 2 * time.Minute,
}
