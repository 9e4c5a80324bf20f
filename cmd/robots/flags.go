package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/usage"
)

// network is what the subcommands that fetch robots.txt have in common.
type network struct {
	agent     agentFlag
	dialect   dialectFlag
	userAgent string
	timeout   time.Duration
	connectTo []string
	obeyWalls bool
	cacheAt   string
	headers   headerFlag
	signing   signing
}

// userAgent names the command itself: asking for another crawler's rules is no reason to
// pass for that crawler.
const userAgent = "robots (+https://github.com/robotsgate/robotsgate)"

// agentFlag is --agent.
type agentFlag string

func (f *agentFlag) String() string { return string(*f) }
func (f *agentFlag) Type() string   { return "token" }

// Set takes a product token, with or without a version behind it ("ExampleBot/1.0"). Text
// with a blank is refused: a name of two words is no token, and the first word of a browser's
// User-Agent field is not the crawler's.
func (f *agentFlag) Set(agent string) error {
	if strings.ContainsFunc(agent, blank) {
		return fmt.Errorf("%s holds a blank: give the product token alone, like ExampleBot", quoted(agent))
	}
	token := agent
	if agent != "*" {
		token = policy.ProductToken(agent)
	}
	if token == "" {
		return fmt.Errorf("%s holds no product token, like ExampleBot (RFC 9309 section 2.2.1)", quoted(agent))
	}
	*f = agentFlag(token)
	return nil
}

// agentVar adds --agent. Without it the question is about a crawler that no file names:
// any other default would answer for one crawler in particular.
func agentVar(cmd *cobra.Command, agent *agentFlag) {
	*agent = "*"
	cmd.Flags().Var(agent, "agent", "product `TOKEN` of the crawler; * is a crawler that no group names")
	cmd.RegisterFlagCompletionFunc("agent", cobra.NoFileCompletions)
}

// usesFlag is --uses.
type usesFlag []string

func (f *usesFlag) String() string { return strings.Join(*f, ",") }
func (f *usesFlag) Type() string   { return "labels" }

// Set takes labels that a statement can disallow: with a misspelt one, all would be allowed.
func (f *usesFlag) Set(list string) error {
	for use := range strings.SplitSeq(list, ",") {
		if known := usageLabels(); !slices.Contains(known, use) {
			return fmt.Errorf("%s is no use that a site can disallow: write %s%s",
				quoted(use), strings.Join(known, ", "), didYouMean("", similar(known, use)))
		}
		*f = append(*f, use)
	}
	return nil
}

// usesVar adds --uses.
func usesVar(cmd *cobra.Command, uses *usesFlag) {
	cmd.Flags().Var(uses, "uses", "refuse what robots.txt disallows for one of these `LABELS`, such as train-ai,search")
	cmd.RegisterFlagCompletionFunc("uses", cobra.FixedCompletions(usageLabels(), cobra.ShellCompDirectiveNoFileComp))
}

// usageLabels are the labels that the standard table of package usage has, in its order.
func usageLabels() (labels []string) {
	for _, m := range usage.Table() {
		if !slices.Contains(labels, string(m.Label)) {
			labels = append(labels, string(m.Label))
		}
	}
	return labels
}

// dialectFlag is --as.
type dialectFlag struct{ policy.Dialect }

func (f *dialectFlag) String() string { return dialectName(f.Dialect) }
func (f *dialectFlag) Type() string   { return "dialect" }

func (f *dialectFlag) Set(name string) (err error) {
	f.Dialect, err = dialectByName(name)
	return err
}

func dialectVar(cmd *cobra.Command, d *dialectFlag) {
	cmd.Flags().Var(d, "as",
		"read robots.txt as this `DIALECT` does: "+strings.Join(dialectNames(), ", "))
	completeDialects(cmd)
}

// completeDialects lets shells complete --as. An error would mean that there is no such
// flag, and the tests complete it.
func completeDialects(cmd *cobra.Command, more ...string) {
	names := append(dialectNames(), more...)
	cmd.RegisterFlagCompletionFunc("as", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
}

// register adds the flags for the way to the server.
func (n *network) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVarP(&n.userAgent, "user-agent", "A", userAgent, "the User-Agent `FIELD` to send")
	f.DurationVar(&n.timeout, "timeout", 30*time.Second, "`TIME` for one robots.txt, with redirects and retries")
	f.StringArrayVar(&n.connectTo, "connect-to", nil,
		"connect as `FROM:TO` says, in curl's syntax HOST1:PORT1:HOST2:PORT2: an empty HOST1 or PORT1 matches any, "+
			"an empty HOST2 or PORT2 changes nothing. No proxy is used")
	cmd.RegisterFlagCompletionFunc("connect-to", cobra.NoFileCompletions)
	f.BoolVar(&n.obeyWalls, "obey-walls", false,
		"take a login, a refusal (401, 403) or a page in place of robots.txt for unreachable, as a wall in front of the site may mean it")
	f.VarP(&n.headers, "header", "H", "add this `FIELD` to requests to one site: \"SITE NAME: VALUE\", or @FILE with such lines")
	cmd.RegisterFlagCompletionFunc("header", cobra.NoFileCompletions)
	n.signing.register(cmd)
}

// registerCache adds the flag for subcommands that need not ask the server each time.
func (n *network) registerCache(cmd *cobra.Command) {
	cmd.Flags().StringVar(&n.cacheAt, "cache", "",
		"keep robots.txt in this `FILE`, or in Redis at redis://HOST:PORT\n"+
			"(rediss:// with TLS, unix:///SOCKET, Sentinel, cluster: see the README)")
}
