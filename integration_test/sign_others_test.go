package integration_test

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/client/sign"
	"github.com/robotsgate/robotsgate/integration_test/tier"
)

// others has two JavaScript libraries check the messages of stdin, and sign the requests anew. It prints what they say of
// each, and their headers. Only web-bot-auth knows the bare agent; it knows no other.
const others = `
import crypto from 'node:crypto';
import fs from 'node:fs';
import { httpbis } from 'http-message-signatures';
import * as bare from 'web-bot-auth';
import { signerFromJWK, verifierFromJWK } from 'web-bot-auth/crypto';

const { pem, keyid, messages } = JSON.parse(fs.readFileSync(0));
const key = crypto.createPrivateKey(pem), jwk = key.export({ format: 'jwk' });
const keyLookup = async () => ({ verify: async (data, signature) => crypto.verify(null, data, crypto.createPublicKey(key), signature) });
const from = new Date(), until = new Date(Date.now() + 60000);

async function check({ bareAgent, request, response }) {
	if (bareAgent) return await bare.verify(new Request(request.url, request), await verifierFromJWK(jwk)).then(() => true);
	return response ? httpbis.verifyMessage({ keyLookup }, response, request) : httpbis.verifyMessage({ keyLookup }, request);
}

async function sign({ bareAgent, request }) {
	const headers = { 'Signature-Agent': request.headers['Signature-Agent'] };
	if (bareAgent) {
		const added = await bare.signatureHeaders(new Request(request.url, { headers }), await signerFromJWK(jwk), { created: from, expires: until });
		return { ...headers, ...added };
	}
	const config = {
		key: { id: keyid, sign: async (data) => crypto.sign(null, data, key) }, name: 'sig1', fields: ['@authority', '"signature-agent";key="sig1"'],
		params: ['created', 'expires', 'keyid', 'tag'], paramValues: { created: from, expires: until, tag: 'web-bot-auth' },
	};
	return (await httpbis.signMessage(config, { ...request, headers })).headers;
}

const answers = [];
for (const m of messages) answers.push({ holds: await check(m).catch(String), headers: m.response ? {} : await sign(m) });
console.log(JSON.stringify(answers));
`

// message is one that the libraries are given, and what they have to find.
type message struct {
	BareAgent bool           `json:"bareAgent"`
	Request   map[string]any `json:"request"`
	Response  map[string]any `json:"response"`
	agent     string
	holds     bool
}

// Two other implementations take the signatures of both revisions of the draft, of the form before them and of a
// directory, and Verify takes theirs. A wrong agent is refused.
func TestOtherImplementationsAgreeOnSignatures(t *testing.T) {
	tier.Nightly(t)
	s := newSigner(t)
	keyID, err := s.KeyID()
	if err != nil {
		t.Fatal(err)
	}
	var messages []message
	for _, link := range []string{"https://www.example.com/a?b=c", "https://www.example.com:443/robots.txt", "https://xn--mnchen-3ya.example/"} {
		for _, agent := range []string{"https://bot.example", "https://bot.example/keys.json", "bare"} {
			if s.Agent, s.BareAgent = agent, agent == "bare"; s.BareAgent {
				s.Agent = "https://bot.example"
			}
			r := httptest.NewRequest(http.MethodGet, link, nil)
			if err := s.Sign(r); err != nil {
				t.Fatal(err)
			}
			good := map[string]any{"method": r.Method, "url": link, "headers": fieldsOf(r.Header)}
			r.Header.Set("Signature-Agent", strings.Replace(r.Header.Get("Signature-Agent"), "bot", "bad", 1))
			bad := map[string]any{"method": r.Method, "url": link, "headers": fieldsOf(r.Header)}
			messages = append(messages, message{s.BareAgent, good, nil, s.Agent, true}, message{s.BareAgent, bad, nil, s.Agent, false})
		}
	}
	handler, err := sign.Directory(&sign.Signer{Key: s.Key, Agent: "https://bot.example"})
	if err != nil {
		t.Fatal(err)
	}
	link := "https://bot.example" + sign.DirectoryPath
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, link, nil))
	response := map[string]any{"status": w.Code, "headers": fieldsOf(w.Header())}
	for at, holds := range map[string]bool{link: true, "https://bad.example/": false} {
		request := map[string]any{"method": http.MethodGet, "url": at, "headers": map[string]string{}}
		messages = append(messages, message{false, request, response, "", holds})
	}
	for i, answer := range askOthers(t, s.Key, keyID, messages) {
		m := messages[i]
		if (answer.Holds == true) != m.holds {
			t.Errorf("%v: it says %v, want %v", m, answer.Holds, m.holds)
		}
		if m.Response != nil || !m.holds {
			continue
		}
		r := httptest.NewRequest(http.MethodGet, m.Request["url"].(string), nil)
		for name, value := range answer.Headers {
			r.Header.Set(name, value)
		}
		got, err := sign.Verify(r, func(string, string) (ed25519.PublicKey, error) {
			return s.Key.Public().(ed25519.PublicKey), nil
		})
		if err != nil || got.Agent != m.agent || got.KeyID != keyID {
			t.Errorf("%v: %+v, %v", r.Header, got, err)
		}
	}
}

func fieldsOf(h http.Header) map[string]string {
	fields := map[string]string{}
	for name, lines := range h {
		fields[name] = strings.Join(lines, ", ")
	}
	return fields
}

// othersAnswer is what a library says of a message: true if its signature holds, and the fields of its own signature.
type othersAnswer struct {
	Holds   any
	Headers map[string]string
}

// askOthers runs the libraries.
func askOthers(t *testing.T, key crypto.Signer, keyID string, messages []message) (answers []othersAnswer) {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	private := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	input, err := json.Marshal(map[string]any{"pem": private, "keyid": keyID, "messages": messages})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "others.mjs"), []byte(others), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "http-message-signatures@1.0.6", "web-bot-auth@0.1.3"},
		{"node", "others.mjs"},
	} {
		var out, said bytes.Buffer
		cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
		cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = dir, bytes.NewReader(input), &out, &said
		switch err = cmd.Run(); {
		case err != nil && args[0] == "npm":
			t.Skipf("%q: %v: %s", args, err, &said)
		case err != nil:
			t.Fatalf("%q: %v: %s", args, err, &said)
		case args[0] == "node":
			err = json.Unmarshal(out.Bytes(), &answers)
		}
	}
	if err != nil || len(answers) != len(messages) {
		t.Fatalf("%d answers to %d messages, %v", len(answers), len(messages), err)
	}
	return answers
}
