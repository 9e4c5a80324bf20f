package answer

// JSON in and out. What is read is taken as nobody else could understand it otherwise: a name has one spelling, and is
// there once. encoding/json would take any case, and the last one.

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	strict "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// FieldError is what is wrong with one field of an object.
type FieldError struct{ Name, Problem string }

func (e *FieldError) Error() string { return fmt.Sprintf("the field %q: %s", e.Name, e.Problem) }

// Lenient has ReadObject take text that is no Unicode, as U+FFFD.
var Lenient = jsontext.AllowInvalidUTF8(true)

// ReadObject decodes an object into a struct. Of what is refused, some fields may be read.
func ReadObject(data []byte, into any, options ...strict.Options) error {
	return Misread(strict.Unmarshal(data, into, options...))
}

// Misread is err in the words of the command, without the names of Go's types.
func Misread(err error) error {
	if own, ok := errors.AsType[*FieldError](err); ok {
		return own
	}
	if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		if errors.Is(err, jsontext.ErrDuplicateName) {
			return &FieldError{nameOf(e.JSONPointer), "it is there twice"}
		}
		if text := e.Err.Error(); nameOf(e.JSONPointer) != "" && (strings.Contains(text, "UTF-8") || strings.Contains(text, "surrogate")) {
			return &FieldError{nameOf(e.JSONPointer), "it is no Unicode text"}
		}
		return e.Err
	}
	e, ok := errors.AsType[*strict.SemanticError](err)
	switch {
	case !ok:
		return err
	case errors.Is(err, strict.ErrUnknownName):
		return &FieldError{nameOf(e.JSONPointer), "it is not known"}
	case e.Err != nil && e.JSONValue == nil: // an error of our own
		return e.Err
	case e.JSONPointer == "":
		return fmt.Errorf("a JSON %s is no question: write an object", KindOf(e.JSONKind))
	}
	return &FieldError{nameOf(e.JSONPointer), Unfit(e.JSONKind)}
}

// Unfit is the problem of a value of another type.
func Unfit(kind jsontext.Kind) string {
	return fmt.Sprintf("a JSON %s does not fit here", KindOf(kind))
}

// nameOf is the field of the outermost object in which something is.
func nameOf(at jsontext.Pointer) string {
	for name := range at.Tokens() {
		return Brief(name)
	}
	return ""
}

// KindOf is what a value is, in a word.
func KindOf(kind jsontext.Kind) string {
	switch kind {
	case '{':
		return "object"
	case '[':
		return "array"
	}
	return kind.String()
}

// unicodeOf is well-formed JSON with U+FFFD where its text is no Unicode (RFC 8259 §8): some readers, such as jq, end
// there.
func unicodeOf(text string) []byte {
	if utf8.ValidString(text) && !strings.Contains(text, `\u`) {
		return []byte(text)
	}
	var out bytes.Buffer
	from := jsontext.NewDecoder(strings.NewReader(text), Lenient)
	to := jsontext.NewEncoder(&out)
	for {
		token, err := from.ReadToken()
		if err != nil {
			return bytes.TrimSpace(out.Bytes())
		}
		if token.Kind() == '"' {
			token = jsontext.String(token.String())
		}
		to.WriteToken(token)
	}
}

// written is a Verdict as JSON has it: null in place of zeros.
type written struct {
	Number     int             `json:"number"`
	ID         json.RawMessage `json:"id"`
	URL        string          `json:"url"`
	Asked      *string         `json:"asked"`
	Agent      *string         `json:"agent"`
	Dialect    *string         `json:"dialect"`
	DialectBy  *string         `json:"dialect_by"`
	Fallback   *string         `json:"fallback"`
	Allowed    bool            `json:"allowed"`
	Covers     string          `json:"covers"`
	Reason     string          `json:"reason"`
	Line       *int            `json:"line"`
	Rule       *string         `json:"rule"`
	Group      *string         `json:"group"`
	CrawlDelay *float64        `json:"crawl_delay"`
	Use        *Use            `json:"use"`
	Agreement  any             `json:"agreement"`
	Error      *string         `json:"error"`
	Robots     *Answer         `json:"robots"`
	Lines      []FileLine      `json:"lines"`
	Record     json.RawMessage `json:"record"`
	Purpose    string          `json:"purpose,omitempty"`
}

func (v *Verdict) written() *written {
	return &written{
		v.Number, v.ID, v.URL, OrNull(v.Asked), OrNull(v.Agent), OrNull(v.Dialect), OrNull(v.DialectBy), OrNull(v.Fallback),
		v.Allowed, v.Covers, v.Reason, OrNull(v.Line), OrNull(v.Rule), OrNull(v.Group), v.CrawlDelay, v.Use, v.Agreement,
		OrNull(v.Error), v.Robots, v.Lines, v.Record, v.Purpose,
	}
}

// MarshalJSON is for what has a verdict in it. WriteJSON is faster.
func (v *Verdict) MarshalJSON() ([]byte, error) { return AppendAny(nil, v.written()), nil }

// WriteJSON writes v and a line end.
func (v *Verdict) WriteJSON(to *bytes.Buffer) { encode(to, v.written()) }

// Object is an object of JSON: names and values in turns.
type Object []any

func (o Object) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i := 0; i < len(o); i += 2 {
		if i > 0 {
			b = append(b, ',')
		}
		b = AppendAny(append(AppendAny(b, o[i]), ':'), o[i+1])
	}
	return append(b, '}'), nil
}

// AppendAny appends v without a line end.
func AppendAny(b []byte, v any) []byte {
	var text bytes.Buffer
	encode(&text, v)
	return append(b, bytes.TrimSuffix(text.Bytes(), []byte("\n"))...)
}

// encode leaves & and < as they are: patterns and URLs are full of them, and they are no danger here.
func encode(to *bytes.Buffer, v any) {
	e := json.NewEncoder(to)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		// Only values of our own types come here, and all of them can be encoded.
		panic(fmt.Sprintf("robots: %T as JSON: %v", v, err))
	}
}

// SchemaVersion is that of Schema. Within a version fields may be added; none is
// renamed, removed or given another meaning.
const SchemaVersion = 1

// Schema describes all JSON that the command writes.
//
//go:embed schema.json
var Schema []byte
