package shell

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func Usagef(format string, args ...any) error {
	return UsageError{fmt.Errorf(format, args...)}
}

// URLHelp is the rule of splitURL in the words of --help, where paths are not taken.
const URLHelp = `A URL begins with http:// or https://. Without a scheme, // or text that begins with
a site such as example.com means https.`

// Value is the value of a flag that a function reads.
type Value struct {
	Text func() string
	Read func(string) error
}

func (v Value) String() string        { return v.Text() }
func (v Value) Set(text string) error { return v.Read(text) }
func (v Value) Type() string          { return "value" }

// AtLeastOne and one check the number of arguments.
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

// FlagError says in plain words what pflag has found wrong.
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
			return Usagef("--%s takes no value, not %q", name, value)
		}
		if _, is := errors.AsType[*fs.PathError](err); is {
			return Failed(fmt.Errorf("--%s: %w", name, e.Unwrap())) // as of a file that is an argument
		}
		return Usagef("--%s: %w", name, e.Unwrap())
	}
	return UsageError{err}
}

// Similar has names compared as those of subcommands are.
func Similar(names []string, name string) []string {
	all := cobra.Command{SuggestionsMinimumDistance: 2}
	for _, n := range names {
		all.AddCommand(&cobra.Command{Use: n, Run: func(*cobra.Command, []string) {}})
	}
	return all.SuggestionsFor(name)
}

func DidYouMean(prefix string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	return ": did you mean " + prefix + strings.Join(names, " or "+prefix) + "?"
}
