package main

// robots sign: a key, the directory in which sites look it up, and whether a site takes it. Package sign of
// the library signs (Web Bot Auth, RFC 9421); the flags of the other subcommands are in site/signing.go.

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/robotsgate/robotsgate/client/sign"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/site"
	"github.com/robotsgate/robotsgate/policy"
)

// signCommand makes the subcommand, which only holds three others. It takes any arguments, to refuse them
// itself: the library would print the help and exit with 0.
func signCommand(a *shell.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sign",
		Short: "Make and publish the key that signs requests (Web Bot Auth)",
		Long: `Sites begin to admit only crawlers that sign their requests (RFC 9421, in the
profile of draft-ietf-webbotauth-httpsig-protocol). Make a key, publish its
directory, and give the key to check, fetch and filter with --sign-key.`,
		Example: `  robots sign keygen bot.pem
  robots sign directory bot.pem > directory.json
  robots sign check https://site.example/ --sign-key bot.pem \
      --sign-agent https://bot.example`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return shell.UnknownCommand(cmd, args[0])
			}
			return shell.Usagef("say what to do: keygen, directory or check")
		},
		SuggestionsMinimumDistance: 2,
	}
	cmd.AddCommand(keygenCommand(a), directoryCommand(a), signCheckCommand(a))
	return cmd
}

// keygenCommand makes the subcommand. It never overwrites a file: a key that is lost cannot be made again.
// There is no --overwrite for that reason. It prints the key ID, because the file does not show it. openssl
// reads the file, and writes such files.
func keygenCommand(a *shell.App) *cobra.Command {
	return &cobra.Command{
		Use:   "keygen FILE",
		Short: "Make an Ed25519 key",
		Long: `Keygen writes a new private key to FILE, which must not exist, and prints the key
ID under which sites find its public half.`,
		Args: shell.One("FILE"),
		RunE: shell.Runs(func(_ context.Context, args []string) error {
			// Neither can fail with such a key, nor can KeyID: crypto/rand never does.
			_, key, _ := ed25519.GenerateKey(nil)
			der, _ := x509.MarshalPKCS8PrivateKey(key)
			data := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
			// The ID comes behind it: no ID is shown of a key that could not be written.
			if err := writeNew(args[0], data, 0o600); err != nil {
				return err
			}
			id, _ := (&sign.Signer{Key: key}).KeyID()
			var out shell.Output
			fmt.Fprintln(&out, id)
			return a.Emit(&out)
		}),
	}
}

// directoryCommand makes the subcommand. The directory is what the handler of package sign serves, so that a
// file and a server say the same.
func directoryCommand(a *shell.App) *cobra.Command {
	var agent string
	cmd := &cobra.Command{
		Use:   "directory FILE...",
		Short: "Print the directory of the public keys",
		Long: `Directory prints the public halves of private keys as a JSON Web Key Set. Serve it over
https, as ` + sign.DirectoryType + `,
at ` + sign.DirectoryPath + `
of the host in --sign-agent (revision 00 of the draft), and at "/" of it (revision 01).
When you change keys, list the old and the new one for a day.

With --sign-agent it prints the whole response, signed by the keys for the host of that URL. The
signatures hold for a day.`,
		Example: `  robots sign directory bot.pem > directory.json
  robots sign directory bot.pem --sign-agent https://bot.example`,
		Args: shell.AtLeastOne("FILE"),
		RunE: shell.Runs(func(_ context.Context, args []string) error {
			var signers []*sign.Signer
			for _, name := range args {
				s, err := site.ReadKey(name)
				if err != nil {
					return err
				}
				s.Agent = agent
				signers = append(signers, s)
			}
			return printDirectory(a, agent, signers)
		}),
	}
	cmd.Flags().StringVar(&agent, "sign-agent", "", "print the whole response, signed for the host of this https `URL`")
	cmd.RegisterFlagCompletionFunc("sign-agent", cobra.NoFileCompletions)
	return cmd
}

