// Package shell is what the subcommands have in common at a prompt: streams, exit statuses, how wrong usage is told,
// answers in the order of their lines, and the line that shows how far they are.
package shell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
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

// Failure marks an error that came up while a subcommand was running. What is none comes from the
// command-line library, or is a UsageError: run in main.go takes both for wrong usage.
type Failure struct{ error }

func (f Failure) Unwrap() error { return f.error }

func Failed(err error) error { return Failure{err} }

// Runs adapts the body of a subcommand: its errors become failures, except those about how it was called.
func Runs(body func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := noEmpty(cmd.Flags()); err != nil {
			return err
		}
		err := body(cmd.Context(), args)
		if _, usage := errors.AsType[UsageError](err); err == nil || usage {
			return err
		}
		return Failed(err)
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
// that the error names the flag. Its Type is none that FlagError knows, which then shows the error of Read.
type Value struct {
	Text func() string
	Read func(string) error
}

func (v Value) String() string        { return v.Text() }
func (v Value) Set(text string) error { return v.Read(text) }
func (v Value) Type() string          { return "value" }

// AtLeastOne checks that there are arguments, which what names. So does One for a single one.
func AtLeastOne(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return Usagef("give a %s", what)
		}
		return nil
	}
}

func One(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return Usagef("give one %s, not %d", what, len(args))
		}
		return nil
	}
}

func None(remedy string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) > 0 {
			return Usagef("%q is not expected here: %s", args[0], remedy)
		}
		return nil
	}
}

// UnknownCommand is the error for a subcommand that does not exist.
func UnknownCommand(root *cobra.Command, name string) error {
	return Usagef("unknown command %q%s", name, DidYouMean("", root.SuggestionsFor(name)))
}

// FlagError says in plain words what pflag has found wrong. Its own texts quote Go's (strconv.ParseInt), and
// do not say what would be right.
func FlagError(cmd *cobra.Command, err error) error {
	switch e := err.(type) {
	case *pflag.NotExistError:
		var flags []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { flags = append(flags, f.Name) })
		return Usagef("%s%s", e.Error(), DidYouMean("--", Similar(flags, e.GetSpecifiedName())))
	case *pflag.ValueRequiredError:
		return Usagef("--%s needs a value", e.GetFlag().Name)
	case *pflag.InvalidValueError:
		name, value := e.GetFlag().Name, e.GetValue()
		formats := map[string]string{"duration": "--%s %q is no time such as 30s or 2m", "int": "--%s %q is no whole number",
			"bool": "--%s is true or false, not %q"}
		if format := formats[e.GetFlag().Value.Type()]; format != "" {
			return Usagef(format, name, value)
		}
		if _, is := errors.AsType[*fs.PathError](err); is {
			return Failed(fmt.Errorf("--%s: %w", name, e.Unwrap())) // as of a file that is an argument
		}
		return Usagef("--%s: %w", name, e.Unwrap())
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
