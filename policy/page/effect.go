package page

import (
	"fmt"
	"strings"
	"time"

	"github.com/robotsgate/robotsgate/policy/internal/ascii"
)

// An Effect is what holds for one crawler. The zero value restricts nothing. Effects can be compared by ==, which also
// looks at what changes nothing: a MaxSnippet stays beside a NoSnippet that is stricter. An Effect is a value: copies
// may be used concurrently.
type Effect struct {
	NoIndex         bool // do not list the page
	NoFollow        bool // do not follow its links
	NoArchive       bool // offer no cached copy; Bing: nor use it for answers and training
	NoCache         bool // Bing: use URL, title and snippet only for answers and training
	NoSnippet       bool // show no text or video of it; also set by a MaxSnippet of 0
	NoTranslate     bool // offer no translation
	NoImageIndex    bool // do not list its images
	IndexIfEmbedded bool // despite NoIndex, it may be listed where another page embeds it
	NoAI            bool // no use for machine learning
	NoImageAI       bool // no use of its images for machine learning
	NoML            bool // no use for machine learning, in the words of Mojeek

	// MaxSnippet is how many characters of text may be shown.
	MaxSnippet Limit

	// MaxVideoPreview is how many seconds of a video may be shown, 0 for a still image.
	MaxVideoPreview Limit

	// MaxImagePreview is how large an image may be shown: "none", "standard" or "large". If empty, nothing was said.
	MaxImagePreview string

	// UnavailableAfter is the instant after which the page may not be listed, in UTC. If zero, there is none. It is
	// kept as an instant so that a stored page can be judged again later; see MayIndex.
	UnavailableAfter time.Time

	// Incomplete says that there may be more than was read, as
	// Rules.Incomplete does: the page may restrict more than this.
	Incomplete bool
}

// A Limit is the number of a max-snippet or max-video-preview rule. The zero
// value means that nothing was said, which engines treat as N = -1.
type Limit struct {
	Said bool // there is a rule
	N    int  // characters or seconds, 0 for none at all; -1: the engine chooses
}

// MayIndex reports whether the page may be listed at an instant: NoIndex is not set, and UnavailableAfter has not
// passed. A crawler that lists embedded pages on their own account looks at IndexIfEmbedded as well.
func (e Effect) MayIndex(at time.Time) bool {
	return !e.NoIndex && (e.UnavailableAfter.IsZero() || !at.After(e.UnavailableAfter))
}

// MayFollow reports whether a link of the page with the value of its rel attribute may be followed. The page's NoFollow
// holds for all of its links. A link that is only ugc or sponsored may be followed; see [ParseRel]. Another page may
// lead to the same target.
func (e Effect) MayFollow(rel string) bool {
	return !e.NoFollow && !ParseRel(rel).NoFollow
}

var restrictionNames = [...]string{"noindex", "nofollow", "noarchive", "nocache", "nosnippet", "notranslate", "noimageindex",
	"indexifembedded", "noai", "noimageai", "noml"}

// restrictions returns those without a value, in the order of their flags and names.
func (e *Effect) restrictions() [len(restrictionNames)]*bool {
	return [...]*bool{&e.NoIndex, &e.NoFollow, &e.NoArchive, &e.NoCache, &e.NoSnippet, &e.NoTranslate, &e.NoImageIndex,
		&e.IndexIfEmbedded, &e.NoAI, &e.NoImageAI, &e.NoML}
}

// String returns the rules that say the same, as an X-Robots-Tag would, or "all" if there are none.
func (e Effect) String() string {
	var rules []string
	for i, held := range e.restrictions() {
		if *held {
			rules = append(rules, restrictionNames[i])
		}
	}
	if e.MaxSnippet.Said {
		rules = append(rules, fmt.Sprintf("max-snippet:%d", e.MaxSnippet.N))
	}
	if e.MaxImagePreview != "" {
		rules = append(rules, "max-image-preview:"+e.MaxImagePreview)
	}
	if e.MaxVideoPreview.Said {
		rules = append(rules, fmt.Sprintf("max-video-preview:%d", e.MaxVideoPreview.N))
	}
	if !e.UnavailableAfter.IsZero() {
		rules = append(rules, "unavailable_after:"+e.UnavailableAfter.UTC().Format(time.RFC3339))
	}
	if rules == nil {
		return "all"
	}
	return strings.Join(rules, ", ")
}

// A Rel is what the rel attribute of a link says to crawlers. The zero value says nothing. Google has taken all three
// for hints since March 2020; a polite crawler does not follow a NoFollow link from that page.
type Rel struct {
	NoFollow  bool // the page does not vouch for the target
	UGC       bool // a user of the site made the link
	Sponsored bool // the link was paid for
}

// ParseRel reads the value of a rel attribute: words without regard to case,
// separated by white space, or by commas as Google also reads them.
func ParseRel(value string) (r Rel) {
	for word := range strings.FieldsFuncSeq(value, func(c rune) bool { return c == ',' || isSpace(c) }) {
		r.NoFollow = r.NoFollow || ascii.FoldEqual(word, "nofollow")
		r.UGC = r.UGC || ascii.FoldEqual(word, "ugc")
		r.Sponsored = r.Sponsored || ascii.FoldEqual(word, "sponsored")
	}
	return r
}
