package sign_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/client/sign"
)

// A crawler that signs everything it sends over https.
func Example() {
	_, key, err := ed25519.GenerateKey(rand.Reader) // keep it: sites look up its public half
	if err != nil {
		log.Fatal(err)
	}
	signer := &sign.Signer{Key: key, Agent: "https://bot.example"}
	c := &http.Client{Transport: &client.Transport{
		UserAgent: "ExampleBot/1.0 (+https://bot.example)",
		Sign:      signer.Sign,
	}}
	_ = c
	directory, err := sign.Directory(signer)
	if err != nil {
		log.Fatal(err)
	}
	http.Handle(sign.DirectoryPath, directory) // at https://bot.example
}

// What a request looks like once it is signed.
func ExampleSigner_Sign() {
	signer := &sign.Signer{Key: ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)), Agent: "https://bot.example"}
	req := httptest.NewRequest(http.MethodGet, "https://site.example/page", nil)
	if err := signer.Sign(req); err != nil {
		log.Fatal(err)
	}
	fmt.Println(req.Header.Get("Signature-Agent"))
	fmt.Println(req.Header.Get("Signature-Input")[:51])
	// Output:
	// sig1="https://bot.example"
	// sig1=("@authority" "signature-agent";key="sig1");cr
}
