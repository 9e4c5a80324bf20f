package sign_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/client/sign"
)

// Structs that hold a Signer in all ways in which package fmt and the encoders can ask it. The
// methods of ambiguous are none of the Signer's.
type (
	byValue   struct{ Signer sign.Signer }
	byPointer struct{ Signer *sign.Signer }
	embedded  struct{ sign.Signer }
	hidden    struct{ signer *sign.Signer }
	Other     struct{ sign.Signer }
	ambiguous struct {
		sign.Signer
		Other
		time.Time
	}
)

// Whatever prints, logs or encodes a Signer gets the KeyID and no byte of the key.
func TestASignerShowsNoKey(t *testing.T) {
	key := newKey(t)
	s := sign.Signer{Key: key, Agent: "https://bot.example"}
	id, err := s.KeyID()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]any{
		"value": s, "pointer": &s, "embedded": embedded{s}, "pointer to embedded": &embedded{s},
		"field": byValue{s}, "pointer field": byPointer{&s}, "pointer to a field": &byValue{s},
		"slice": []sign.Signer{s}, "slice of pointers": []*sign.Signer{&s}, "array": [1]sign.Signer{s},
		"map": map[string]sign.Signer{"a": s}, "deep": map[string][]any{"a": {byValue{s}, &s}},
		"key of a map": map[*sign.Signer]int{&s: 1}, "hidden pointer": hidden{&s}, "ambiguous": ambiguous{Signer: s, Other: Other{s}},
	}
	for name, v := range values {
		for shown, text := range everyForm(v) {
			if name == "hidden pointer" && shown[0] == '%' && !strings.HasSuffix(shown, "v") {
				continue // a verb that fits no pointer: fmt shows what it leads to, and asks nothing
			}
			for _, secret := range formsOf(key[:8]) { // of the seed; the other half is public
				if strings.Contains(strings.ToLower(text), strings.ToLower(secret)) {
					t.Errorf("%s, %s shows the key: %s", name, shown, text)
				}
			}
			direct := name == "value" || name == "pointer"
			if direct && !strings.Contains(text, id) {
				t.Errorf("%s, %s: %q has no key ID", name, shown, text)
			}
		}
	}
	if got, err := json.Marshal(s); err != nil || string(got) != `"`+id+`"` {
		t.Errorf("JSON %s, %v, want the key ID alone", got, err)
	}
}

// everyForm is what v looks like to all who may show it. %p is not asked: it is for pointers,
// vet refuses it for others, and fmt asks no method.
func everyForm(v any) map[string]string {
	forms := map[string]string{}
	for _, verb := range "vtbcdoOqxXUeEfFgGs!" {
		for _, flags := range []string{"", "+", "#", " ", "0", "+#", "40.3"} {
			forms["%"+flags+string(verb)] = fmt.Sprintf("%"+flags+string(verb), v)
		}
	}
	var buf bytes.Buffer
	for name, h := range map[string]slog.Handler{"slog text": slog.NewTextHandler(&buf, nil), "slog JSON": slog.NewJSONHandler(&buf, nil)} {
		buf.Reset()
		slog.New(h).Info("start", "signer", v, slog.Group("in", "a", v))
		forms[name] = buf.String()
	}
	b, _ := json.Marshal(v)
	forms["json"] = string(b)
	b, _ = xml.Marshal(v)
	forms["xml"] = string(b)
	for shown, text := range forms { // maps have no XML, and so on
		if text == "" {
			delete(forms, shown)
		}
	}
	return forms
}

// formsOf are the forms in which bytes can be shown.
func formsOf(b []byte) []string {
	list := strings.Trim(fmt.Sprint(b), "[]")
	return []string{
		string(b), hex.EncodeToString(b), fmt.Sprintf("% x", b), list, strings.ReplaceAll(list, " ", ","), strings.ReplaceAll(list, " ", ", "),
		base64.StdEncoding.EncodeToString(b)[:10], base64.RawURLEncoding.EncodeToString(b)[:10],
		strings.Trim(fmt.Sprintf("%#v", b), "[]byte{}"), strings.Trim(fmt.Sprintf("%o", b), "[]"), strings.Trim(fmt.Sprintf("%b", b), "[]"),
	}
}
