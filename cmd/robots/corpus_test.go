package main

import (
	"bytes"
	"encoding/json"
	"hash/crc32"
	"slices"
	"testing"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/integration_test/vectors"
)

// Real files, byte for byte, with URLs as they come: what Google's own library said
// about them, verdict and line, comes out of the command. An eighth of the questions, or with
// -million all 10,537.
func TestMatchAgreesWithGoogleOnRealFiles(t *testing.T) {
	files := vectors.Corpus(t)
	queries := vectors.Queries(t)
	var in bytes.Buffer
	lines := json.NewEncoder(&in)
	if !*million {
		queries = slices.DeleteFunc(queries, func(q vectors.Query) bool { return crc32.ChecksumIEEE([]byte(q.ID))%8 != 0 })
	}
	for _, q := range queries {
		lines.Encode(map[string]any{
			"id": q.ID, "profile": "google", "robots_b64": files[q.File], "agents": q.Agents, "url": q.URL,
		})
	}
	got, _ := matchJSONL(t, &in)
	if len(got) != len(queries) {
		t.Fatalf("%d verdicts, want %d", len(got), len(queries))
	}
	for i, q := range queries {
		allowed, line := got[i].Allowed, got[i].Line
		if answer.TargetOf(q.URL) == "/robots.txt" && allowed && line == 0 {
			continue // implicitly allowed (RFC 9309 §2.2.2), which that library leaves to its caller
		}
		if allowed != q.Allowed || line != q.Line {
			t.Errorf("%s: %q: got allowed %v by line %d, want %v by line %d", q.ID, q.URL, allowed, line, q.Allowed, q.Line)
		}
	}
}
