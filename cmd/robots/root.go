package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// Exit statuses. Of several, the worst counts: an unknown outcome hides more than a
// refusal does.
const (
	exitOK          = 0
	exitRefused     = 1
	exitUnknown     = 2
	exitUsage       = 64  // EX_USAGE of sysexits.h
	exitInterrupted = 130 // 128 + SIGINT, as shells report it
)

// exitHelp is what they mean, in --help and in README.md.
const exitHelp = `Exit status, the highest that applies:
    0  it worked, and nothing of the following is the case
    1  check, match: a URL is refused; lint: a finding is as severe as --fail-on;
       sign check: the site refuses the request, or the directory has a fault;
       filter: a line is refused, with --fail-on refused
    2  something could not be found out, read or written: robots.txt is
       unreachable, there is no such file, match got a malformed line;
       filter: a line is unknown or malformed, with --fail-on unknown,malformed
   64  wrong usage: what was typed is unknown, missing, malformed, or would have
       no effect
  130  interrupted`

// streams are where a command reads and writes; tests give their own.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// app is one run of the command.
type app struct {
	streams
	json   bool
	color  colorFlag
	status int
}

// worsen makes the exit status at least as bad as status.
func (a *app) worsen(status int) { a.status = max(a.status, status) }

// failure marks an error that came up while a subcommand was running.
type failure struct{ error }

func (f failure) Unwrap() error { return f.error }

// run executes the command line args and returns the exit status. It is main without the
// process: nothing in it ends the program or reads a global.
func run(ctx context.Context, args []string, std streams) int {
	a := &app{streams: std}
	root := a.root(args)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	failed, isFailure := errors.AsType[failure](err)
	switch {
	case err == nil:
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		fmt.Fprintln(std.err, "robots: interrupted")
		a.status = exitInterrupted
	case isFailure && errors.Is(err, syscall.EPIPE):
		a.worsen(exitUnknown) // the reader of our output has gone and needs no message
	case isFailure:
		fmt.Fprintf(std.err, "robots: %s\n", visible(failed.Error()))
		a.worsen(exitUnknown)
	default: // from the command-line library, or a usageError
		fmt.Fprintf(std.err, "robots: %s\nRun '%s --help' for usage.\n", visible(err.Error()), cmd.CommandPath())
		a.status = exitUsage
	}
	return a.status
}

// root is the command with the subcommands that args need. Completion scripts and the texts
// of --help come from the library; errors and usage are printed by run, which knows them apart.
func (a *app) root(args []string) *cobra.Command {
	root := &cobra.Command{
		Use:   "robots",
		Short: "What robots.txt files permit, and what is wrong with them",
		Long: `Robots answers what robots.txt files permit (RFC 9309), and finds what is
wrong with them.

` + exitHelp,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			cmd.SetOut(a.err)
			cmd.Help()
			fmt.Fprintln(a.err)
			return usagef("a subcommand is missing")
		},
		SuggestionsMinimumDistance: 2,
	}
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.SetFlagErrorFunc(flagError)
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages ", ".FlagUsagesWrapped 80 "))
	root.SetVersionTemplate("robots {{.Version}}\n")
	root.SetHelpCommand(a.help())
	a.subcommands(root, args)
	return root
}

// subcommands makes the one that args begin with. Without one, --help, suggestions and completions
// may tell of each: to make all takes longer than most files take to be read and asked.
func (a *app) subcommands(root *cobra.Command, args []string) {
	all := []struct {
		name        string
		make        func() *cobra.Command
		json, color bool
	}{
		{"check", a.check, true, true}, {"fetch", a.fetch, true, false}, {"filter", a.filter, true, false},
		{"lint", a.lint, true, true}, {"match", a.match, true, true}, {"page", a.page, true, false},
		{"proxy", a.proxy, false, false}, {"schema", a.schema, false, false}, {"serve", a.serve, false, false},
		{"sign", a.sign, false, false}, {"usage", a.usage, true, false}, {"version", a.version, true, false},
	}
	one := -1
	for i, s := range all {
		if len(args) > 0 && args[0] == s.name {
			one = i
		}
	}
	if one >= 0 {
		all = all[one : one+1]
	}
	for _, s := range all {
		cmd := s.make()
		if s.json {
			cmd.Flags().BoolVar(&a.json, "json", false, "write JSON, one object per line (see robots schema)")
		}
		if s.color {
			a.color = "auto"
			cmd.Flags().Var(&a.color, "color", "use colours: `WHEN` is auto (on a terminal, unless $NO_COLOR is set), always or never")
			cmd.RegisterFlagCompletionFunc("color", cobra.FixedCompletions(colorWhen, cobra.ShellCompDirectiveNoFileComp))
		}
		root.AddCommand(cmd)
	}
	if root.CompletionOptions.DisableDefaultCmd = one >= 0; one < 0 {
		root.Version = version()
		root.AddCommand(a.man())
		completion(root)
		// What is no command has no --help.
		root.DisableFlagParsing = len(args) > 0 && !strings.HasPrefix(args[0], "-")
	}
}

// completion has the library's subcommand refuse what it does not know.
func completion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	if cmd, _, err := root.Find([]string{"completion"}); err == nil {
		cmd.Args = cobra.ArbitraryArgs
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("no shell is called %q: it is bash, fish, powershell or zsh", args[0])
			}
			return usagef("name a shell: bash, fish, powershell or zsh")
		}
	}
}

// help makes the subcommand. The library's own takes a name it does not know for an
// answered question.
func (a *app) help() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Show how a command is used",
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return unknownCommand(cmd.Root(), args[0])
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}

// man makes the subcommand.
func (a *app) man() *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write the manual pages to a folder",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cmd.Root().DisableAutoGenTag = true // the same from the same version
			if err := doc.GenManTree(cmd.Root(), &doc.GenManHeader{Section: "1", Source: "robots"}, args[0]); err != nil {
				return failure{err}
			}
			return nil
		},
	}
}

// version makes the subcommand.
func (a *app) version() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Say which version this is",
		Args:  none("version takes no arguments"),
		RunE: runs(func(context.Context, []string) error {
			var out output
			if a.json {
				out.json(map[string]any{
					"version": moduleVersion(), "go": runtime.Version(), "platform": platform, "schema": schemaVersion,
				})
			} else {
				fmt.Fprintf(&out, "robots %s\n", version())
			}
			return a.emit(&out)
		}),
	}
}

// runs adapts the body of a subcommand: its errors become failures, except those
// about how it was called.
func runs(body func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		err := body(cmd.Context(), args)
		if _, usage := errors.AsType[usageError](err); err == nil || usage {
			return err
		}
		return failure{err}
	}
}

const platform = runtime.GOOS + "/" + runtime.GOARCH

func version() string {
	return fmt.Sprintf("%s (%s, %s)", moduleVersion(), runtime.Version(), platform)
}

// moduleVersion is what the go command recorded in the binary.
func moduleVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
