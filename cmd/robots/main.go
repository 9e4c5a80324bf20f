// Command robots gives at a shell prompt, and in a pipeline, the answers that
// package client gives inside a program: may this crawler fetch that URL, and why
// (RFC 9309). Run "robots --help" for its subcommands and exit statuses.
//
// Each subcommand is a file here: its flags, and what it prints. Below them, answer has a question and its verdict,
// shell the prompt, and site the network; serve and proxy are what answers over HTTP, and web what those two have in
// common. None of them knows a subcommand, and answer imports none of the others.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal the default action is back: a second Ctrl-C ends at once.
	context.AfterFunc(ctx, stop)
	// A reader that went away ("robots … | head") is a failed write and not the end
	// of the process, so that what was fetched still reaches the cache.
	signal.Ignore(syscall.SIGPIPE)
	os.Exit(run(ctx, os.Args[1:], shell.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}
