// Command robots gives at a shell prompt, and in a pipeline, the answers that
// package client gives inside a program: may this crawler fetch that URL, and why
// (RFC 9309). Run "robots --help" for its subcommands and exit statuses.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal the default action is back: a second Ctrl-C ends at once.
	context.AfterFunc(ctx, stop)
	// A reader that went away ("robots … | head") is a failed write and not the end
	// of the process, so that what was fetched still reaches the cache.
	signal.Ignore(syscall.SIGPIPE)
	os.Exit(run(ctx, os.Args[1:], streams{in: os.Stdin, out: os.Stdout, err: os.Stderr}))
}
