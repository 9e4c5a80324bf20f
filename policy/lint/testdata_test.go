package lint_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/integration_test/vectors"
	"github.com/robotsgate/robotsgate/policy/lint"
)

// ruleCase is a case of testdata/rules. Each file there is about one rule: "rule: RT004", "name: multiple-paths", then
// the cases, each after a blank line. A case has "key: value" lines and then its robots.txt, which may be empty.
//
//	case:       bad, if the rule must report it, or good, if it must not
//	line:       of the first finding, for a bad file
//	suggestion: what the first finding writes instead of the line; a key for each of its lines. "none"
//	            means that there is no such text; without a key it is not compared
//
// A case with a status is an answer (lint.Answer) instead of a file. It may also have url,
// redirect (in order), content-type, retry-after, misnamed (a line of /robot.txt), and "truncated: yes".
//
// The robots.txt consists of these lines, end to end:
//
//	| text      text and LF
//	"text"      text as a Go string, without LF
//	20 x "text" the same repeated
type ruleCase struct {
	rule       string
	bad        bool
	line       int // -1: not compared
	suggestion string
	isAnswer   bool
	answer     lint.Answer // of a file, Body alone
}

func (c ruleCase) findings() []lint.Finding {
	if c.isAnswer {
		return only(c.answer.Findings(), c.rule)
	}
	return only(lint.File(c.answer.Body), c.rule)
}

// parseCases reads a file of testdata/rules. It accepts nothing that it does not know.
func parseCases(text string) (rule lint.Rule, cases []ruleCase, err error) {
	head, rest, _ := strings.Cut(strings.TrimSuffix(text, "\n"), "\n\n")
	if n, _ := fmt.Sscanf(head, "rule: %s\nname: %s", &rule.ID, &rule.Name); n != 2 || head != "rule: "+rule.ID+"\nname: "+rule.Name {
		return rule, nil, fmt.Errorf("header %q is not a rule and its name", head)
	}
	for block := range strings.SplitSeq(rest, "\n\n") {
		c := ruleCase{rule: rule.ID, line: -1}
		seen := map[string]bool{}
		for line := range strings.SplitSeq(block, "\n") {
			if err := c.read(line, seen); err != nil {
				return rule, nil, fmt.Errorf("%q: %w", line, err)
			}
		}
		if !seen["case"] || c.isAnswer && seen["line"] || !c.isAnswer && c.bad != seen["line"] || !c.bad && seen["suggestion"] {
			return rule, nil, fmt.Errorf("%q: keys are missing, or do not go together", block)
		}
		c.suggestion = strings.TrimPrefix(c.suggestion, "\n")
		cases = append(cases, c)
	}
	return rule, cases, nil
}

// read adds a line of the case. The keys seen so far are in seen.
func (c *ruleCase) read(line string, seen map[string]bool) (err error) {
	key, value, isKey := strings.Cut(line, ": ")
	if i := strings.IndexByte(line, '"'); line == "|" || strings.HasPrefix(line, "| ") {
		c.answer.Body = append(c.answer.Body, strings.TrimPrefix(line[1:], " ")+"\n"...)
		return nil
	} else if i == 0 || i > 0 && strings.HasSuffix(line[:i], " x ") {
		n := 1
		if i > 0 {
			if n, err = strconv.Atoi(line[:i-len(" x ")]); err != nil {
				return err
			}
		}
		piece, err := strconv.Unquote(line[i:])
		c.answer.Body = append(c.answer.Body, strings.Repeat(piece, n)...)
		return err
	}
	if !isKey || len(c.answer.Body) > 0 || seen[key] && key != "suggestion" && key != "redirect" {
		return fmt.Errorf("out of place")
	}
	seen[key] = true
	switch key {
	case "case":
		if c.bad = value == "bad"; !c.bad && value != "good" {
			err = fmt.Errorf("neither bad nor good")
		}
	case "line":
		c.line, err = strconv.Atoi(value)
	case "suggestion":
		c.suggestion += "\n" + value
	case "status":
		c.isAnswer = true
		c.answer.StatusCode, err = strconv.Atoi(value)
	case "misnamed":
		c.answer.Misnamed = []byte(value + "\n")
	case "truncated":
		if c.answer.Truncated = value == "yes"; !c.answer.Truncated {
			err = fmt.Errorf("not yes")
		}
	case "url":
		c.answer.URL = value
	case "redirect":
		c.answer.Redirects = append(c.answer.Redirects, value)
	case "content-type":
		c.answer.ContentType = value
	case "retry-after":
		c.answer.RetryAfter = value
	default:
		err = fmt.Errorf("unknown key")
	}
	return err
}

