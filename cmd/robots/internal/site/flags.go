package site

// The flags that several subcommands have, with their completions. What a flag can refuse when it is given,
// it refuses then; what depends on others, the subcommand sees to when it runs.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/agreement"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/usage"
)

// Network is what the subcommands that fetch robots.txt have in common: who asks, by the Asker in it, and the
// way to the server. Register and RegisterCache fill it; Open makes a gate of it. A zero Timeout is refused.
// If CacheAt, the directory or URL of --cache, is empty or "none", what is read is kept in memory only.
type Network struct {
	answer.Asker
	UserAgent string
	Timeout   time.Duration
	ConnectTo []string
	obeyWalls bool
	CacheAt   string
	Headers   headerFlag
	Signing   signing
}

// UserAgent names the command itself: asking for another crawler's rules is no reason to pass for that crawler.
const UserAgent = "robots (+https://github.com/robotsgate/robotsgate)"

// AgentVar adds --agent. Without it, the crawler is that of --user-agent. Without either the question is about a crawler
// that no file names: any other default would answer for one crawler in particular.
func AgentVar(cmd *cobra.Command, k *answer.Asker) {
	k.SetAgent(answer.AnyOther)
	set := func(agent string) error { k.Named = true; return k.SetAgent(agent) }
	cmd.Flags().Var(shell.Value{Text: func() string { return k.Agent }, Read: set}, "agent",
		"the `CRAWLER`: a product token, several with commas (the first that a group names), or a User-Agent field; "+
			"* is a crawler that no group names. By default that of --user-agent, if given")
	cmd.RegisterFlagCompletionFunc("agent", cobra.NoFileCompletions)
}

// UsesVar adds --uses. It takes labels that a statement can disallow: with a misspelt one, all would be allowed.
func UsesVar(cmd *cobra.Command, k *answer.Asker) {
	set := func(list string) error {
		for use := range strings.SplitSeq(list, ",") {
			if known := UsageLabels(); !slices.Contains(known, use) {
				return fmt.Errorf("%s is no use that a site can disallow: write %s%s",
					answer.Quoted(use), strings.Join(known, ", "), shell.DidYouMean("", shell.Similar(known, use)))
			}
			k.Uses = append(k.Uses, use)
		}
		return nil
	}
	cmd.Flags().Func("uses", "refuse what robots.txt disallows for one of these `LABELS`, such as train-ai,search (see robots usage)", set)
	cmd.RegisterFlagCompletionFunc("uses", cobra.FixedCompletions(UsageLabels(), cobra.ShellCompDirectiveNoFileComp))
}

// AgreementsVar adds --agreements. The file is read when the flag is given, so a line that is not understood
// ends the run before anything is asked.
func AgreementsVar(cmd *cobra.Command, k *answer.Asker) {
	set := func(name string) error {
		if k.Agreed != nil {
			return errors.New("it is given twice: put all agreements into one file")
		}
		data, err := os.ReadFile(name)
		if err == nil {
			k.Agreed, err = agreement.Parse(data)
		}
		return err
	}
	cmd.Flags().Func("agreements", "decide first by the rules in this `FILE` that sites have agreed to (see the README)", set)
}

// UsageLabels are the labels that the standard table of package usage has, in its order, each once. Those of
// the standard itself are the first three.
func UsageLabels() (labels []string) {
	for _, m := range usage.Table() {
		if !slices.Contains(labels, string(m.Label)) {
			labels = append(labels, string(m.Label))
		}
	}
	return labels
}

func DialectVar(cmd *cobra.Command, k *answer.Asker) { dialectVar(cmd, k, false) }

// DialectsVar adds an --as that may be all of them, which only check can show side by side.
func DialectsVar(cmd *cobra.Command, k *answer.Asker) { dialectVar(cmd, k, true) }

