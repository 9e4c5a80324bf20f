// Command robots gives at a shell prompt, and in a pipeline, the answers that
// package client gives inside a program: may this crawler fetch that URL, and why
// (RFC 9309). Run "robots --help" for its subcommands and exit statuses.
//
// Each subcommand is a file here: its flags, and what it prints. Below them, answer has a question and its verdict,
// shell the prompt, and site the network; serve and proxy are what answers over HTTP, and web what those two have in
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
	root := rootCommand(a, help, args)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if unwritten := help.Flush(); unwritten != nil {
		err = shell.Failed(unwritten)
	}
	failed, isFailure := errors.AsType[shell.Failure](err)
	switch {
	case err == nil:
	// A failure with another cause is told as one, interrupted or not.
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		fmt.Fprintln(std.Err, "robots: interrupted")
		a.Status = shell.ExitInterrupted
	case isFailure && errors.Is(err, syscall.EPIPE):
		a.Worsen(shell.ExitUnknown) // the reader of our output has gone and needs no message
	case isFailure:
		fmt.Fprintf(std.Err, "robots: %s\n", answer.Visible(failed.Error()))
		a.Worsen(shell.ExitUnknown)
	default: // from the command-line library, or a UsageError
		fmt.Fprintf(std.Err, "robots: %s\nRun '%s --help' for usage.\n", answer.Visible(err.Error()), cmd.CommandPath())
		a.Status = shell.ExitUsage
	}
	return a.Status
}

// rootCommand is the command with the subcommands that args need. Errors and usage are printed by run.
func rootCommand(a *shell.App, help io.Writer, args []string) *cobra.Command {
	root := &cobra.Command{
		Use:   "robots",
		Short: "What robots.txt files permit, and what is wrong with them",
		Long: `Robots answers what robots.txt files permit (RFC 9309), and finds what is wrong
with them.

` + exitHelp,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return shell.UnknownCommand(cmd, args[0])
			}
			// Nobody has asked for the help, so it is no output. The status is 64, where the library's own is 0.
			cmd.SetOut(a.Err)
			cmd.Help()
			fmt.Fprintln(a.Err)
			return shell.Usagef("a subcommand is missing")
		},
		SuggestionsMinimumDistance: 2,
	}
	root.SetOut(help)
	root.SetErr(a.Err)
	root.SetFlagErrorFunc(shell.FlagError)
	shell.SetHelp(root)
	root.SetVersionTemplate("robots {{.Version}}\n")
	subcommands(a, root, args)
	return root
}

// subcommands makes the one that args begin with: to make all takes longer than most runs. A new one needs a row here. json
// and color tell whether it has these flags.
func subcommands(a *shell.App, root *cobra.Command, args []string) {
	all := []struct {
		name        string
		make        func(*shell.App) *cobra.Command
		json, color bool
	}{
		{"check", checkCommand, true, true}, {"diff", diffCommand, true, false}, {"fetch", fetchCommand, true, false}, {"filter", filterCommand, true, false},
		{"lint", lintCommand, true, true}, {"match", matchCommand, true, true}, {"page", pageCommand, true, false},
		{"proxy", proxyCommand, false, false}, {"schema", schemaCommand, false, false}, {"serve", serveCommand, false, false},
		{"sign", signCommand, false, false}, {"sitemap", sitemapCommand, false, false}, {"usage", usageCommand, true, false}, {"version", versionCommand, true, false},
	}
	named := false
	for i, s := range all {
		if named = len(args) > 0 && args[0] == s.name; named {
			all = all[i : i+1]
			break
		}
	}
	for _, s := range all {
		cmd := s.make(a)
		if s.json {
			cmd.Flags().BoolVar(&a.JSON, "json", false, "write JSON, one object per line (see robots schema)")
		}
		if s.color {
			shell.ChoiceVar(cmd, &a.Color, "color",
				"use colours: `WHEN` is auto (on a terminal, unless $NO_COLOR is set), always or never", "auto", "always", "never")
		}
		root.AddCommand(cmd)
	}
	if root.CompletionOptions.DisableDefaultCmd = named; !named {
		root.Version = version()
		root.AddCommand(manCommand(root))
		// What is no command has no --help: "robots nosuch --help" is wrong usage, and not the help of robots.
		root.DisableFlagParsing = len(args) > 0 && !strings.HasPrefix(args[0], "-")
	}
}

// manCommand makes the subcommand. It has to see all others, so subcommands makes it only when none is named.
func manCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write the manual pages to a folder",
		Args:  shell.One("folder"),
		RunE:  shell.Runs(func(_ context.Context, args []string) error { return manual(args[0], root) }),
	}
}

// manual writes the manual pages of a command and of those below it, by the library's generator. It reads the help as
// Markdown, which runs tables together unless they are indented as code.
func manual(dir string, root *cobra.Command) error {
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
	prepare(root)
	root.DisableAutoGenTag = true
	return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "robots", Manual: "robots"}, dir)
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
		Args: shell.None("schema takes no arguments"),
		RunE: shell.Runs(func(context.Context, []string) error {
			_, err := a.Out.Write(answer.Schema)
			return err
		}),
	}
}

func versionCommand(a *shell.App) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Say which version this is",
		Args:  shell.None("version takes no arguments"),
		RunE: shell.Runs(func(context.Context, []string) error {
			var out shell.Output
			if a.JSON {
				out.JSON(map[string]any{
					"version": moduleVersion(), "go": runtime.Version(), "platform": platform, "schema": answer.SchemaVersion,
				})
			} else {
				fmt.Fprintf(&out, "robots %s\n", version())
			}
			return a.Emit(&out)
		}),
	}
}

const platform = runtime.GOOS + "/" + runtime.GOARCH

// version is what --version prints: with Go and the machine, which the report of a fault needs.
func version() string {
	return fmt.Sprintf("%s (%s, %s)", moduleVersion(), runtime.Version(), platform)
}

// moduleVersion is what the go command recorded in the binary. No flag of the linker sets it. Without a
// record, as in tests, it is "(devel)".
func moduleVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
