package answer

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// Question is one line of "robots match --jsonl": a question about a robots.txt that it carries. The fields
// are those of the robots.txt vectors; others are ignored. POST /v1/match of serve has some of them in its
// body. A pointer is nil if the field is not there: an empty robots.txt is one.
type Question struct {
	ID        json.RawMessage `json:"id"` // given back unchanged
	Profile   string          `json:"profile"`
	Dialect   string          `json:"dialect"` // as the command writes it: the same
	Robots    *string         `json:"robots"`
	RobotsB64 *string         `json:"robots_b64"`
	RobotsGen []repeated      `json:"robots_gen"`
	Agents    []string        `json:"agents"`
	Agent     *string         `json:"agent"` // as the command takes and writes it
	URL       *string         `json:"url"`
	URLB64    *string         `json:"url_b64"`
}

// Read reads a line into r. Of a line that is malformed, some fields may be read.
func (r *Question) Read(line string) error { return ReadObject([]byte(line), r) }

// repeated is a piece of a generated robots.txt: Text, Repeat times.
type repeated struct {
	Text   string
	Repeat int
}

// UnmarshalJSON reads the names as they are spelt. A piece is there once if nothing else is said. One without a text
// is no empty piece: its text may be misspelt.
func (r *repeated) UnmarshalJSON(data []byte) error {
	piece := struct {
		Text   *string `json:"text"`
		Repeat int     `json:"repeat"`
	}{Repeat: 1}
	err := ReadObject(data, &piece)
	if err == nil && piece.Text == nil {
		err = errors.New("robots_gen: a piece has no text: give it")
	}
	if err == nil {
		r.Text, r.Repeat = *piece.Text, piece.Repeat
	}
	return err
}

// maxGenerated bounds what robots_gen may ask for; 32 times what any crawler reads.
const maxGenerated = 16 << 20

// File returns the text of the record's robots.txt. Of two forms, another reader might take the other one.
func (r *Question) File() ([]byte, error) {
	switch b64, gen := r.RobotsB64 != nil, r.RobotsGen != nil; {
	case r.Robots != nil && (b64 || gen) || b64 && gen:
		return nil, errors.New("the file is there in two forms: give one")
	case r.Robots != nil:
		return []byte(*r.Robots), nil
	case b64:
		data, err := base64.StdEncoding.DecodeString(*r.RobotsB64)
		if err != nil {
			return nil, fmt.Errorf("robots_b64: %w", err)
		}
		return data, nil
	case gen:
		return generate(r.RobotsGen)
	default:
		return nil, errors.New("none of robots, robots_b64 and robots_gen is there: give one")
	}
}

// generate repeats and joins the pieces. Their total is known before a single byte is
// made, so a line of a hundred bytes cannot ask for all memory there is.
func generate(pieces []repeated) ([]byte, error) {
	total := 0
	for _, p := range pieces {
		if p.Repeat < 0 {
			return nil, fmt.Errorf("robots_gen: repeat is %d; the least is 0", p.Repeat)
		}
		// Compared by division: the product may overflow.
		if len(p.Text) > 0 && p.Repeat > (maxGenerated-total)/len(p.Text) {
			return nil, fmt.Errorf("robots_gen makes more than %d bytes", maxGenerated)
		}
		total += len(p.Text) * p.Repeat
	}
	data := make([]byte, 0, total)
	for _, p := range pieces {
		data = append(data, bytes.Repeat([]byte(p.Text), p.Repeat)...)
	}
	return data, nil
}

// AsWritten is the record's URL as written; "" if there is none.
func (r *Question) AsWritten() (string, error) {
	switch {
	case r.URL != nil && r.URLB64 != nil:
		return *r.URL, errors.New("url and url_b64 are there: give one")
	case r.URL != nil:
		return *r.URL, nil
	case r.URLB64 == nil:
		return "", errors.New("neither url nor url_b64 is there: give one")
	}
	url, err := base64.StdEncoding.DecodeString(*r.URLB64)
	if err != nil {
		err = fmt.Errorf("url_b64: %w", err)
	}
	return string(url), err
}

// SameRobots reports whether two records hold the same text, written the same way; then
// the policy of one serves the other. Generated texts are compared by their recipe.
func (r *Question) SameRobots(other *Question) bool {
	same := func(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }
	return same(r.Robots, other.Robots) && same(r.RobotsB64, other.RobotsB64) && slices.Equal(r.RobotsGen, other.RobotsGen)
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
