package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/proxy"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
)

// authority reads --ca and --ca-key.
func (p *proxying) authority() (*proxy.Authority, error) {
	if p.ca == "" {
		return nil, nil
	}
	certificate, err := os.ReadFile(p.ca)
	if err != nil {
		return nil, err
	}
	key, err := os.ReadFile(p.caKey)
	if err != nil {
		return nil, err
	}
	a, err := proxy.NewAuthority(certificate, key)
	if err != nil {
		return nil, shell.Usagef("--ca %s, --ca-key %s: %w", p.ca, p.caKey, err)
	}
	return a, nil
}

func (p *proxying) proxyCA() *cobra.Command {
	var only []string
	var days int
	cmd := &cobra.Command{
		Use:   "ca CERTIFICATE KEY",
		Short: "Make the CA that lets the proxy look into https",
		Long: `Ca makes a CA and writes its certificate and its key to two files, which must not exist.

Let the programs that are to use the proxy trust the certificate, and no others: who has
the key can pass for any site to those who trust it. --only makes a CA that can speak
for some domains alone, and clients hold it to that.`,
		Example: `  robots proxy ca ca.pem ca.key
  robots proxy --ca ca.pem --ca-key ca.key
  https_proxy=http://127.0.0.1:3128 curl --cacert ca.pem https://example.com/`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return shell.Usagef("give two files: for the certificate, and for the key")
			}
			return nil
		},
	}
	cmd.RunE = shell.Runs(func(_ context.Context, args []string) error {
		if days < 1 || days > maxDays {
			return shell.Usagef("--days is %d, not from 1 to %d", days, maxDays)
		}
		if i := slices.IndexFunc(only, noDomain); i >= 0 {
			return shell.Usagef("--only %s is no domain, such as example.com", answer.Quoted(only[i]))
		}
		certificate, key, err := proxy.MakeAuthority("robotsgate "+time.Now().Format(time.DateOnly), only,
			time.Duration(days)*24*time.Hour)
		if err != nil {
			return err
		}
		return writeBoth(args[0], certificate, args[1], key)
	})
	f := cmd.Flags()
	f.StringSliceVar(&only, "only", nil, "`DOMAINS` that the CA speaks for, with all below them")
	f.IntVar(&days, "days", 365, "`NUMBER` of days that the CA is valid")
	return cmd
}

const maxDays = 3650

// noDomain reports whether a CA for name would speak for no host: constraints of addresses are others, and a
// final dot is no part of a name in a certificate.
func noDomain(name string) bool {
	_, err := netip.ParseAddr(name)
	return err == nil || name == "" || strings.ContainsAny(name, "*/:@ ") || strings.HasSuffix(name, ".")
}

// writeBoth writes both files, or none. Neither may exist.
func writeBoth(certificateAt string, certificate []byte, keyAt string, key []byte) error {
	if err := writeNew(keyAt, key, 0o600); err != nil {
		return err
	}
	if err := writeNew(certificateAt, certificate, 0o644); err != nil {
		return errors.Join(err, os.Remove(keyAt))
	}
	return nil
}

// writeNew writes a file that must not exist.
func writeNew(name string, data []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists: a key that is overwritten is lost", name)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(name)
	}
	return err
}
