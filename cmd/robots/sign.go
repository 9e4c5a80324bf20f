package main

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
	"github.com/robotsgate/robotsgate/fetch"
)

// signCommand makes the subcommand, which only holds three others. It takes any arguments, to refuse them itself.
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
		Args:                       cobra.ArbitraryArgs,
		RunE:                       shell.NeedsCommand,
		SuggestionsMinimumDistance: 2,
	}
	cmd.AddCommand(keygenCommand(a), directoryCommand(a), signCheckCommand(a))
	return cmd
}

// keygenCommand makes the subcommand. It prints the key ID, because the file does not show it.
func keygenCommand(a *shell.App) *cobra.Command {
	return &cobra.Command{
		Use:   "keygen FILE",
		Short: "Make an Ed25519 key",
		Long: `Keygen writes a new private key to FILE, which must not exist, and prints the
key ID under which sites find its public half.`,
		Args: shell.Args(1, 1, "one FILE"),
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
			_, err := fmt.Fprintln(a.Out, id)
			return err
		}),
	}
}

// directoryCommand makes the subcommand. A file and a server say the same.
func directoryCommand(a *shell.App) *cobra.Command {
	var agent string
	cmd := &cobra.Command{
		Use:   "directory FILE...",
		Short: "Print the directory of the public keys",
		Long: `Directory prints the public halves of private keys as a JSON Web Key Set. Serve
it over https, as ` + sign.DirectoryType + `,
at ` + sign.DirectoryPath + `
of the host in --sign-agent (revision 00 of the draft), and at "/" of it
(revision 01). When you change keys, list the old and the new one for a day.

With --sign-agent it prints the whole response, signed by the keys for the host
of that URL. The signatures hold for a day.`,
		Example: `  robots sign directory bot.pem > directory.json
  robots sign directory bot.pem --sign-agent https://bot.example`,
		Args: shell.Args(1, shell.Many, "a FILE"),
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
			handler, err := sign.Directory(signers...)
			if err != nil { // which is about the Agent, as the keys were read
				_, why, _ := strings.Cut(err.Error(), "Signer.Agent")
				return shell.Usagef("--sign-agent%s", why)
			}
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, cmp.Or(agent, "https://localhost/"), nil))
			response := w.Body.Bytes()
			if agent != "" {
				if response, err = httputil.DumpResponse(w.Result(), true); err != nil {
					return err
				}
			}
			_, err = fmt.Fprintf(a.Out, "%s\n", response)
			return err
		}),
	}
	cmd.Flags().StringVar(&agent, "sign-agent", "", "print the whole response, signed for the host of this https `URL`")
	return cmd
}

// signChecker is "robots sign check". Its request is a person's, so robots.txt has no say in it; it follows no redirect.
type signChecker struct {
	*shell.App
	site.Network
	out shell.Output
}

func signCheckCommand(a *shell.App) *cobra.Command {
	c := &signChecker{App: a}
	cmd := &cobra.Command{
		Use:   "check URL",
		Short: "Send one signed request, and look at the published key",
		Long: `Check fetches the key directory of --sign-agent and looks for the key in it.
Then it sends one signed GET for URL, without asking robots.txt, and shows how
the site took it.

The directory is looked for where each revision of the draft has it: at the
well-known path of an origin (00), and at the URL of --sign-agent itself (01).
The last line of these names those that the agent suits; one is enough.

The exit status is 1 if the site refuses the request (401 or 403) or no
directory lists the key, and 2 if one of them could not be asked.`,
		Example: `  robots sign check https://site.example/ --sign-key bot.pem \
      --sign-agent https://bot.example`,
	}
	c.One(cmd, a, c.run)
	c.Register(cmd)
	return cmd
}

// run makes all requests, whatever the first ones show: receivers keep for up to a day what a directory said. --timeout is
// for all of them.
func (c *signChecker) run(ctx context.Context, g *site.Gate, u *url.URL, _ fetch.Origin) error {
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
	id, _ := signer.KeyID() // Signer has tried both the key and the agent
	limited, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	fmt.Fprintf(&c.out, "key        %s\n", id)
	c.directories(limited, g.Base, id)
	c.request(limited, g, u)
	if err := ctx.Err(); err != nil {
		return err
	}
	return c.Emit(&c.out)
}

