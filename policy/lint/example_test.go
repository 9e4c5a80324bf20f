package lint_test

import (
	"fmt"
	"os"

	"github.com/robotsgate/robotsgate/policy/lint"
)

func ExampleFile() {
	const text = `User-agent: *
Disalow: /search
Disallow: /css/ /cgi-bin/

User-agent: ExampleBot/1.0
Disallow: private
`
	for _, f := range lint.File([]byte(text)) {
		if f.Severity >= lint.SeverityWarning {
			fmt.Printf("%d:%d %s %s\n", f.Line, f.Column, f.ID, f.Message)
		}
	}
	// Output:
	// 2:1 RT102 "Disalow" is a misspelling of Disallow that only Google reads
	// 3:16 RT004 "/css/ /cgi-bin/" holds a blank, so it is one path that hardly any URL begins with
	// 5:13 RT210 the group for "ExampleBot/1.0" leaves open 1 of 1 path that * closes, such as "/search"
	// 5:23 RT206 "ExampleBot/1.0" is more than the product token "ExampleBot"
	// 6:11 RT013 "private" begins with neither / nor *, so it matches nothing; write "/private/" if only the directory is meant
}

// An answer is judged from plain data, however it was fetched.
func ExampleAnswer_Findings() {
	a := lint.Answer{
		URL:         "https://example.com/robots.txt",
		StatusCode:  200,
		ContentType: "text/html; charset=utf-8",
		Redirects:   []string{"https://example.com/error.html"},
		Body:        []byte("<!DOCTYPE html><title>Oops</title>"),
	}
	for _, f := range a.Findings() {
		fmt.Println(f.ID, f.Message)
	}
	// Output:
	// RT008 the file begins with markup, "<!DOCTYPE html><title>Oops</title>", and is a page: crawlers look for plain records
}

func ExampleWriteText() {
	const text = "User-agent: *\nDisallow: /a /b\n"
	lint.WriteText(os.Stdout, lint.Style{},
		lint.Report{Name: "robots.txt", Findings: lint.File([]byte(text)), Text: []byte(text)})
	// Output:
	// robots.txt:2:13: error: "/a /b" holds a blank, so it is one path that hardly any URL begins with [RT004 multiple-paths] (all)
	//     2 | Disallow: /a /b
	//       |             ^
	//       ? Disallow: /a
	//       ? Disallow: /b
	//   fix: write one path per line, and a blank inside a path as %20
	// 1 error
}
