// Package lint finds the mistakes in a robots.txt file (RFC 9309) before crawlers
// do.
//
// [File] judges the text alone. [Answer.Findings] also judges how the file was served: its
// name, status code, redirects and content type. [Name] judges the name of a file on disk.
// [Lines] shows a file as a dialect reads it. The package uses no network and never fails: a
// file that cannot be read as robots.txt is itself a finding.
//
// Lines are read as lenient crawlers read them, with Google's misspellings and without a colon,
// because that is what the author meant. The finding names the engines that read the line
// differently. Every rule has an identifier that never changes, RT001 to RT510. [Rules] lists them
// all, including those that need more than a file.
//
// A replacement is offered where it changes nothing: the file says the same to all crawlers, in each dialect of
// package policy. Everything else is a message, since only the author knows what was meant. [Fix] applies replacements.
//
// A mistake is reported once, by the rule that says most about it. Matters of style are mentioned
// once for each file. If a line is meant as it is written, a comment silences its findings:
//
//	# robots-lint: ignore-file RT403
//
//	User-agent: *
//	# robots-lint: ignore RT314 the shop's pages, too
//	Disallow: /shop
//	Disallow: /*.php$ # robots-lint: ignore RT007
//
// The first form is for the whole file. The second is for the next record if the comment
// stands alone, and for its own line if not. Identifiers are separated by commas or blanks;
// what follows them is the reason.
//
// The work is linear in the size of the file, except for sorting. What replacements do is worked
// out within a fixed budget, so a large file may get fewer of them. The result is bounded: at most
// [MaxPerRule] findings for each rule, at most 80 bytes of the file in a quotation.
package lint

import (
	"github.com/robotsgate/robotsgate/policy/lint/internal/checks"
	"github.com/robotsgate/robotsgate/policy/lint/internal/model"
)

// File returns the mistakes in the text of a robots.txt file, sorted by line, column and
// rule. It does not retain data. Do not pass it the body of an answer without rules, such as
// a 404: an empty file is a finding.
func File(data []byte) []Finding { return findings(checks.Check(model.Read(data), nil)) }
