// Command robots gives at a shell prompt, and in a pipeline, the answers that
// package client gives inside a program: may this crawler fetch that URL, and why
// (RFC 9309). Run "robots --help" for its subcommands and exit statuses.
//
// Each subcommand is a file here: its flags, and what it prints. Below them, answer has a question and its verdict,
// shell the prompt, and site the network; serve and proxy answer over HTTP, and web is what those two have in
// common. None of them knows a subcommand, and answer imports none of the others.
package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
)

// main is the part that a test cannot call: it changes how signals end the process, and ends it itself.
func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal the default action is back: a second Ctrl-C ends at once. So does time, or a full pipe could
	// hold the end up for good. serve and proxy have --drain.
	context.AfterFunc(ctx, func() {
		stop()
		if len(os.Args) < 2 || os.Args[1] != "serve" && os.Args[1] != "proxy" {
			time.AfterFunc(lastTime, func() { os.Exit(shell.ExitInterrupted) })
		}
	})
	// A reader that went away ("robots … | head") is a failed write and not the end
	// of the process, so that what was fetched still reaches the cache.
	signal.Ignore(syscall.SIGPIPE)
	os.Exit(run(ctx, os.Args[1:], shell.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}

// lastTime is how long a run may take after a signal.
const lastTime = 10 * time.Second

// exitHelp is what the statuses of package shell mean, in --help and in README.md. A test compares the two.
const exitHelp = `Exit status, the highest that applies:
    0  it worked, and nothing of the following is the case
    1  check, match: a URL is refused; diff: a verdict changes;
       lint: a finding is as severe as --fail-on; page: there is a finding;
       usage: a use is disallowed;
       sign check: the site refuses the request, or the directory has a fault;
       sitemap: a URL is refused, with --refused;
       filter: a line is refused, with --fail-on refused
    2  something could not be found out, read or written: robots.txt is
       unreachable, there is no such file, match got a malformed line;
       filter: a line is unknown or malformed, with --fail-on unknown,malformed
   64  wrong usage: what was typed is unknown, missing, malformed, or would have
       no effect
  130  interrupted`

// run executes the command line args and returns the exit status. It is main without the
// process: nothing in it ends the program or reads a global.
func run(ctx context.Context, args []string, std shell.Streams) int {
	a := &shell.App{Streams: std}
	help := bufio.NewWriter(std.Out) // for the library, which passes over what cannot be written or takes it for wrong usage
	root := rootCommand(a, help)
	// A name that is no command has no --help: "robots nosuch --help" is wrong usage, and not the help of robots. So is
	// "robots help nosuch".
	if len(args) > 0 && args[0] == "help" {
		args = append(args[1:len(args):len(args)], "--help")
	}
	root.DisableFlagParsing = len(args) > 0 && !strings.HasPrefix(args[0], "-")
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	err = cmp.Or(help.Flush(), err)
	_, usage := errors.AsType[shell.UsageError](err)
	switch {
	case err == nil:
	case usage:
		fmt.Fprintf(std.Err, "robots: %s\nRun '%s --help' for usage.\n", answer.Visible(err.Error()), cmd.CommandPath())
		a.Status = shell.ExitUsage
	// A failure with another cause is reported as one, interrupted or not.
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		fmt.Fprintln(std.Err, "robots: interrupted")
		a.Status = shell.ExitInterrupted
	case errors.Is(err, syscall.EPIPE):
		a.Worsen(shell.ExitUnknown) // the reader of our output has gone and needs no message
	default:
		fmt.Fprintf(std.Err, "robots: %s\n", answer.Visible(err.Error()))
		a.Worsen(shell.ExitUnknown)
	}
	return a.Status
}

// rootCommand is the command with its subcommands. Errors and usage are printed by run.
func rootCommand(a *shell.App, help io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use:   "robots",
		Short: "What robots.txt files permit, and what is wrong with them",
		Long: `Robots answers what robots.txt files permit (RFC 9309), and finds what is wrong
with them.

` + exitHelp,
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 { // the help was not asked for, so it is no output
				cmd.SetOut(a.Err)
				cmd.Help()
				fmt.Fprintln(a.Err)
			}
			return shell.NeedsCommand(cmd, args)
		},
		SuggestionsMinimumDistance: 2,
	}
	root.SetOut(help)
	root.SetErr(a.Err)
	root.SetFlagErrorFunc(shell.FlagError)
	shell.SetHelp(root)
	root.SetVersionTemplate("robots {{.Version}}\n")

	check, lint, match := checkCommand(a), lintCommand(a), matchCommand(a)
	for _, cmd := range []*cobra.Command{check, lint, match} {
		shell.ChoiceVar(cmd, &a.Color, "color",
			"use colours: `WHEN` is auto (on a terminal, unless $NO_COLOR is set), always or never",
			"auto", "always", "never")
	}
	writers := []*cobra.Command{
		check, lint, match, diffCommand(a), fetchCommand(a), filterCommand(a), pageCommand(a), sitemapCommand(a),
		usageCommand(a),
	}
	for _, cmd := range writers {
		cmd.Flags().BoolVar(&a.JSON, "json", false, "write JSON, one object per line (see robots schema)")
	}
	root.AddCommand(writers...)
	root.AddCommand(manCommand(root), newProxy(a).command(), schemaCommand(a), newServer(a).command(), signCommand(a))
	root.InitDefaultCompletionCmd()
	completion, _, _ := root.Find([]string{"completion"})
	completion.Args, completion.RunE = cobra.ArbitraryArgs, shell.NeedsCommand
	return root
}

