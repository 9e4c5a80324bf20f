package main

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/robotsgate/robotsgate/client/sign"
)

// signing is --sign-key and --sign-agent.
type signing struct{ key, agent string }

func (s *signing) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.key, "sign-key", "", "sign each https request with the key in this `FILE` (see robots sign)")
	f.StringVar(&s.agent, "sign-agent", "", "the https `URL` under which sites find the public key")
	cmd.RegisterFlagCompletionFunc("sign-agent", cobra.NoFileCompletions)
}

// hook returns what signs a request; nil without --sign-key.
func (s *signing) hook() (func(*http.Request) error, error) {
	switch {
	case s.key == "" && s.agent == "":
		return nil, nil
	case s.key == "":
		return nil, usagef("--sign-agent names whose key signs: give --sign-key, too")
	case s.agent == "":
		return nil, usagef("--sign-key needs --sign-agent: the https URL under which sites find the public key")
	}
	signer, err := readKey(s.key)
	if err != nil {
		return nil, err
	}
	signer.Agent = s.agent
	try := httptest.NewRequest(http.MethodGet, "https://example.com/", nil)
	if err := signer.Sign(try); err != nil {
		return nil, usagef("--sign-agent: %w", err)
	}
	return signer.Sign, nil
}

// maxKey bounds a key file.
const maxKey = 16 << 10

// readKey returns a Signer with the Ed25519 key of a PEM file (PKCS #8), as keygen and
// openssl write it. Errors hold nothing of the file.
func readKey(name string) (*sign.Signer, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxKey))
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(data)
	if block == nil || block.Type != "PRIVATE KEY" {
		return nil, fmt.Errorf("%s holds no PRIVATE KEY in PEM: make one with robots sign keygen", name)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	own, ok := key.(ed25519.PrivateKey)
	if err != nil || !ok {
		return nil, fmt.Errorf("%s holds no Ed25519 key: make one with robots sign keygen", name)
	}
	return &sign.Signer{Key: own}, nil
}

// sign makes the subcommand.
func (a *app) sign() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sign",
		Short: "Make and publish the key that signs requests (Web Bot Auth)",
		Long: `Sites begin to admit only crawlers that sign their requests (RFC 9421, in the
profile of draft-ietf-webbotauth-httpsig-protocol). Make a key, publish its
directory, and give the key to check, fetch and filter with --sign-key.`,
		Example: `  robots sign keygen bot.pem
  robots sign directory bot.pem > directory.json
  robots sign check https://site.example/ --sign-key bot.pem --sign-agent https://bot.example`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			return usagef("say what to do: keygen, directory or check")
		},
		SuggestionsMinimumDistance: 2,
	}
	cmd.AddCommand(a.signKeygen(), a.signDirectory(), a.signCheck())
	return cmd
}

func (a *app) signKeygen() *cobra.Command {
	return &cobra.Command{
		Use:   "keygen FILE",
		Short: "Make an Ed25519 key",
		Long: `Keygen writes a new private key to FILE, which must not exist, and prints the key
ID under which sites find its public half.`,
		Args: one("FILE"),
		RunE: runs(func(_ context.Context, args []string) error {
			_, key, err := ed25519.GenerateKey(rand.Reader)
			if err != nil {
				return err
			}
			der, err := x509.MarshalPKCS8PrivateKey(key)
			if err != nil {
				return err
			}
			data := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
			if err := writeNew(args[0], data, 0o600); err != nil {
				return err
			}
			id, err := (&sign.Signer{Key: key}).KeyID()
			if err != nil {
				return err
			}
			var out output
			fmt.Fprintln(&out, id)
			return a.emit(&out)
		}),
	}
}

func (a *app) signDirectory() *cobra.Command {
	return &cobra.Command{
		Use:   "directory FILE...",
		Short: "Print the directory of the public keys",
		Long: `Directory prints the public halves of private keys as a JSON Web Key Set. Serve it at
` + sign.DirectoryPath + `
of the host in --sign-agent, over https, as
` + sign.DirectoryType + `.
When you change keys, list the old and the new one for a day.`,
		Args: atLeastOne("FILE"),
		RunE: runs(func(_ context.Context, args []string) error {
			var signers []*sign.Signer
			for _, name := range args {
				s, err := readKey(name)
				if err != nil {
					return err
				}
				signers = append(signers, s)
			}
			handler, err := sign.Directory(signers...)
			if err != nil {
				return err
			}
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "https://localhost/", nil))
			var out output
			fmt.Fprintf(&out, "%s\n", w.Body)
			return a.emit(&out)
		}),
	}
}

