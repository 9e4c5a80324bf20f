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
)

// trace makes a span of each report. A report comes when the thing is over and says
// how long it took, so each span is begun in the past. What concerns one request hangs
// below its span; a robots.txt is read for all callers, and is a root span.
func trace(t oteltrace.Tracer) *client.Trace {
	return &client.Trace{
		Decided: func(ctx context.Context, d client.DecidedInfo) {
			reason, _ := d.Reason.MarshalText() // for machines; String is for people
			span(ctx, t, "robots decide", d.Took, errors.Join(d.Err, d.Unreachable),
				attribute.String("url.full", d.URL.Redacted()),
				attribute.String("robots.token", d.Token),
				attribute.Bool("robots.allowed", d.Allowed),
				attribute.String("robots.reason", string(reason)),
				attribute.Int("robots.line", d.Rule.Line))
		},
		Fetched: func(_ context.Context, f client.FetchedInfo) { fetched(t, f) },
		Waited: func(ctx context.Context, u *url.URL, took time.Duration, err error) {
			span(ctx, t, "robots wait", took, err, attribute.String("url.full", u.Redacted()))
		},
	}
}

func fetched(t oteltrace.Tracer, f client.FetchedInfo) {
	name := "robots fetch"
	if f.Refresh {
		name = "robots refresh"
	}
	attrs, err := []attribute.KeyValue{attribute.String("robots.origin", f.Origin.String())}, f.Err
	if f.Result != nil {
		attrs, err = append(attrs,
			attribute.Int("http.response.status_code", f.Result.StatusCode),
			attribute.StringSlice("robots.redirects", f.Result.Redirects)), f.Result.Err
	}
	span(context.Background(), t, name, f.Took, err, attrs...)
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
