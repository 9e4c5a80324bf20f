package answer

import "testing"

func TestVisibleEscapesWhatATerminalWouldObey(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{"/a b?c=d&e", "/a b?c=d&e"},
		{"/straße/日本", "/straße/日本"},
		{`\n "quoted"`, `\n "quoted"`},
		{"\\\"\x1b\\n", `\"\x1b\n`},
		{"\x1b[31m", `\x1b[31m`},
		{"a\nb\tc\x00", `a\nb\tc\x00`},
		{"\u202eevil", `\u202eevil`},
		{"\xff\xc3", `\xff\xc3`},
		{"a\x9bb", `a\x9bb`},
		{"\u009b", `\u009b`},
		{"é\xe9é", `é\xe9é`},
		{"\ufffd", "\ufffd"},
	} {
		if got := Visible(c.in); got != c.want {
			t.Errorf("visible(%q) = %q, want %q", c.in, got, c.want)
		}
	}
}
