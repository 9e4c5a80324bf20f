package answer

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// AppendJSON appends v as encoding/json would write it, which a test holds it to. Every field is always there, and null if
// it does not apply. A service writes little else, and by reflection POST /v1/decide loses more than half of its rate.
func (v *Verdict) AppendJSON(b []byte) []byte {
	b = strconv.AppendInt(append(b, `{"number":`...), int64(v.Number), 10)
	b = appendUnless(append(b, `,"id":`...), v.ID == nil, v.ID)
	b = appendString(append(b, `,"url":`...), v.URL)
	b = appendText(append(b, `,"agent":`...), OrNull(v.Agent))
	b = appendText(append(b, `,"dialect":`...), OrNull(v.Dialect))
	b = strconv.AppendBool(append(b, `,"allowed":`...), v.Allowed)
	b = appendString(append(b, `,"covers":`...), coversURL)
	b = appendString(append(b, `,"reason":`...), cmp.Or(v.Reason, ReasonMalformed))
	b = appendInt(append(b, `,"line":`...), OrNull(v.Line))
	b = appendText(append(b, `,"rule":`...), OrNull(v.Rule))
	b = appendText(append(b, `,"group":`...), OrNull(v.Group))
	b = append(b, `,"use":`...)
	if v.By == nil {
		b = append(b, "null"...)
	} else {
		b = Object{"label", v.Use, "by", Statement(*v.By)}.append(b)
	}
	b = appendUnless(append(b, `,"agreement":`...), v.Agreement == nil, v.Agreement)
	b = appendText(append(b, `,"error":`...), OrNull(v.Error))
	b = v.Robots.appendJSON(append(b, `,"robots":`...))
	b = appendUnless(append(b, `,"lines":`...), v.Lines == nil, v.Lines)
	return append(appendUnless(append(b, `,"record":`...), v.Record == nil, v.Record), '}')
}

// MarshalJSON is AppendJSON, for what has a verdict in it.
func (v *Verdict) MarshalJSON() ([]byte, error) { return v.AppendJSON(nil), nil }

// AppendJSON is that of an answer, which may be nil.
func (a *Answer) appendJSON(b []byte) []byte {
	if a == nil {
		return append(b, "null"...)
	}
	b = appendString(append(b, `{"url":`...), a.URL)
	b = appendInt(append(b, `,"status":`...), a.Status)
	b = appendString(append(b, `,"outcome":`...), a.Outcome)
	b = append(b, `,"redirects":`...)
	if a.Redirects != nil && len(a.Redirects) == 0 {
		b = append(b, "[]"...)
	} else {
		b = AppendAny(b, a.Redirects)
	}
	b = append(a.Fetched.AppendFormat(append(b, `,"fetched":"`...), time.RFC3339Nano), '"')
	b = strconv.AppendInt(append(b, `,"age_seconds":`...), a.Age, 10)
	b = appendInt(append(b, `,"lifetime_seconds":`...), a.Lifetime)
	b = appendText(append(b, `,"lifetime_source":`...), a.Source)
	b = appendInt(append(b, `,"retry_seconds":`...), a.Retry)
	b = strconv.AppendBool(append(b, `,"truncated":`...), a.Truncated)
	b = appendText(append(b, `,"error":`...), a.Error)
	if a.Wall != "" {
		b = appendString(append(b, `,"wall":`...), a.Wall)
	}
	return append(b, '}')
}

func appendInt[T int | int64](b []byte, n *T) []byte {
	if n == nil {
		return append(b, "null"...)
	}
	return strconv.AppendInt(b, int64(*n), 10)
}

func appendText(b []byte, s *string) []byte {
	if s == nil {
		return append(b, "null"...)
	}
	return appendString(b, *s)
}

// appendString leaves what has to be escaped to encoding/json.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return AppendAny(b, s)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

// appendUnless is AppendAny for what is mostly null, and then needs no reflection.
func appendUnless[T any](b []byte, null bool, v T) []byte {
	if null {
		return append(b, "null"...)
	}
	return AppendAny(b, v)
}

// Object is an object of JSON: names and values in turns.
type Object []any

func (o Object) MarshalJSON() ([]byte, error) { return o.append(nil), nil }

func (o Object) append(b []byte) []byte {
	sign := byte('{')
	for i := 0; i < len(o); i += 2 {
		b = append(appendString(append(b, sign), o[i].(string)), ':')
		switch v := o[i+1].(type) { // what is written most
		case string:
			b = appendString(b, v)
		case *string:
			b = appendText(b, v)
		case Object:
			b = v.append(b)
		default:
			b = AppendAny(b, v)
		}
		sign = ','
	}
	return append(b, '}')
}

// AppendAny appends v without a line end. Patterns and URLs are full of & and <, which are no
// danger here, so they stay as they are.
func AppendAny(b []byte, v any) []byte {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		// Only values of our own types come here, and all of them can be encoded.
		panic(fmt.Sprintf("robots: %T as JSON: %v", v, err))
	}
	return append(b, bytes.TrimSuffix(text.Bytes(), []byte("\n"))...)
}

// SchemaVersion is that of Schema. Within a version fields may be added; none is
// renamed, removed or given another meaning.
const SchemaVersion = 1

// Schema describes all JSON that the command writes.
//
//go:embed schema.json
var Schema []byte