// printDirectory prints the body of a directory, or for an agent its whole response.
func printDirectory(a *shell.App, agent string, signers []*sign.Signer) error {
	handler, err := sign.Directory(signers...)
	if err != nil {
		return err
	}
	var out shell.Output
	w := httptest.NewRecorder()
	if agent == "" {
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "https://localhost/", nil))
		fmt.Fprintf(&out, "%s\n", w.Body)
		return a.Emit(&out)
	}
	handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, agent, nil))
	response, err := httputil.DumpResponse(w.Result(), true)
	if err != nil {
		return err
	}
	fmt.Fprintf(&out, "%s\n", response)
	return a.Emit(&out)
}

// signChecker is "robots sign check". It opens no gate: the request is a person's, and robots.txt has no say
// in it. Nor does it follow redirects: it shows how this site takes this request. --timeout is for all that
// it does.
type signChecker struct {
	*shell.App
	site.Network
}

// signCheckCommand makes the subcommand. It has the flags for the way to the server alone: there is no
// crawler to decide for, and no answer that a cache could keep.
func signCheckCommand(a *shell.App) *cobra.Command {
	c := &signChecker{App: a}
	cmd := &cobra.Command{
		Use:   "check URL",
		Short: "Send one signed request, and look at the published key",
		Long: `Check fetches the key directory of --sign-agent and looks for the key in it. Then it
sends one signed GET for URL, without asking robots.txt, and shows how the site took it.

The directory is looked for where each revision of the draft has it: at the well-known path
of an origin (00), and at the URL of --sign-agent itself (01). The last line of these names
those that the agent suits; one is enough.

The exit status is 1 if the site refuses the request (401 or 403) or no directory lists the
key, and 2 if one of them could not be asked.`,
		Example: `  robots sign check https://site.example/ --sign-key bot.pem \
      --sign-agent https://bot.example`,
		Args: shell.One("URL"),
	}
	cmd.RunE = shell.Runs(func(ctx context.Context, args []string) error {
		if cmd.Flags().Changed("obey-walls") {
			return shell.Usagef("--obey-walls would have no effect: robots.txt is not asked")
		}
		return c.run(ctx, args)
	})
	c.Register(cmd)
	cmd.Flags().Lookup("obey-walls").Hidden = true
	return cmd
}

// run looks at all that can be wrong here before it sends anything: a key that cannot be read must not look
// like the refusal of a site. Then it makes both requests, whatever the first one shows. A site may still
// have what the directory said before: receivers keep it for up to a day.
func (c *signChecker) run(ctx context.Context, args []string) error {
	u, _, err := site.ParseSite(policy.RFC9309, 0, args[0])
	if err != nil {
		return err
	}
	if u.Scheme != "https" {
		return shell.Usagef("argument 1: only https requests are signed")
	}
	signer, err := c.Signing.Signer()
	if err != nil {
		return err
	}
	if signer == nil {
		return shell.Usagef("give --sign-key and --sign-agent")
	}
	base, err := c.Transport()
	if err != nil {
		return err
	}
	defer base.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	id, err := signer.KeyID()
	if err != nil {
		return err
	}
	var out shell.Output
	fmt.Fprintf(&out, "key        %s\n", id)
	if err := c.directories(ctx, &out, base, id); err != nil {
		return err
	}
	c.request(ctx, &out, base, u, c.Headers.Hook(signer))
	if err := ctx.Err(); errors.Is(err, context.Canceled) { // or --timeout has passed: that is told above
		return err
	}
	return c.Emit(&out)
}

