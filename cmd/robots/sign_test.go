package main

import (
	"crypto/ed25519"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/robotsgate/robotsgate/client/sign"
)

// walledCmd is "walled DIRECTORY": example.com is a site over https that admits only requests
// signed by a key of the file DIRECTORY, which it also serves. Its robots.txt forbids /private.
// $TO leads there, and its certificate is trusted.
func walledCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: walled DIRECTORY")
	}
	set := ts.ReadFile(args[0])
	keys, err := sign.ReadKeys([]byte(set))
	ts.Check(err)
	lookUp := func(_, id string) (ed25519.PublicKey, error) {
		if key := keys[id]; key != nil {
			return key, nil
		}
		return nil, errors.New("not listed")
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch _, err := sign.Verify(r, lookUp); {
		case r.URL.Path == sign.DirectoryPath:
			w.Header().Set("Content-Type", sign.DirectoryType)
			w.Write([]byte(set))
		case err != nil:
			w.Header().Set("Accept-Signature", `sig1=("@authority" "signature-agent");tag="web-bot-auth"`)
			http.Error(w, err.Error(), http.StatusForbidden)
		case r.URL.Path == "/robots.txt":
			w.Write([]byte("User-agent: *\nDisallow: /private\n"))
		}
	}))
	ts.Defer(server.Close)
	ca := ts.MkAbs("ca.pem")
	block := &pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}
	ts.Check(os.WriteFile(ca, pem.EncodeToMemory(block), 0o600))
	ts.Setenv("SSL_CERT_FILE", ca)
	ts.Setenv("TO", "::"+server.Listener.Addr().String())
}
