package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// usageError is a mistake in how the command was called: exit status 64 and a hint
// at --help. Every other error of a subcommand is something it could not find out.
type usageError struct{ error }

func usagef(format string, args ...any) error {
	return usageError{fmt.Errorf(format, args...)}
}

// urlHelp is the rule of splitURL in the words of --help, where paths are not taken.
const urlHelp = `A URL begins with http:// or https://. Without a scheme, // or text that begins with
a site such as example.com means https.`

// atLeastOne and one check the number of arguments.
func atLeastOne(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usagef("give a %s", what)
		}
		return nil
	}
}

func one(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usagef("give one %s, not %d", what, len(args))
		}
		return nil
	}
}

// none refuses arguments; remedy says where they belong.
func none(remedy string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) > 0 {
			return usagef("%q is not expected here: %s", args[0], remedy)
		}
		return nil
	}
}

// unknownCommand is the error for a subcommand that does not exist.
func unknownCommand(root *cobra.Command, name string) error {
	return usagef("unknown command %q%s", name, didYouMean("", root.SuggestionsFor(name)))
}

// flagError says in plain words what pflag has found wrong.
func flagError(cmd *cobra.Command, err error) error {
	switch e := err.(type) {
	case *pflag.NotExistError:
		var flags []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { flags = append(flags, f.Name) })
		return usagef("%s%s", e.Error(), didYouMean("--", similar(flags, e.GetSpecifiedName())))
	case *pflag.ValueRequiredError:
		return usagef("--%s needs a value", e.GetFlag().Name)
	case *pflag.InvalidValueError:
		name, value := e.GetFlag().Name, e.GetValue()
		switch e.GetFlag().Value.Type() {
		case "duration":
			return usagef("--%s %q is no time such as 30s or 2m", name, value)
		case "int":
			return usagef("--%s %q is no whole number", name, value)
		case "bool":
			return usagef("--%s takes no value, not %q", name, value)
		}
		return usagef("--%s: %w", name, e.Unwrap())
	}
	return usageError{err}
}

// similar has names compared as those of subcommands are.
func similar(names []string, name string) []string {
	all := cobra.Command{SuggestionsMinimumDistance: 2}
	for _, n := range names {
		all.AddCommand(&cobra.Command{Use: n, Run: func(*cobra.Command, []string) {}})
	}
	return all.SuggestionsFor(name)
}

func didYouMean(prefix string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	return ": did you mean " + prefix + strings.Join(names, " or "+prefix) + "?"
}
