package cache

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// Source is where results come from, and how they are read. It must not be changed once it
// was given to Get.
type Source struct {
	// Load fetches the robots.txt of an origin, as (*fetch.Fetcher).Fetch does: the last
	// argument is an earlier Result to validate, or nil. It runs with a context of its own,
	// which ends after two minutes. An error that wraps fetch.ErrBusy means that the origin
	// has not been asked. If nil, every site is unreachable, and Result.Err names Load.
	Load func(context.Context, fetch.Origin, *fetch.Result) (*fetch.Result, error)

	// UserAgent is what Load sends. It matters if an answer varies, see fetch.Result.UserAgent:
	// such an answer is kept for requests with the same one only (RFC 9111 §4.1). A crawler that
	// signs in another way needs another User-Agent. If empty, fetch.DefaultUserAgent.
	UserAgent string

	// Kind is that of the Fetcher behind Load. Sources of different Kinds share neither results, in
	// memory or in a Store, nor fetches. If zero, that of the zero Fetcher.
	Kind fetch.Kind

	// Dialect is how answers are read, those in a Store included. Each dialect has its own
	// results in memory. If zero, policy.RFC9309.
	Dialect policy.Dialect
}

// place is where the answers to src are kept that are for all.
func (src *Source) place(o fetch.Origin) place { return place{Origin: o, kind: src.kind()} }

func (src *Source) kind() kind { return kind{src.Dialect, src.Kind} }

func (src *Source) agent() string { return cmp.Or(src.UserAgent, fetch.DefaultUserAgent) }

// checked holds Load to its contract.
func (src *Source) checked(r *fetch.Result, err error, now time.Time) *fetch.Result {
	switch {
	case err != nil:
		return unreachable(src.Dialect, now, errors.New(err.Error()))
	case r == nil || r.Policy == nil:
		return unreachable(src.Dialect, now, errors.New("cache: load returned neither a policy nor an error"))
	}
	if r.Err != nil {
		text := *r
		text.Err = failure(r.Err.Error(), r.Err) // called here, where it may panic
		r = &text
	}
	return r.In(src.Dialect)
}

func unreachable(d policy.Dialect, now time.Time, err error) *fetch.Result {
	return &fetch.Result{Policy: policy.Unreachable(), Dialect: d, Err: err, Time: now}
}
