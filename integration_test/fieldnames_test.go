package integration_test

import "testing"

// net/http keeps a field whose name ends in a space under another name than its own. What it
// says of the body, or of where to go on, then counts for nothing.
func TestAFieldNameWithWhiteSpaceGivesNoPermission(t *testing.T) {
	cut := rules[:14] // without its only rule
	for _, row := range []struct {
		name, answer string
		want         verdict
	}{
		{"length", "HTTP/1.1 200 OK\r\nContent-Length : 33\r\n\r\n" + cut, disallowAll},
		{"coding", "HTTP/1.1 200 OK\r\nContent-Encoding : br\r\nContent-Length: 3\r\n\r\n\x0b\x01\x80", disallowAll},
		{"chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding : chunked\r\n\r\n18\r\n" + rules[:24] + "\r\n9\r\n" + rules[24:] + "\r\n0\r\n\r\n", disallowAll},
		{"part", "HTTP/1.1 206 Partial Content\r\nContent-Range : bytes 0-13/33\r\nContent-Length: 14\r\n\r\n" + cut, disallowAll},
		{"tab", "HTTP/1.1 200 OK\r\nContent-Length\t: 33\r\n\r\n" + cut, disallowAll},
		{"within the name", "HTTP/1.1 200 OK\r\nContent Encoding: br\r\nContent-Length: 14\r\n\r\n" + cut, disallowAll},
		{"redirect", "HTTP/1.1 302 Found\r\nLocation: /other.txt\r\nCache-Control : no-store\r\nContent-Length: 0\r\n\r\n", disallowAll},
		{"well named", "HTTP/1.1 200 OK\r\nX-Content: 1\r\nContent-Length: 33\r\n\r\n" + rules, byRules},
		{"404", "HTTP/1.1 404 Not Found\r\nX-Content : 1\r\nContent-Length: 0\r\n\r\n", allowAll},
		{"503", "HTTP/1.1 503 Service Unavailable\r\nX-Content : 1\r\nContent-Length: 0\r\n\r\n", disallowAll},
	} {
		t.Run(row.name, func(t *testing.T) {
			origin, record := serve(t, hijacked(row.answer))
			check(t, gate(nil), origin, row.want)
			if row.want != allowAll && len(record.of("/private")) > 0 {
				t.Error("the forbidden page was asked for")
			}
			if n := len(record.of("/other.txt")); n > 0 {
				t.Error("the redirect was followed")
			}
		})
	}
}
