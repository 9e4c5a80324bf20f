package shell

// The texts of --help, at 80 columns: a terminal breaks what is longer anywhere.

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const (
	helpWidth = 80
	flagWidth = 26 // of the left column; what is longer has a line of its own
)

// SetHelp has root and the commands below it show Fill of their texts, and flags by flagUsages.
func SetHelp(root *cobra.Command) {
	cobra.AddTemplateFunc("fill", Fill)
	cobra.AddTemplateFunc("flags", flagUsages)
	root.SetHelpTemplate("{{with (or .Long .Short)}}{{fill .}}\n\n{{end}}{{if or .Runnable .HasSubCommands}}{{.UsageString}}{{end}}")
	usage := root.UsageTemplate()
	for _, of := range []string{"LocalFlags", "InheritedFlags"} {
		usage = strings.ReplaceAll(usage, "{{."+of+".FlagUsages | trimTrailingWhitespaces}}", "{{flags ."+of+"}}")
	}
	root.SetUsageTemplate(usage)
}

// Fill breaks the paragraphs of a text anew. Lines that begin with a space are a table, and stay as they are.
func Fill(text string) string {
	var out []string
	var words []string
	flush := func() {
		if words != nil {
			out, words = append(out, fold(words, helpWidth)...), nil
		}
	}
	for line := range strings.SplitSeq(text, "\n") {
		if line == "" || line[0] == ' ' {
			flush()
			out = append(out, line)
		} else {
			words = append(words, strings.Fields(line)...)
		}
	}
	flush()
	return strings.Join(out, "\n")
}

// fold sets words in lines of some width.
func fold(words []string, width int) (lines []string) {
	line := ""
	for _, w := range words {
		switch {
		case line == "":
			line = w
		case len([]rune(line))+1+len([]rune(w)) > width:
			lines, line = append(lines, line), w
		default:
			line += " " + w
		}
	}
	return append(lines, line)
}

// flagUsages lists flags with what they are for. The library would show its own "[=true|false]" with each switch.
func flagUsages(flags *pflag.FlagSet) string {
	var out []string
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, text := pflag.UnquoteUsage(f)
		left := "      --" + f.Name
		if f.Shorthand != "" {
			left = "  -" + f.Shorthand + ", --" + f.Name
		}
		if value != "" && f.Value.Type() != "bool" {
			left += " " + value
		}
		if d := f.DefValue; !slices.Contains([]string{"", "false", "[]"}, d) {
			text += fmt.Sprintf(" (default %s)", strings.Trim(d, "[]"))
		}
		lines := fold(strings.Fields(text), helpWidth-flagWidth-2)
		if len(left) > flagWidth {
			out = append(out, left)
			left = ""
		}
		for _, line := range lines {
			out = append(out, fmt.Sprintf("%-*s  %s", flagWidth, left, line))
			left = ""
		}
	})
	return strings.Join(out, "\n")
}

// Choice is a flag whose value is one of names, which the error lists.
func Choice(value *string, names ...string) Value {
	return Value{Text: func() string { return *value }, Read: func(text string) error {
		if err := OneOf(text, names); err != nil {
			return err
		}
		*value = text
		return nil
	}}
}

// OneOf is the error of a value that is none of names.
func OneOf(value string, names []string) error {
	if slices.Contains(names, value) {
		return nil
	}
	return fmt.Errorf("%.60q is not one of %s%s", value, strings.Join(names, ", "), DidYouMean("", Similar(names, value)))
}
