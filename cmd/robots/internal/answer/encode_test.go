package answer

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"
)

// Records are made at random: each field zero, or of the plainest or the strangest kind.
func TestRecordsAreWrittenAsEncodingJSONWrites(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		v := new(Verdict)
		fill(random, reflect.ValueOf(v).Elem())
		r := recordOf(v)
		var want bytes.Buffer
		e := json.NewEncoder(&want)
		e.SetEscapeHTML(false)
		if err := e.Encode(r); err != nil {
			t.Fatal(err)
		}
		if got := append(v.AppendJSON(nil), '\n'); !bytes.Equal(got, want.Bytes()) {
			t.Fatalf("got\n%s\nwant\n%s", got, want.Bytes())
		}
	}
}

// record is a Verdict with the tags of its JSON.
type record struct {
	Number  int             `json:"number"`
	ID      json.RawMessage `json:"id"`
	URL     string          `json:"url"`
	Agent   *string         `json:"agent"`
	Dialect *string         `json:"dialect"`
	Allowed bool            `json:"allowed"`
	Covers  string          `json:"covers"`
	Reason  string          `json:"reason"`
	Line    *int            `json:"line"`
	Rule    *string         `json:"rule"`
	Group   *string         `json:"group"`
	Use     *disallowedUse  `json:"use"`
	Agreed  *agreement      `json:"agreement"`
	Error   *string         `json:"error"`
	Robots  *Answer         `json:"robots"`
	Lines   []FileLine      `json:"lines"`
	Record  json.RawMessage `json:"record"`
}

type disallowedUse struct {
	Label string `json:"label"`
	By    Object `json:"by"`
}

type agreement struct {
	Reason string    `json:"reason"`
	Until  time.Time `json:"until"`
}

func recordOf(v *Verdict) record {
	r := record{
		Number: v.Number, ID: v.ID, URL: v.URL, Agent: OrNull(v.Agent), Dialect: OrNull(v.Dialect),
		Allowed: v.Allowed, Covers: coversURL, Reason: v.Reason, Line: OrNull(v.Line), Rule: OrNull(v.Rule), Group: OrNull(v.Group),
		Error: OrNull(v.Error), Robots: v.Robots, Lines: v.Lines, Record: v.Record,
	}
	if r.Reason == "" {
		r.Reason = ReasonMalformed
	}
	if v.By != nil {
		r.Use = &disallowedUse{v.Use, Statement(*v.By)}
	}
	if a := v.Agreement; a != nil {
		r.Agreed = &agreement{a.Reason, a.Until}
	}
	return r
}

func fill(random *rand.Rand, v reflect.Value) {
	if random.IntN(4) == 0 {
		return
	}
	texts := []string{"", "plain", `"\`, "<&>", "é\u2028\x00\xff\u007f", "Disallow: /*$"}
	switch v.Interface().(type) {
	case json.RawMessage:
		v.SetBytes([]byte([]string{"null", `{ "a":[1, "<"]}`, `"x"`}[random.IntN(3)]))
		return
	case time.Time:
		v.Set(reflect.ValueOf(time.Unix(random.Int64N(1<<32), random.Int64N(2)*1e6).UTC()))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(random, v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() {
				fill(random, f)
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), random.IntN(3), 3))
		for i := range v.Len() {
			fill(random, v.Index(i))
		}
	case reflect.String:
		v.SetString(texts[random.IntN(len(texts))])
	case reflect.Int, reflect.Int64:
		v.SetInt(random.Int64() - 1<<62)
	case reflect.Bool:
		v.SetBool(true)
	}
}
