package main

import (
	"context"
	"errors"
	"net/url"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/fetch"
)

// trace makes a span of each report. A report comes when the thing is over and says
// how long it took, so each span is begun in the past. What concerns one request hangs
// below its span; a robots.txt is read for all callers, and is a root span.
func trace(t oteltrace.Tracer) *client.Trace {
	return &client.Trace{
		Decided: func(ctx context.Context, u *url.URL, a client.Answer, took time.Duration, err error) {
			reason, _ := a.Reason.MarshalText() // for machines; String is for people
			span(ctx, t, "robots decide", took, errors.Join(err, a.Unreachable),
				attribute.String("url.full", u.Redacted()),
				attribute.String("robots.token", a.Token),
				attribute.Bool("robots.allowed", a.Allowed),
				attribute.String("robots.reason", string(reason)),
				attribute.Int("robots.line", a.Rule.Line))
		},
		Fetched: func(_ context.Context, o fetch.Origin, r *fetch.Result, took time.Duration, err error) {
			attrs := []attribute.KeyValue{attribute.String("robots.origin", o.String())}
			if r != nil {
				attrs, err = append(attrs,
					attribute.Int("http.response.status_code", r.StatusCode),
					attribute.StringSlice("robots.redirects", r.Redirects)), r.Err
			}
			span(context.Background(), t, "robots fetch", took, err, attrs...)
		},
		Waited: func(ctx context.Context, u *url.URL, took time.Duration, err error) {
			span(ctx, t, "robots wait", took, err, attribute.String("url.full", u.Redacted()))
		},
	}
}

func span(ctx context.Context, t oteltrace.Tracer, name string, took time.Duration, err error, attrs ...attribute.KeyValue) {
	end := time.Now()
	_, s := t.Start(ctx, name,
		oteltrace.WithTimestamp(end.Add(-took)), oteltrace.WithAttributes(attrs...))
	if err != nil {
		s.RecordError(err)
		s.SetStatus(codes.Error, err.Error())
	}
	s.End(oteltrace.WithTimestamp(end))
}