// manCommand makes the subcommand that writes the manual pages, by the library's generator. It reads the help as
// Markdown, which runs tables together unless they are indented as code.
func manCommand(root *cobra.Command) *cobra.Command {
	var prepare func(*cobra.Command)
	prepare = func(cmd *cobra.Command) {
		text := cmp.Or(cmd.Long, cmd.Short)
		if !strings.Contains(text, exitHelp) {
			text += "\n\n" + exitHelp
		}
		text = strings.Replace(text, "Exit status, the highest that applies:\n", "# EXIT STATUS\n\nThe highest that applies:\n\n", 1)
		cmd.Long = manualTable.ReplaceAllString(text, "\n    $1") + manualFiles
		for _, c := range cmd.Commands() {
			prepare(c)
		}
	}
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write the manual pages to a folder",
		Args:  shell.Args(1, 1, "one folder"),
		RunE: shell.Runs(func(_ context.Context, args []string) error {
			prepare(root)
			root.DisableAutoGenTag = true
			return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "robots", Manual: "robots"}, args[0])
		}),
	}
}

var manualTable = regexp.MustCompile(`\n( +)`)

const manualFiles = `

# FILES

serve and proxy keep robots.txt below the user's folder for caches, in robotsgate, unless --cache says otherwise. The
others keep nothing without it.
`

// schemaCommand makes the subcommand. Its schema is a file of package answer, which a test holds to what all
// subcommands write.
func schemaCommand(a *shell.App) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Write the JSON Schema of what --json writes",
		Long: `Schema writes a JSON Schema (draft 2020-12) of every object that the subcommands
write with --json. The version is in its "$id". Within a version fields may be
added; none is renamed, removed or given another meaning.`,
		Example: `  robots schema > robots.schema.json
  robots schema | jq '."$defs".decision.properties | keys'`,
		Args: shell.Args(0, 0, "none"),
		RunE: shell.Runs(func(context.Context, []string) error {
			_, err := a.Out.Write(answer.Schema)
			return err
		}),
	}
}

// version is what --version prints: what the go command recorded in the binary, with Go and the machine, which the
// report of a fault needs. Without a record, as in tests, it is "(devel)".
func version() string {
	v := "(devel)"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		v = info.Main.Version
	}
	return fmt.Sprintf("%s (%s, %s/%s)", v, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
