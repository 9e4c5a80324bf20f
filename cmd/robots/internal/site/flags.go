package site

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/usage"
)

// Network is what the subcommands that fetch robots.txt have in common.
type Network struct {
	Agent     AgentFlag
	Dialect   DialectFlag
	UserAgent string
	Timeout   time.Duration
	ConnectTo []string
	obeyWalls bool
	CacheAt   string
	Headers   headerFlag
	Signing   signing
}

// UserAgent names the command itself: asking for another crawler's rules is no reason to
// pass for that crawler.
const UserAgent = "robots (+https://github.com/robotsgate/robotsgate)"

// AgentFlag is --agent.
type AgentFlag string

func (f *AgentFlag) String() string { return string(*f) }
func (f *AgentFlag) Type() string   { return "token" }

// Set takes a product token, with or without a version behind it ("ExampleBot/1.0"). Text
// with a blank is refused: a name of two words is no token, and the first word of a browser's
// User-Agent field is not the crawler's.
func (f *AgentFlag) Set(agent string) error {
	if strings.ContainsFunc(agent, answer.Blank) {
		return fmt.Errorf("%s holds a blank: give the product token alone, like ExampleBot", answer.Quoted(agent))
	}
	token := agent
	if agent != "*" {
		token = policy.ProductToken(agent)
	}
	if token == "" {
		return fmt.Errorf("%s holds no product token, like ExampleBot (RFC 9309 section 2.2.1)", answer.Quoted(agent))
	}
	*f = AgentFlag(token)
	return nil
}

// AgentVar adds --agent. Without it the question is about a crawler that no file names:
// any other default would answer for one crawler in particular.
func AgentVar(cmd *cobra.Command, agent *AgentFlag) {
	*agent = "*"
	cmd.Flags().Var(agent, "agent", "product `TOKEN` of the crawler; * is a crawler that no group names")
	cmd.RegisterFlagCompletionFunc("agent", cobra.NoFileCompletions)
}

// UsesFlag is --uses.
type UsesFlag []string

func (f *UsesFlag) String() string { return strings.Join(*f, ",") }
func (f *UsesFlag) Type() string   { return "labels" }

// Set takes labels that a statement can disallow: with a misspelt one, all would be allowed.
func (f *UsesFlag) Set(list string) error {
	for use := range strings.SplitSeq(list, ",") {
		if known := UsageLabels(); !slices.Contains(known, use) {
			return fmt.Errorf("%s is no use that a site can disallow: write %s%s",
				answer.Quoted(use), strings.Join(known, ", "), shell.DidYouMean("", shell.Similar(known, use)))
		}
		*f = append(*f, use)
	}
	return nil
}

// UsesVar adds --uses.
func UsesVar(cmd *cobra.Command, uses *UsesFlag) {
	cmd.Flags().Var(uses, "uses", "refuse what robots.txt disallows for one of these `LABELS`, such as train-ai,search")
	cmd.RegisterFlagCompletionFunc("uses", cobra.FixedCompletions(UsageLabels(), cobra.ShellCompDirectiveNoFileComp))
}

// UsageLabels are the labels that the standard table of package usage has, in its order.
func UsageLabels() (labels []string) {
	for _, m := range usage.Table() {
		if !slices.Contains(labels, string(m.Label)) {
			labels = append(labels, string(m.Label))
		}
	}
	return labels
}

// DialectFlag is --as.
type DialectFlag struct{ policy.Dialect }

func (f *DialectFlag) String() string { return answer.DialectName(f.Dialect) }
func (f *DialectFlag) Type() string   { return "dialect" }

func (f *DialectFlag) Set(name string) (err error) {
	f.Dialect, err = answer.DialectByName(name)
	return err
}

func DialectVar(cmd *cobra.Command, d *DialectFlag) {
	cmd.Flags().Var(d, "as",
		"read robots.txt as this `DIALECT` does: "+strings.Join(answer.DialectNames(), ", "))
	CompleteDialects(cmd)
}

// CompleteDialects lets shells complete --as. An error would mean that there is no such
// flag, and the tests complete it.
func CompleteDialects(cmd *cobra.Command, more ...string) {
	names := append(answer.DialectNames(), more...)
	cmd.RegisterFlagCompletionFunc("as", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
}

// Register adds the flags for the way to the server.
func (n *Network) Register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVarP(&n.UserAgent, "user-agent", "A", UserAgent, "the User-Agent `FIELD` to send")
	f.DurationVar(&n.Timeout, "timeout", 30*time.Second, "`TIME` for one robots.txt, with redirects and retries")
	f.StringArrayVar(&n.ConnectTo, "connect-to", nil,
		"connect as `FROM:TO` says, in curl's syntax HOST1:PORT1:HOST2:PORT2: an empty HOST1 or PORT1 matches any, "+
			"an empty HOST2 or PORT2 changes nothing. No proxy is used")
	cmd.RegisterFlagCompletionFunc("connect-to", cobra.NoFileCompletions)
	f.BoolVar(&n.obeyWalls, "obey-walls", false,
		"take a login, a refusal (401, 403) or a page in place of robots.txt for unreachable, as a wall in front of the site may mean it")
	f.VarP(&n.Headers, "header", "H", "add this `FIELD` to requests to one site: \"SITE NAME: VALUE\", or @FILE with such lines")
	cmd.RegisterFlagCompletionFunc("header", cobra.NoFileCompletions)
	n.Signing.register(cmd)
}

// RegisterCache adds the flag for subcommands that need not ask the server each time.
func (n *Network) RegisterCache(cmd *cobra.Command) {
	cmd.Flags().StringVar(&n.CacheAt, "cache", "",
		"keep robots.txt in this `FILE`, or in Redis at redis://HOST:PORT\n"+
			"(rediss:// with TLS, unix:///SOCKET, Sentinel, cluster: see the README)")
}
