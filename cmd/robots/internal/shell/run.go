// Package shell is what the subcommands have in common at a prompt: streams, exit statuses, how wrong usage is told,
// answers in the order of their lines, and the line that shows how far they are.
package shell

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"
)

// Exit statuses. Of several, the worst counts: an unknown outcome hides more than a
// refusal does.
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

// Worsen makes the exit status at least as bad as status.
func (a *App) Worsen(status int) { a.Status = max(a.Status, status) }

// Failure marks an error that came up while a subcommand was running. What is none comes from the
// command-line library, or is a UsageError: run in main.go takes both for wrong usage.
type Failure struct{ error }

func (f Failure) Unwrap() error { return f.error }

// Failed is err as a Failure.
func Failed(err error) error { return Failure{err} }

// Runs adapts the body of a subcommand: its errors become failures, except those
// about how it was called.
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