// signChecker is "robots sign check".
type signChecker struct {
	*app
	network
}

func (a *app) signCheck() *cobra.Command {
	c := &signChecker{app: a}
	cmd := &cobra.Command{
		Use:   "check URL",
		Short: "Send one signed request, and look at the published key",
		Long: `Check fetches the key directory of --sign-agent and looks for the key in it. Then it
sends one signed GET for URL, without asking robots.txt, and shows how the site took it.

The exit status is 1 if the site refuses the request (401 or 403) or the directory does
not list the key, and 2 if one of them could not be asked.`,
		Example: `  robots sign check https://site.example/ --sign-key bot.pem --sign-agent https://bot.example`,
		Args:    one("URL"),
		RunE:    runs(c.run),
	}
	c.register(cmd)
	return cmd
}

func (c *signChecker) run(ctx context.Context, args []string) error {
	u, _, err := parseSite(0, args[0])
	if err != nil {
		return err
	}
	if u.Scheme != "https" {
		return usagef("argument 1: only https requests are signed")
	}
	hook, err := c.signing.hook()
	if err != nil {
		return err
	}
	if hook == nil {
		return usagef("give --sign-key and --sign-agent")
	}
	base, err := c.transport()
	if err != nil {
		return err
	}
	defer base.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	signer, err := readKey(c.signing.key)
	if err != nil {
		return err
	}
	id, err := signer.KeyID()
	if err != nil {
		return err
	}
	var out output
	fmt.Fprintf(&out, "key        %s\n", id)
	c.directory(ctx, &out, base, id)
	c.request(ctx, &out, base, u, c.headers.hook(hook))
	return c.emit(&out)
}

// directory looks for the key where sites will. A directory is read without redirects.
func (c *signChecker) directory(ctx context.Context, out *output, base http.RoundTripper, id string) {
	at, err := sign.DirectoryURL(c.signing.agent)
	if err != nil {
		out.complain(err)
		return
	}
	fmt.Fprintf(out, "directory  %s\n", visible(at))
	said := func(status int, format string, args ...any) {
		fmt.Fprintf(out, "           %s\n", visible(fmt.Sprintf(format, args...)))
		out.worsen(status)
	}
	req, err := c.newRequest(ctx, at)
	if err != nil {
		out.complain(err)
		return
	}
	resp, err := base.RoundTrip(req)
	if err != nil {
		said(exitUnknown, "not read: %v", err)
		return
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<17))
	switch {
	case err != nil:
		said(exitUnknown, "not read: %v", err)
		return
	case resp.StatusCode != http.StatusOK:
		said(exitRefused, "%s: sites take 200 only, and follow no redirect", resp.Status)
		return
	}
	keys, err := sign.ReadKeys(body)
	if err != nil {
		said(exitRefused, "%v", err)
	}
	if t := resp.Header.Get("Content-Type"); t != sign.DirectoryType {
		said(exitRefused, "its type is %q, not %s", t, sign.DirectoryType)
	}
	if keys[id] == nil {
		said(exitRefused, "lists %s, but not this one", plural(len(keys), "key"))
		return
	}
	said(exitOK, "lists the key")
	if err := sign.VerifyDirectory(req.URL, resp.Header, body); errors.Is(err, sign.ErrInvalid) {
		said(exitRefused, "%v", err)
	}
}

// request sends the signed request and shows what came of it.
func (c *signChecker) request(ctx context.Context, out *output, base http.RoundTripper, u *url.URL, hook func(*http.Request) error) {
	req, err := c.newRequest(ctx, u.String())
	if err == nil {
		err = hook(req)
	}
	if err != nil {
		out.complain(err)
		return
	}
	fmt.Fprintf(out, "request    GET %s\n", visible(u.Redacted()))
	resp, err := base.RoundTrip(req)
	if err != nil {
		fmt.Fprintf(out, "           no answer: %s\n", visible(err.Error()))
		out.worsen(exitUnknown)
		return
	}
	defer resp.Body.Close()
	fmt.Fprintf(out, "           %s\n", visible(resp.Status))
	if wants := strings.Join(resp.Header.Values("Accept-Signature"), ", "); wants != "" {
		fmt.Fprintf(out, "           it wants %s\n", visible(wants))
	}
	if date, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		if ahead := time.Since(date); ahead.Abs() > time.Minute {
			fmt.Fprintf(out, "           this clock differs from the site's by %v\n", ahead.Round(time.Second))
		}
	}
	if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden {
		out.worsen(exitRefused)
	}
}

func (c *signChecker) newRequest(ctx context.Context, at string) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", c.userAgent)
	return req, nil
}
