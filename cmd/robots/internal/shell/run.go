// Package shell is what the subcommands have in common at a prompt: streams, exit statuses, errors of usage,
// answers in the order of their lines, and the line that shows how far they are.
package shell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
)

// Exit statuses. Of several, the worst counts: an unknown outcome hides more than a refusal does.
const (
	ExitOK          = 0
	ExitRefused     = 1
	ExitUnknown     = 2
	ExitUsage       = 64  // EX_USAGE of sysexits.h
	ExitInterrupted = 130 // 128 + SIGINT, as shells report it
)

// Streams are where a command reads and writes; tests give their own.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// App is one run of the command. Every subcommand embeds it. Its methods are for one goroutine: what answers
// in parallel collects an Output for each piece of work, and Emit is called with one after the other. Status
// is what the process exits with: Worsen raises it, and only the end of run in main.go sets it.
type App struct {
	Streams
	JSON   bool
	Color  string // what --color says
	Status int
}

func (a *App) Worsen(status int) { a.Status = max(a.Status, status) }

// Runs adapts the body of a subcommand.
func Runs(body func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := noEmpty(cmd.Flags()); err != nil {
			return err
		}
		return body(cmd.Context(), args)
	}
}

// UsageError is a mistake in how the command was called: exit status 64 and a hint at --help. Every other
// error of a subcommand is something it could not find out. Usagef makes one.
type UsageError struct{ error }

// Usagef is fmt.Errorf for a UsageError. The text names the flag or argument, and what to write instead.
func Usagef(format string, args ...any) error {
	return UsageError{fmt.Errorf(format, args...)}
}

// URLHelp is the rule of splitURL in package answer, in the words of --help, where paths are not taken.
const URLHelp = `A URL begins with http:// or https://. Without a scheme, // or text that begins
with a site such as example.com means https.`

// Value is a pflag.Value that functions write and read: for flags that have to be looked at when they are given, so
// that the error names the flag.
type Value struct {
	Text func() string
	Read func(string) error
}

func (v Value) String() string        { return v.Text() }
func (v Value) Set(text string) error { return v.Read(text) }
func (v Value) Type() string          { return "value" }

// Many is for Args: as many as there are.
const Many = math.MaxInt

// Args checks how many arguments there are; what says which they should be.
func Args(least, most int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if n := len(args); n < least || n > most {
			return Usagef("%s: give %s", answer.Plural(n, "argument"), what)
		}
		return nil
	}
}

// NeedsCommand is the error of a command that only holds others, and was called without one that exists.
func NeedsCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return Usagef("a subcommand is missing")
	}
	return Usagef("unknown command %q%s", args[0], DidYouMean("", cmd.SuggestionsFor(args[0])))
}

// FlagError is err, which pflag has found, with the name of a flag that was perhaps meant, or of a subcommand that has the
// flag, and without a value that may be a secret.
func FlagError(cmd *cobra.Command, err error) error {
	switch e := err.(type) {
	case *pflag.NotExistError:
		var flags []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { flags = append(flags, f.Name) })
		hint := DidYouMean("--", Similar(flags, e.GetSpecifiedName()))
		for _, c := range cmd.Root().Commands() {
			if hint == "" && c.Flags().Lookup(e.GetSpecifiedName()) != nil {
				hint = ": " + c.CommandPath() + " has it"
			}
		}
		return Usagef("%s%s", e.Error(), hint)
	case *pflag.InvalidValueError:
		err = fmt.Errorf("--%s: %w", e.GetFlag().Name, e.Unwrap())
		if slices.Contains([]string{"bool", "duration", "int"}, e.GetFlag().Value.Type()) {
			err = fmt.Errorf("--%s: %.60q %w", e.GetFlag().Name, e.GetValue(), e.Unwrap())
		}
		if _, is := errors.AsType[*fs.PathError](err); is && e.GetValue() == "" {
			return Usagef("--%s needs a value", e.GetFlag().Name)
		} else if is {
			return err // as of a file that is an argument
		}
	}
	return UsageError{err}
}

// noEmpty refuses a flag that was given with nothing, as "$UNSET" is. It would count as not given: requests
// would go out unsigned, and a service would ask for no token.
func noEmpty(flags *pflag.FlagSet) (err error) {
	flags.Visit(func(f *pflag.Flag) {
		if text := f.Value.String(); (f.Value.Type() == "string" || f.Value.Type() == "value") && text == "" || f.Value.Type() == "stringSlice" && text == "[]" {
			err = Usagef("--%s needs a value", f.Name)
		}
	})
	return err
}

// Similar returns those of names that are near to name. cobra compares the names of subcommands only, so
// these are made into such.
func Similar(names []string, name string) []string {
	if name == "" {
		return nil // cobra suggests what begins with it, which is each
	}
	all := cobra.Command{SuggestionsMinimumDistance: 2}
	for _, n := range names {
		all.AddCommand(&cobra.Command{Use: n, Run: func(*cobra.Command, []string) {}})
	}
	return all.SuggestionsFor(name)
}

// DidYouMean is the end of an error that suggests names, each behind prefix. It is empty without names.
func DidYouMean(prefix string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	return ": did you mean " + prefix + strings.Join(names, " or "+prefix) + "?"
}

const helpWidth = 80

// SetHelp has root and the commands below it break what they say of flags.
func SetHelp(root *cobra.Command) {
	cobra.AddTemplateFunc("flags", flagUsages)
	usage := root.UsageTemplate()
	for _, of := range []string{"LocalFlags", "InheritedFlags"} {
		usage = strings.ReplaceAll(usage, "{{."+of+".FlagUsages | trimTrailingWhitespaces}}", "{{flags ."+of+"}}")
	}
	root.SetUsageTemplate(usage)
}

// flagUsages is the library's list, without its "[=true|false]" behind each switch.
func flagUsages(flags *pflag.FlagSet) string {
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Value.Type() == "bool" {
			f.Value = onOff{f.Value}
		}
	})
	return strings.TrimRight(flags.FlagUsagesWrapped(helpWidth), "\n")
}

type onOff struct{ pflag.Value }

func (onOff) Type() string { return "boolfunc" }

// ChoiceVar adds a flag whose value is one of names, which completion and its error list. The first is the usual one,
// unless value has another.
func ChoiceVar(cmd *cobra.Command, value *string, flag, usage string, names ...string) {
	*value = cmp.Or(*value, names[0])
	read := func(text string) error {
		if err := OneOf(text, names); err != nil {
			return err
		}
		*value = text
		return nil
	}
	cmd.Flags().Var(Value{Text: func() string { return *value }, Read: read}, flag, usage)
	cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
}

func OneOf(value string, names []string) error {
	if slices.Contains(names, value) {
		return nil
	}
	return fmt.Errorf("%.60q is not one of %s%s", value, strings.Join(names, ", "), DidYouMean("", Similar(names, value)))
}
