package sign

import (
	"context"
	"net/http"
	"slices"

	"github.com/dunglas/httpsfv"
	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/fetch"
)

// maxAsked is how many origins that have asked are remembered.
const maxAsked = 10_000

// WhenAsked returns a RoundTripper that signs only for origins that ask for it (Accept-Signature,
// RFC 9421 §5). A request goes over unsigned until an answer of its origin, for a page or for
// robots.txt, asks for a signature that s makes. From then on requests to that origin go over
// signed. The caller sets signed.Sign. Nothing is sent twice: the answer that asks is the caller's.
//
// Both may share a Cache and a Pacer. What robots.txt told an unsigned request is no permission
// for a signed one, so signed reads it anew. The 10,000 origins that were used last are
// remembered. WhenAsked adds to the Trace of unsigned, which must not have been used yet. The
// RoundTripper is safe for concurrent use.
func (s *Signer) WhenAsked(unsigned, signed *client.Transport) http.RoundTripper {
	t := &whenAsked{signer: s, unsigned: unsigned, signed: signed}
	t.asked, _ = lru.New[fetch.Origin, bool](maxAsked) // fails below one alone
	var trace client.Trace
	if unsigned.Trace != nil {
		trace = *unsigned.Trace
	}
	told := trace.Fetched
	trace.Fetched = func(ctx context.Context, f client.FetchedInfo) {
		if f.Result != nil && len(f.Result.Redirects) == 0 { // its own answer
			t.hear(f.Origin, f.Result.Header)
		}
		if told != nil {
			told(ctx, f)
		}
	}
	unsigned.Trace = &trace
	return t
}

type whenAsked struct {
	signer           *Signer
	unsigned, signed *client.Transport
	asked            *lru.Cache[fetch.Origin, bool]
}

func (t *whenAsked) RoundTrip(req *http.Request) (*http.Response, error) {
	o, misuse := fetch.OriginOfRequest(req)
	if asked, _ := t.asked.Get(o); asked {
		return t.signed.RoundTrip(req)
	}
	res, err := t.unsigned.RoundTrip(req)
	if err == nil && misuse == nil {
		t.hear(o, res.Header)
	}
	return res, err
}

// CloseIdleConnections is for that of http.Client.
func (t *whenAsked) CloseIdleConnections() {
	t.unsigned.CloseIdleConnections()
	t.signed.CloseIdleConnections()
}

// hear remembers o if the header of an answer of its asks for what is made for it.
func (t *whenAsked) hear(o fetch.Origin, h http.Header) {
	if asks := h["Accept-Signature"]; asks != nil && (t.signer.PlainHTTP || o.RobotsURL().Scheme == "https") && t.signer.makes(asks) {
		t.asked.Add(o.Clone(), true)
	}
}

// makes reports whether Sign makes one of the signatures that are asked for (RFC 9421 §5.1). The label
// does not matter, nor the key of signature-agent, which is our label: no site can know it.
func (s *Signer) makes(asks []string) bool {
	keyID, err := s.KeyID()
	if err != nil || size(asks) > maxFields {
		return false
	}
	all, err := httpsfv.UnmarshalDictionary(asks)
	return err == nil && slices.ContainsFunc(all.Names(), func(label string) bool {
		member, _ := all.Get(label)
		list, ok := member.(httpsfv.InnerList)
		return ok && !slices.ContainsFunc(list.Items, func(c httpsfv.Item) bool {
			name, _ := c.Value.(string)
			ours := len(c.Params.Names()) == 0 || name == "signature-agent" && slices.Equal(c.Params.Names(), []string{"key"})
			return !ours || !covers(s.components(), name)
		}) && !slices.ContainsFunc(list.Params.Names(), func(name string) bool {
			switch value, _ := list.Params.Get(name); name {
			case "created", "expires":
				return false
			case "keyid":
				return value != keyID
			case "alg":
				return value != "ed25519"
			case "tag":
				return value != tag
			}
			return true // a nonce of the site's, above all
		})
	})
}