// ruleCases returns the cases of testdata/rules, by rule.
func ruleCases(tb testing.TB) map[string][]ruleCase {
	names, err := filepath.Glob("testdata/rules/*.txt")
	if err != nil || len(names) == 0 {
		tb.Fatal("no cases", err)
	}
	all := map[string][]ruleCase{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			tb.Fatal(err)
		}
		rule, cases, err := parseCases(string(text))
		if err != nil {
			tb.Fatalf("%s: %v", name, err)
		}
		known := slices.ContainsFunc(lint.Rules(), func(r lint.Rule) bool { return r.ID == rule.ID && r.Name == rule.Name })
		if !known || filepath.Base(name) != rule.ID+".txt" {
			tb.Errorf("%s: there is no rule %s with the name %s, or it belongs in another file", name, rule.ID, rule.Name)
		}
		all[rule.ID] = cases
	}
	return all
}

func TestEachRuleReportsItsBadCasesAndNoGoodOne(t *testing.T) {
	for rule, cases := range ruleCases(t) {
		bad := 0
		for _, c := range cases {
			found := c.findings()
			switch {
			case !c.bad && len(found) > 0:
				t.Errorf("%s: got %q in %s, want no finding", rule, found[0].Message, c)
			case !c.bad:
				continue
			case len(found) == 0:
				t.Errorf("%s: no finding in %s", rule, c)
			case c.line >= 0 && found[0].Line != c.line:
				t.Errorf("%s: got line %d, want %d in %s", rule, found[0].Line, c.line, c)
			case c.suggestion == "none" && found[0].Replacement != "",
				c.suggestion != "" && c.suggestion != "none" && cmp.Or(found[0].Replacement, found[0].Example) != c.suggestion:
				t.Errorf("%s: got %q instead of the line, want %q for %s", rule, found[0].Replacement, c.suggestion, c)
			}
			bad++
		}
		if bad == 0 || bad == len(cases) {
			t.Errorf("%s: %d of %d cases are bad: want a bad and a good one", rule, bad, len(cases))
		}
	}
}

// String is short: a body may have 500 KiB.
func (c ruleCase) String() string {
	a := c.answer
	return fmt.Sprintf("%q (status %d, URL %q, redirects %q)", short(string(a.Body)), a.StatusCode, a.URL, a.Redirects)
}

func TestRuleCaseReaderIsStrict(t *testing.T) {
	const good = "rule: RT004\nname: n\n\ncase: bad\nline: 2\nsuggestion: a\nsuggestion: b\n| x\n3 x \"y\"\n\"z\"\n\ncase: good\nstatus: 200\n|\n"
	cases := vectors.CheckStrict(t, func(text string) ([]ruleCase, error) { _, cases, err := parseCases(text); return cases, err }, good, [][2]string{
		{"rule: ", "rul: "}, {"name: n\n", ""}, {"case: bad\n", ""}, {"bad", "worse"}, {"line: 2", "line: two"}, {"line: 2\n", ""},
		{"suggestion: a", "suggest: a"}, {"| x", "x"}, {"3 x", "three x"}, {"\"y\"", "\"y"}, {"| x\n", "| x\nline: 3\n"},
		{"line: 2\n", "line: 2\nline: 2\n"}, {"status: 200", "status: 200\nline: 1"}, {"status: 200", "truncated: no"}, {"status: 200", "suggestion: c"},
	}...)
	if len(cases) != 2 || cases[0].suggestion != "a\nb" || string(cases[0].answer.Body) != "x\nyyyz" || string(cases[1].answer.Body) != "\n" {
		t.Errorf("got %v", cases)
	}
}
