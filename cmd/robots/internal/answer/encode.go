package answer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// AppendJSON appends r as encoding/json writes it, which a test holds it to. A service writes
// little else, and by reflection a record takes seven times as long: POST /v1/decide would lose half
// of its rate.
func (r *Record) AppendJSON(b []byte) []byte {
	b = strconv.AppendInt(append(b, `{"number":`...), int64(r.Number), 10)
	b = appendRaw(append(b, `,"id":`...), r.ID)
	b = appendString(append(b, `,"url":`...), r.URL)
	b = appendText(append(b, `,"agent":`...), r.Agent)
	b = appendText(append(b, `,"dialect":`...), r.Dialect)
	b = strconv.AppendBool(append(b, `,"allowed":`...), r.Allowed)
	b = appendString(append(b, `,"covers":`...), r.Covers)
	b = appendString(append(b, `,"reason":`...), r.Reason)
	b = appendInt(append(b, `,"line":`...), r.Line)
	b = appendText(append(b, `,"rule":`...), r.Rule)
	b = appendText(append(b, `,"group":`...), r.Group)
	b = append(b, `,"use":`...)
	if r.Use == nil {
		b = append(b, "null"...)
	} else {
		b = AppendAny(b, r.Use)
	}
	b = appendText(append(b, `,"error":`...), r.Error)
	b = r.Robots.appendJSON(append(b, `,"robots":`...))
	b = append(b, `,"lines":`...)
	if r.Lines == nil {
		b = append(b, "null"...)
	} else {
		b = AppendAny(b, r.Lines)
	}
	return append(appendRaw(append(b, `,"record":`...), r.Record), '}')
}

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

func appendRaw(b []byte, v json.RawMessage) []byte {
	if v == nil {
		return append(b, "null"...)
	}
	return AppendAny(b, v)
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