// said tells something about the URL above it.
func (c *signChecker) said(format string, args ...any) {
	fmt.Fprintf(&c.out, "           %s\n", answer.Visible(fmt.Sprintf(format, args...)))
}

// directories looks for the key where each revision of the draft would. An agent that suits one is good.
func (c *signChecker) directories(ctx context.Context, base http.RoundTripper, id string) {
	revision00, revision01, _ := sign.KeySetURLs(c.Signing.Agent)
	best, suits := shell.ExitUnknown, []string{}
	for _, at := range []struct{ revision, url string }{{"00", revision00}, {"01", revision01}} {
		if at.url == "" {
			fmt.Fprintf(&c.out, "draft %s   takes an origin alone: --sign-agent has a path\n", at.revision)
			continue
		}
		fmt.Fprintf(&c.out, "draft %s   %s\n", at.revision, answer.Visible(at.url))
		status := c.directory(ctx, base, at.url, id)
		if best = min(best, status); status == shell.ExitOK {
			suits = append(suits, at.revision)
		}
	}
	fmt.Fprintf(&c.out, "suits      %s\n", cmp.Or(strings.Join(suits, ", "), "no revision"))
	c.out.Worsen(best)
}

// directory looks for the key at one URL, without redirects, a signature, or the fields of --header. It tells all faults,
// and returns 1 for what its owner can mend, and 2 for a directory that could not be read.
func (c *signChecker) directory(ctx context.Context, base http.RoundTripper, at, id string) (status int) {
	// It is more than ReadKeys takes: that says so of a longer one, and the rest need not be read.
	res, body, err := c.Read(ctx, base, at, 1<<17)
	switch {
	case err != nil:
		c.said("not read: %v", err)
		return shell.ExitUnknown
	case res.StatusCode != http.StatusOK:
		c.said("%s: sites take 200 only, and follow no redirect", res.Status)
		return shell.ExitRefused
	}
	fault := func(format string, args ...any) {
		c.said(format, args...)
		status = shell.ExitRefused
	}
	// Keys come beside an error, too: what is wrong with another key does not hide that ours is there.
	keys, err := sign.ReadKeys(body)
	if err != nil {
		fault("%v", err)
	}
	if t := res.Header.Get("Content-Type"); t != sign.DirectoryType {
		fault("its type is %q, not %s", t, sign.DirectoryType)
	}
	if keys[id] == nil {
		fault("lists %s, but not this one", answer.Plural(len(keys), "key"))
		return status
	}
	c.said("lists the key")
	// A directory need not be signed. Only a signature that is there and does not hold is a fault.
	if err := sign.VerifyDirectory(res.Request.URL, res.Header, body); errors.Is(err, sign.ErrInvalid) {
		fault("%v", err)
	}
	return status
}

// request sends the signed request and shows what came of it. Signatures have a time, so it also tells of a clock that is
// wrong. Other statuses than 401 and 403 say nothing about the signature.
func (c *signChecker) request(ctx context.Context, g *site.Gate, u *url.URL) {
	req, err := c.Get(ctx, u.String())
	if err == nil {
		err = g.Sign(req)
	}
	if err != nil {
		c.out.Complain(err)
		return
	}
	fmt.Fprintf(&c.out, "request    GET %s\n", answer.Visible(u.Redacted()))
	res, err := g.Base.RoundTrip(req)
	if err != nil {
		c.said("no answer: %v", err)
		c.out.Worsen(shell.ExitUnknown)
		return
	}
	defer res.Body.Close()
	c.said("%s", res.Status)
	if wants := strings.Join(res.Header.Values("Accept-Signature"), ", "); wants != "" {
		c.said("it wants %s", wants)
	}
	if date, err := http.ParseTime(res.Header.Get("Date")); err == nil {
		if ahead := time.Since(date); ahead.Abs() > time.Minute {
			c.said("this clock differs from the site's by %v", ahead.Round(time.Second))
		}
	}
	if res.StatusCode == http.StatusUnauthorized || res.StatusCode == http.StatusForbidden {
		c.out.Worsen(shell.ExitRefused)
	}
}