// directories looks for the key where each revision of the draft would. An agent that suits one is good.
func (c *signChecker) directories(ctx context.Context, out *shell.Output, base http.RoundTripper, id string) error {
	revision00, revision01, err := sign.KeySetURLs(c.Signing.Agent)
	if err != nil {
		return err
	}
	best, suits := shell.ExitUnknown, ""
	for _, at := range []struct{ revision, url string }{{"00", revision00}, {"01", revision01}} {
		if at.url == "" {
			fmt.Fprintf(out, "draft %s   takes an origin alone: --sign-agent has a path\n", at.revision)
			continue
		}
		fmt.Fprintf(out, "draft %s   %s\n", at.revision, answer.Visible(at.url))
		status := c.directory(ctx, out, base, at.url, id)
		if best = min(best, status); status == shell.ExitOK {
			suits += ", " + at.revision
		}
	}
	fmt.Fprintf(out, "suits      %s\n", cmp.Or(strings.TrimPrefix(suits, ", "), "no revision"))
	out.Worsen(best)
	return nil
}

// directory looks for the key at one URL, and returns a status. A directory is read without redirects, without
// a signature, and without the fields of --header, which are for the site. Status 1 is for what its owner can
// mend, and 2 for a directory that could not be read: nothing is known of that. Of one that was read, all
// faults are told.
func (c *signChecker) directory(ctx context.Context, out *shell.Output, base http.RoundTripper, at, id string) (status int) {
	said := func(worse int, format string, args ...any) {
		fmt.Fprintf(out, "           %s\n", answer.Visible(fmt.Sprintf(format, args...)))
		status = max(status, worse)
	}
	// It is more than ReadKeys takes: that says so of a longer one, and the rest need not be read.
	resp, body, err := c.Read(ctx, base, at, 1<<17)
	switch {
	case err != nil:
		said(shell.ExitUnknown, "not read: %v", err)
		return status
	case resp.StatusCode != http.StatusOK:
		said(shell.ExitRefused, "%s: sites take 200 only, and follow no redirect", resp.Status)
		return status
	}
	// Keys come beside an error, too: what is wrong with another key does not hide that ours is there.
	keys, err := sign.ReadKeys(body)
	if err != nil {
		said(shell.ExitRefused, "%v", err)
	}
	if t := resp.Header.Get("Content-Type"); t != sign.DirectoryType {
		said(shell.ExitRefused, "its type is %q, not %s", t, sign.DirectoryType)
	}
	if keys[id] == nil {
		said(shell.ExitRefused, "lists %s, but not this one", answer.Plural(len(keys), "key"))
		return status
	}
	said(shell.ExitOK, "lists the key")
	// A directory need not be signed. Only a signature that is there and does not hold is a fault.
	if err := sign.VerifyDirectory(resp.Request.URL, resp.Header, body); errors.Is(err, sign.ErrInvalid) {
		said(shell.ExitRefused, "%v", err)
	}
	return status
}

// request sends the signed request and shows what came of it. Signatures have a time, so it also tells of a
// clock that is wrong. A 401 or a 403 is a refusal. Other statuses, a 404 or a 500 too, say nothing about the
// signature, and leave the exit status as it is: the line shows them.
func (c *signChecker) request(ctx context.Context, out *shell.Output, base http.RoundTripper, u *url.URL, hook func(*http.Request) error) {
	req, err := c.Get(ctx, u.String())
	if err == nil {
		err = hook(req)
	}
	if err != nil {
		out.Complain(err)
		return
	}
	fmt.Fprintf(out, "request    GET %s\n", answer.Visible(u.Redacted()))
	resp, err := base.RoundTrip(req)
	if err != nil {
		fmt.Fprintf(out, "           no answer: %s\n", answer.Visible(err.Error()))
		out.Worsen(shell.ExitUnknown)
		return
	}
	defer resp.Body.Close()
	fmt.Fprintf(out, "           %s\n", answer.Visible(resp.Status))
	if wants := strings.Join(resp.Header.Values("Accept-Signature"), ", "); wants != "" {
		fmt.Fprintf(out, "           it wants %s\n", answer.Visible(wants))
	}
	if date, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		if ahead := time.Since(date); ahead.Abs() > time.Minute {
			fmt.Fprintf(out, "           this clock differs from the site's by %v\n", ahead.Round(time.Second))
		}
	}
	if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden {
		out.Worsen(shell.ExitRefused)
	}
}
