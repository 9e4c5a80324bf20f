package answer

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unsafe"
)

// AppendJSON appends v as encoding/json would write it, but null for the zero of a field that is tagged zero:"null".
// A service and filter write little else, and encoding/json would halve their rates.
func (v *Verdict) AppendJSON(b []byte) []byte { return appendVerdict(b, unsafe.Pointer(v)) }

// MarshalJSON is AppendJSON, for what has a verdict in it.
func (v *Verdict) MarshalJSON() ([]byte, error) { return v.AppendJSON(nil), nil }

var appendVerdict = structAppender(reflect.TypeFor[Verdict]())

// appender appends the value of one type that p points to. Package reflect says once what stands where in a Verdict:
// its Values would take half as long again for each.
type appender func(b []byte, p unsafe.Pointer) []byte

// appenderOf knows the types that most of a Verdict is made of, and leaves others to encoding/json.
func appenderOf(t reflect.Type) appender {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return func(b []byte, p unsafe.Pointer) []byte {
			return append((*time.Time)(p).AppendFormat(append(b, '"'), time.RFC3339Nano), '"')
		}
	case t.Kind() == reflect.Pointer:
		of := appenderOf(t.Elem())
		return func(b []byte, p unsafe.Pointer) []byte { return of(b, *(*unsafe.Pointer)(p)) } // nil is null before
	case reflect.PointerTo(t).Implements(reflect.TypeFor[json.Marshaler]()):
		return otherAppender(t)
	}
	switch t.Kind() {
	case reflect.String:
		return func(b []byte, p unsafe.Pointer) []byte { return appendString(b, *(*string)(p)) }
	case reflect.Int:
		return func(b []byte, p unsafe.Pointer) []byte { return strconv.AppendInt(b, int64(*(*int)(p)), 10) }
	case reflect.Int64:
		return func(b []byte, p unsafe.Pointer) []byte { return strconv.AppendInt(b, *(*int64)(p), 10) }
	case reflect.Bool:
		return func(b []byte, p unsafe.Pointer) []byte { return strconv.AppendBool(b, *(*bool)(p)) }
	case reflect.Struct:
		return structAppender(t)
	case reflect.Slice:
		other := otherAppender(t)
		return func(b []byte, p unsafe.Pointer) []byte {
			if v := reflect.NewAt(t, p).Elem(); v.Len() == 0 && !v.IsNil() { // mostly
				return append(b, "[]"...)
			}
			return other(b, p)
		}
	default:
		return otherAppender(t)
	}
}

func otherAppender(t reflect.Type) appender {
	return func(b []byte, p unsafe.Pointer) []byte { return AppendAny(b, reflect.NewAt(t, p).Elem().Interface()) }
}

// structAppender reads the tags of t. The first field is never left out.
func structAppender(t reflect.Type) appender {
	type field struct {
		typ     reflect.Type
		kind    reflect.Kind
		offset  uintptr
		name    string // with what stands before and behind it
		value   appender
		special bool   // zero is
		zero    string // the whole field then
	}
	var fields []field
	sign := "{"
	for s := range t.Fields() {
		if !s.IsExported() {
			continue
		}
		name, option, _ := strings.Cut(s.Tag.Get("json"), ",")
		f := field{typ: s.Type, kind: s.Type.Kind(), offset: s.Offset, value: appenderOf(s.Type)}
		f.name = sign + strconv.Quote(name) + ":"
		switch {
		case s.Tag.Get("zero") == "null", f.kind == reflect.Pointer:
			f.special, f.zero = true, f.name+"null"
		case option == "omitempty":
			f.special = true
		}
		fields, sign = append(fields, f), ","
	}
	return func(b []byte, p unsafe.Pointer) []byte {
		for i := range fields {
			f := &fields[i]
			if at := unsafe.Add(p, f.offset); f.special && isZero(f.typ, f.kind, at) {
				b = append(b, f.zero...)
			} else {
				b = f.value(append(b, f.name...), at)
			}
		}
		return append(b, '}')
	}
}

// isZero reports whether p points to the zero of a type, which is of a kind.
func isZero(t reflect.Type, kind reflect.Kind, p unsafe.Pointer) bool {
	switch kind {
	case reflect.String:
		return *(*string)(p) == ""
	case reflect.Int, reflect.Pointer, reflect.Slice:
		return *(*uintptr)(p) == 0 // of a slice, where its elements are
	default:
		return reflect.NewAt(t, p).Elem().IsZero()
	}
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

// Object is an object of JSON: names and values in turns.
type Object []any

func (o Object) MarshalJSON() ([]byte, error) {
	var b []byte
	sign := byte('{')
	for i := 0; i < len(o); i += 2 {
		b = append(appendString(append(b, sign), o[i].(string)), ':')
		b = AppendAny(b, o[i+1])
		sign = ','
	}
	return append(b, '}'), nil
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
