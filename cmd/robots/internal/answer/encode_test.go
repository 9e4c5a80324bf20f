package answer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/integration_test/tier"
)

// Records are made at random: each field zero, or of the plainest or the strangest kind.
func TestRecordsAreWrittenAsEncodingJSONWrites(t *testing.T) {
	tier.Gate(t)
	random := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		v := new(Verdict)
		fill(random, reflect.ValueOf(v).Elem())
		if got, want := string(AppendAny(nil, v)), expected(t, reflect.ValueOf(v).Elem()); got != want {
			t.Fatalf("got\n%s\nwant\n%s", got, want)
		}
	}
}

// expected is a struct as encoding/json writes it field by field, but for the zeros that are null.
func expected(t *testing.T, v reflect.Value) string {
	var fields []string
	for i := range v.NumField() {
		var value any
		f := v.Type().Field(i)
		name, omits := strings.CutSuffix(f.Tag.Get("json"), ",omitempty")
		if omits && v.Field(i).IsZero() {
			continue
		}
		if !v.Field(i).IsZero() || f.Tag.Get("zero") != "null" {
			value = v.Field(i).Interface()
		}
		var text bytes.Buffer
		e := json.NewEncoder(&text)
		e.SetEscapeHTML(false)
		if err := e.Encode(value); err != nil {
			t.Fatal(err)
		}
		fields = append(fields, fmt.Sprintf("%q:%s", name, bytes.TrimSpace(text.Bytes())))
	}
	return "{" + strings.Join(fields, ",") + "}"
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
