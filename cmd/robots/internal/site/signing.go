package site

// --sign-key and --sign-agent, and the file of a key. What signs is package sign; robots sign (sign.go) makes
// keys and tries them.

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/robotsgate/robotsgate/client/sign"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
)

// signing is --sign-key, --sign-agent and --signature-agent.
type signing struct {
	Key, Agent string
	Form       string // of the Signature-Agent field
}

var signatureForms = []string{"dictionary", "string"}

// Signer returns what signs requests; nil without --sign-key.
func (s *signing) Signer() (*sign.Signer, error) {
	switch {
	case s.Key == "" && s.Agent == "":
		return nil, nil
	case s.Key == "":
		return nil, shell.Usagef("--sign-agent names whose key signs: give --sign-key, too")
	case s.Agent == "":
		return nil, shell.Usagef("--sign-key needs --sign-agent: the https URL under which sites find the public key")
	}
	signer, err := ReadKey(s.Key)
	if err != nil {
		return nil, err
	}
	signer.Agent, signer.BareAgent = s.Agent, s.Form != signatureForms[0]
	// A wrong --sign-agent shows when something is signed. Here it is wrong usage; later it would be the
	// failure of each request.
	try := httptest.NewRequest(http.MethodGet, "https://example.com/", nil)
	if err := signer.Sign(try); err != nil {
		return nil, shell.Usagef("%s", strings.Replace(err.Error(), "sign: Signer.Agent", "--sign-agent", 1))
	}
	return signer, nil
}

// maxKey bounds what is read of a key file. A PEM of Ed25519 has some hundred bytes.
const maxKey = 16 << 10

// ReadKey returns a Signer with the Ed25519 key of a PEM file (PKCS #8), as keygen and
// openssl write it. Errors hold nothing of the file.
func ReadKey(name string) (*sign.Signer, error) {
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
