package shell

// This file is how a subcommand says that it was called wrongly: errors with exit status 64, the checks of
// the number of arguments, and the errors of flags in words of our own.

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Usagef is fmt.Errorf for a UsageError. The text names the flag or argument, and what to write instead.
func Usagef(format string, args ...any) error {
	return UsageError{fmt.Errorf(format, args...)}
}

// URLHelp is the rule of splitURL in package answer, in the words of --help, where paths are not taken.
const URLHelp = `A URL begins with http:// or https://. Without a scheme, // or text that begins with
a site such as example.com means https.`

// Value is a pflag.Value that functions write and read: for flags that have to be looked at when they are
// given, so that the error names the flag. Its Type is none that FlagError knows, which then shows the error
// of Read.
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

// One is AtLeastOne for exactly one argument.
func One(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return Usagef("give one %s, not %d", what, len(args))
		}
		return nil
	}
}

// None refuses arguments; remedy says where they belong.
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
		switch e.GetFlag().Value.Type() {
		case "duration":
			return Usagef("--%s %q is no time such as 30s or 2m", name, value)
		case "int":
			return Usagef("--%s %q is no whole number", name, value)
		case "bool":
			return Usagef("--%s is true or false, not %q", name, value)
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
