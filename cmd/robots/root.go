package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"
)

// Exit statuses. Of several, that of the worst outcome counts: an unknown one hides
// more than a refusal does.
const (
	exitOK          = 0
	exitRefused     = 1   // something is refused; lint has findings
	exitUnknown     = 2   // something could not be found out: no connection, no such file, a malformed line
	exitUsage       = 64  // EX_USAGE of sysexits.h
	exitInterrupted = 130 // 128 + SIGINT, as shells report it
)

// streams are where a command reads and writes; tests give their own.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// app is one run of the command.
type app struct {
	streams
	json   bool
	status int
}

// worsen makes the exit status at least as bad as status.
func (a *app) worsen(status int) { a.status = max(a.status, status) }

// usageError is a mistake in how the command was called: exit status 64 and a hint
// at --help. Every other error of a subcommand is something it could not find out.
type usageError struct{ error }

func usagef(format string, args ...any) error {
	return usageError{fmt.Errorf(format, args...)}
}

// failure marks an error that came up while a subcommand was running.
type failure struct{ error }

func (f failure) Unwrap() error { return f.error }

// run executes the command line args and returns the exit status. It is main without the
// process: nothing in it ends the program or reads a global.
func run(ctx context.Context, args []string, std streams) int {
	a := &app{streams: std}
	root := a.root()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	failed, isFailure := errors.AsType[failure](err)
	switch {
	case err == nil:
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		fmt.Fprintln(std.err, "robots: interrupted")
		a.status = exitInterrupted
	case isFailure && errors.Is(err, syscall.EPIPE):
		a.worsen(exitUnknown) // whoever read our output has gone and needs no message
	case isFailure:
		fmt.Fprintf(std.err, "robots: %s\n", visible(failed.Error()))
		a.worsen(exitUnknown)
	default: // from the command-line library, or a usageError
		fmt.Fprintf(std.err, "robots: %v\nRun '%s --help' for usage.\n", err, cmd.CommandPath())
		a.status = exitUsage
	}
	return a.status
}

// root is the command with its subcommands. Completion scripts and the texts of --help
// come from the library; errors and usage are printed by run, which knows them apart.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "robots",
		Short: "What robots.txt files permit, and what is wrong with them",
		Long: `Robots answers what robots.txt files permit (RFC 9309), and finds what is
wrong with them.

Exit status: 0 allowed, or clean; 1 something is refused, or there are findings;
2 something could not be found out; 64 wrong usage; 130 interrupted.`,
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return usagef("a subcommand is missing")
		},
	}
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.PersistentFlags().BoolVar(&a.json, "json", false, "write JSON, one object per line")
	root.AddCommand(a.check(), a.fetch(), a.filter(), a.lint(), a.match(), a.page(), a.usage())
	return root
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

// version is the module's, as the go command recorded it in the binary.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