// dialectVar is both. A mistake in the completion would mean that there is no such flag, and the tests complete it.
func dialectVar(cmd *cobra.Command, k *answer.Asker, all bool) {
	names := answer.DialectNames()
	text := "read robots.txt in this `DIALECT`, and not as the crawler's engine does: " + strings.Join(names, ", ")
	if all {
		text, names = text+", or all", append(names, "all")
	}
	set := func(name string) error {
		if err := shell.OneOf(strings.ToLower(name), names); err != nil {
			return err
		}
		return k.SetDialect(name)
	}
	cmd.Flags().Var(shell.Value{Text: k.SaidDialect, Read: set}, "as", text)
	cmd.RegisterFlagCompletionFunc("as", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
}

// Register adds the flags for the way to the server, and those of more, such as AgentVar.
func (n *Network) Register(cmd *cobra.Command, more ...func(*cobra.Command, *answer.Asker)) {
	for _, add := range more {
		add(cmd, &n.Asker)
	}
	f := cmd.Flags()
	n.Headers = headerFlag{}
	n.UserAgent = UserAgent
	f.VarP(shell.Value{Text: func() string { return n.UserAgent }, Read: func(field string) error {
		n.UserAgent = field
		if f.Lookup("agent") == nil || n.Named {
			return nil
		}
		return n.SetAgent(cmp.Or(policy.ProductToken(field), answer.AnyOther))
	}}, "user-agent", "A", "the User-Agent `FIELD` to send")
	f.DurationVar(&n.Timeout, "timeout", 30*time.Second, "`TIME` for one robots.txt or other file, with redirects and retries")
	f.StringArrayVar(&n.ConnectTo, "connect-to", nil,
		"connect as `FROM:TO` says, in curl's syntax HOST1:PORT1:HOST2:PORT2: an empty HOST1 or PORT1 matches any, "+
			"an empty HOST2 or PORT2 changes nothing. No proxy is used")
	cmd.RegisterFlagCompletionFunc("connect-to", cobra.NoFileCompletions)
	f.BoolVar(&n.obeyWalls, "obey-walls", false,
		"take a login, a refusal (401, 403) or a page in place of robots.txt for unreachable, as a wall in front of the site may mean it")
	f.FuncP("header", "H", "add this `FIELD` to requests to one site: \"SITE NAME: VALUE\", or @FILE with such lines", n.Headers.Set)
	cmd.RegisterFlagCompletionFunc("header", cobra.NoFileCompletions)
	f.StringVar(&n.Signing.Key, "sign-key", "", "sign each https request with the key in this `FILE` (see robots sign)")
	f.StringVar(&n.Signing.Agent, "sign-agent", "", "the https `URL` under which sites find the public key")
	shell.ChoiceVar(cmd, &n.Signing.Form, "signature-agent", "`FORM` of the field that names it: dictionary, or string for sites that know no other",
		signatureForms...)
	cmd.RegisterFlagCompletionFunc("sign-agent", cobra.NoFileCompletions)
}

// Get makes a request for a page, by the name of --user-agent. It is not signed yet, and has no field of
// --header: what sends it has to see to that.
func (n *Network) Get(ctx context.Context, url string) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err == nil {
		req.Header.Set("User-Agent", n.UserAgent)
	}
	return req, err
}

// Read sends the request of Get by via, and returns the answer with the beginning of its body, most bytes at the most.
// There may be both an answer and an error: of a body that broke off. No body is waited for but that of a 200.
func (n *Network) Read(ctx context.Context, via http.RoundTripper, url string, most int64) (*http.Response, []byte, error) {
	req, err := n.Get(ctx, url)
	if err != nil {
		return nil, nil, err
	}
	res, err := via.RoundTrip(req)
	if err != nil {
		return nil, nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return res, nil, nil
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, most))
	return res, body, err
}

// RegisterCache adds the flag for subcommands that need not ask the server each time.
func (n *Network) RegisterCache(cmd *cobra.Command) {
	cmd.Flags().StringVar(&n.CacheAt, "cache", "",
		"keep robots.txt in this `DIR`, or in Redis at redis://HOST:PORT "+
			"(rediss:// with TLS, unix:///SOCKET, Sentinel, cluster: see the README); "+
			"none keeps it in memory only")
}
