package answer

// JSON in and out. What is read means the same to every reader: a name has one spelling, and is
// there once. encoding/json would take any case, and the last one.

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	strict "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

type FieldError struct{ Name, Problem string }

func (e *FieldError) Error() string { return fmt.Sprintf("the field %q: %s", e.Name, e.Problem) }

var Lenient = jsontext.AllowInvalidUTF8(true)

// ReadObject decodes an object into a struct. Of what is refused, some fields may be read. Its error is in the words of
// the command, without the names of Go's types.
func ReadObject(data []byte, into any, options ...strict.Options) error {
	err := strict.Unmarshal(data, into, options...)
	if own, ok := errors.AsType[*FieldError](err); ok {
		return own
	}
	if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		if name := nameOf(e.JSONPointer); name != "" {
			return &FieldError{name, e.Err.Error()}
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
		return fmt.Errorf("a JSON %s is no question: write an object", kindName(e.JSONKind))
	}
	return &FieldError{nameOf(e.JSONPointer), Unfit(e.JSONKind)}
}

func Unfit(kind jsontext.Kind) string {
	return fmt.Sprintf("a JSON %s does not fit here", kindName(kind))
}

// nameOf is the field of the outermost object in which something is.
func nameOf(at jsontext.Pointer) string {
	for name := range at.Tokens() {
		return Brief(name)
	}
	return ""
}

func kindName(kind jsontext.Kind) string {
	switch kind {
	case '{':
		return "object"
	case '[':
		return "array"
	}
	return kind.String()
}

// written is a Verdict in JSON: null in place of zeros.
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

func (v *Verdict) WriteJSON(to *bytes.Buffer) { WriteJSON(to, v.written()) }

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

func AppendAny(b []byte, v any) []byte {
	var text bytes.Buffer
	WriteJSON(&text, v)
	return append(b, bytes.TrimSuffix(text.Bytes(), []byte("\n"))...)
}

// WriteJSON writes a line. It leaves & and < as they are: patterns and URLs are full of them, and they are no danger
// here.
func WriteJSON(to *bytes.Buffer, v any) {
	e := json.NewEncoder(to)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		// Only values of our own types come here, and all of them can be encoded.
		panic(fmt.Sprintf("robots: %T as JSON: %v", v, err))
	}
}

// Schema describes all JSON that the command writes. Its $id ends with its version, within which fields may be added;
// none is renamed, removed or given another meaning.
//
//go:embed schema.json
var Schema []byte

// Question is one line of "robots match --jsonl": a question about a robots.txt that it carries. The fields
// are those of the robots.txt vectors; others are ignored. POST /v1/match of serve has some of them in its
// body. A pointer is nil if the field is not there: an empty robots.txt is one.
type Question struct {
	ID        json.RawMessage `json:"id"` // given back unchanged
	Profile   string          `json:"profile"`
	Dialect   string          `json:"dialect"` // as the command writes it: the same
	Robots    *string         `json:"robots"`
	RobotsB64 *string         `json:"robots_b64"`
	RobotsGen []repeated      `json:"robots_gen"` // a large file, in pieces
	Agents    []string        `json:"agents"`
	Agent     *string         `json:"agent"` // as the command takes and writes it
	URL       *string         `json:"url"`
	URLB64    *string         `json:"url_b64"`
}

// Read reads a line into r. Of a line that is malformed, some fields may be read.
func (r *Question) Read(line string) error { return ReadObject([]byte(line), r) }

// repeated is a piece of a file: Text, Repeat times.
type repeated struct {
	Text   string `json:"text"`
	Repeat int    `json:"repeat"`
}

// maxGenerated bounds a file that is given in pieces, at more than any crawler reads.
const maxGenerated = 16 << 20

// File returns the text of the record's robots.txt.
func (r *Question) File() ([]byte, error) {
	if r.RobotsGen == nil {
		text, err := inOneForm("robots", r.Robots, r.RobotsB64)
		return []byte(text), err
	}
	if r.Robots != nil || r.RobotsB64 != nil {
		return nil, errors.New("robots_gen and another form of the file are there: give one")
	}
	var file []byte
	for _, p := range r.RobotsGen {
		if p.Repeat < 0 || len(p.Text) > 0 && p.Repeat > (maxGenerated-len(file))/len(p.Text) {
			return nil, fmt.Errorf("robots_gen: %d times %d bytes: give %d bytes in all at most", p.Repeat, len(p.Text), maxGenerated)
		}
		file = append(file, strings.Repeat(p.Text, p.Repeat)...)
	}
	return file, nil
}

// AsWritten is the record's URL as written; "" if there is none.
func (r *Question) AsWritten() (string, error) { return inOneForm("url", r.URL, r.URLB64) }

// inOneForm is a field that is there as text or in base64. Of both, another reader might take the other one.
func inOneForm(name string, text, b64 *string) (string, error) {
	switch {
	case text != nil && b64 != nil:
		return *text, fmt.Errorf("%s and %[1]s_b64 are there: give one", name)
	case text != nil:
		return *text, nil
	case b64 == nil:
		return "", fmt.Errorf("neither %s nor %[1]s_b64 is there: give one", name)
	}
	data, err := base64.StdEncoding.DecodeString(*b64)
	if err != nil {
		err = fmt.Errorf("%s_b64: %w", name, err)
	}
	return string(data), err
}

// Asker is who asks in the record, with usual for what it leaves out. A record says all of its question by itself, so there
// is no usual agent. Of several agents, the groups of all count as one: combined is true.
func (r *Question) Asker(usual Asker) (k Asker, combined bool, err error) {
	k = usual
	if r.Profile != "" && r.Dialect != "" {
		return k, false, errors.New("profile and dialect are there: give one")
	}
	if name := cmp.Or(r.Profile, r.Dialect); name != "" {
		if _, err := DialectByName(name); err != nil {
			return k, false, fmt.Errorf("profile: %w", err)
		}
		k.SetDialect(name)
	}
	switch {
	case len(r.Agents) > 0 && r.Agent != nil:
		return k, false, errors.New("agents and agent are there: give one")
	case len(r.Agents) > 0:
		k.SetTokens(r.Agents)
		k.also = nil // the vectors know no fallbacks
	case r.Agent == nil:
		return k, false, errors.New("agents is empty: give the crawler's product token")
	default:
		err = k.SetAgent(*r.Agent)
	}
	return k, len(r.Agents) > 1, err
}
