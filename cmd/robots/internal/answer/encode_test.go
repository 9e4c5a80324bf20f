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
		r := new(Record)
		fill(random, reflect.ValueOf(r).Elem())
		var want bytes.Buffer
		e := json.NewEncoder(&want)
		e.SetEscapeHTML(false)
		if err := e.Encode(r); err != nil {
			t.Fatal(err)
		}
		if got := append(r.AppendJSON(nil), '\n'); !bytes.Equal(got, want.Bytes()) {
			t.Fatalf("got\n%s\nwant\n%s", got, want.Bytes())
		}
	}
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
			fill(random, v.Field(i))
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
