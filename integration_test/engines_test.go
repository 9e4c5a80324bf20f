package integration_test

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/robotsgate/robotsgate/cache"
	"github.com/robotsgate/robotsgate/cache/cachetest"
	"github.com/robotsgate/robotsgate/cache/redisstore"
	"github.com/robotsgate/robotsgate/client/turns"
	"github.com/robotsgate/robotsgate/client/turns/redisturns"
	"github.com/robotsgate/robotsgate/client/turns/turnstest"
	"github.com/robotsgate/robotsgate/integration_test/proc"
	"github.com/robotsgate/robotsgate/integration_test/tier"
)

// engines are the ways to a Redis. says is what the error has to contain; if empty, there is
// none.
var engines = []struct {
	name  string
	start func(t *testing.T) (url string, env []string)
	says  string
}{
	{"a password", func(t *testing.T) (string, []string) {
		s := startRedis(t)
		s.do(t, "CONFIG", "SET", "requirepass", "pass/word")
		return "redis://:pass%2Fword@" + s.client.Options().Addr, nil
	}, ""},
	{"a wrong password", func(t *testing.T) (string, []string) {
		s := startRedis(t)
		s.do(t, "CONFIG", "SET", "requirepass", "right")
		return "redis://:wrong@" + s.client.Options().Addr, nil
	}, "WRONGPASS"},
	{"a user of the ACL", func(t *testing.T) (string, []string) {
		s := startRedis(t)
		// As the documentation of redisstore has it.
		s.do(t, "ACL", "SETUSER", "crawler", "on", ">word", "~robotsgate:*", "&robotsgate:*", "+@all", "-@admin", "-@dangerous")
		return "redis://crawler:word@" + s.client.Options().Addr, nil
	}, ""},
	{"a user without the keys", func(t *testing.T) (string, []string) {
		s := startRedis(t)
		s.do(t, "ACL", "SETUSER", "crawler", "on", ">word", "~others:*", "&*", "+@all")
		return "redis://crawler:word@" + s.client.Options().Addr, nil
	}, "NOPERM"},
	{"a database", func(t *testing.T) (string, []string) { return startRedis(t).url + "/3", nil }, ""},
	{"a unix socket", func(t *testing.T) (string, []string) {
		path := proc.Socket(t)
		startRedis(t, "--unixsocket", path)
		return "unix://" + path + "?db=1", nil
	}, ""},
	{"TLS", func(t *testing.T) (string, []string) {
		addr, roots := startRedisWithTLS(t)
		return "rediss://" + addr, []string{"SSL_CERT_FILE=" + roots}
	}, ""},
	{"TLS of an unknown authority", func(t *testing.T) (string, []string) {
		addr, _ := startRedisWithTLS(t)
		return "rediss://" + addr, nil
	}, "x509: certificate signed by unknown authority"},
	{"TLS, not verified", func(t *testing.T) (string, []string) {
		addr, _ := startRedisWithTLS(t)
		return "rediss://" + addr + "?skip_verify=true", nil
	}, ""},
	{"a Sentinel", func(t *testing.T) (string, []string) { return startSentinel(t).url, nil }, ""},
	{"a Sentinel that knows no such master", func(t *testing.T) (string, []string) {
		return strings.Replace(startSentinel(t).url, "mymaster", "another", 1), nil
	}, "redis: all sentinels specified in configuration are unreachable"},
	{"a cluster", func(t *testing.T) (string, []string) { return startCluster(t).url, nil }, ""},
	{"a cluster of which one node is known", func(t *testing.T) (string, []string) {
		addr := startCluster(t).nodes[1].client.Options().Addr
		return "redis://" + addr + "?addr=" + addr, nil
	}, ""},
	{"one node of a cluster", func(t *testing.T) (string, []string) {
		return startCluster(t).nodes[1].url, nil
	}, "MOVED"},
}

// Values, locks and turns go over any way to a Redis that a URL can name.
func TestRedisServesOverEveryWayToIt(t *testing.T) {
	t.Parallel()
	for _, tt := range engines {
		t.Run(tt.name, func(t *testing.T) {
			if strings.HasPrefix(tt.name, "a cluster") {
				tier.Nightly(t) // a place that is free is told through all nodes: on a busy machine that may take ten seconds
			}
			t.Parallel()
			url, env := tt.start(t)
			cmd := proc.Child(t, "engine", append(env, "ROBOTSGATE_REDIS="+url)...)
			out, said := proc.Lines(t, cmd), ""
			for out.Scan() {
				said += out.Text()
			}
			if err := cmd.Wait(); err != nil || tt.says == "" && said != "" || !strings.Contains(said, tt.says) {
				t.Errorf("%v, %s; want %q", err, said, tt.says)
			}
		})
	}
}

// childTriesEngine uses each of what the stores do once, and prints what fails.
func childTriesEngine(redisURL string) {
	values, err := redisstore.Open(redisURL)
	if err != nil {
		proc.Fail(err)
	}
	defer values.Close()
	shared := &redisturns.Store{Client: values.Client}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for i := range 10 { // in several slots of a cluster
		if err := tryEngine(ctx, values, shared, siteURL(i).Host); err != nil {
			fmt.Println(err)
			return
		}
	}
}

func tryEngine(ctx context.Context, values *redisstore.Store, shared *redisturns.Store, key string) error {
	if err := values.Put(ctx, key, []byte(key), time.Minute); err != nil {
		return err
	}
	if got, err := values.Get(ctx, key); err != nil || string(got) != key {
		return fmt.Errorf("got %q: %w", got, err)
	}
	unlock, ok, err := values.Lock(ctx, key, time.Minute)
	if err != nil || !ok {
		return fmt.Errorf("locked %t: %w", ok, err)
	}
	unlock()
	if unlock, ok, err = values.Lock(ctx, key, time.Minute); err != nil || !ok {
		return fmt.Errorf("locked again %t: %w", ok, err)
	}
	unlock()
	for _, want := range []time.Duration{0, time.Minute} {
		wait, ok, err := shared.Reserve(ctx, key, time.Minute, 0, time.Hour)
		if err != nil || !ok || wait > want || wait < want/2 {
			return fmt.Errorf("a start in %v, %t: %w; want %v", wait, ok, err, want)
		}
	}
	if rest, err := shared.Pause(ctx, key, time.Minute); err != nil || rest != time.Minute {
		return fmt.Errorf("a pause of %v: %w", rest, err)
	}
	return nil
}

func TestAClusterPassesTheSuites(t *testing.T) {
	tier.Nightly(t)
	t.Parallel()
	c := startCluster(t)
	empty := func(t *testing.T) {
		for _, n := range c.nodes {
			n.do(t, "FLUSHALL")
		}
	}
	cachetest.TestStore(t, func(t *testing.T) cache.Store {
		empty(t)
		return openRedis(t, c.url)
	})
	turnstest.Test(t, func(t *testing.T) (a, b turns.Store) {
		return openTurns(t, c.url), openTurns(t, c.url)
	})
}

// startRedisWithTLS returns the address of a server, and a file with the root to trust.
func startRedisWithTLS(t *testing.T) (addr, roots string) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	certificate(t, cert, key)
	port := proc.FreePort(t)
	startRedis(t, "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert, "--tls-auth-clients", "no")
	return "127.0.0.1:" + port, cert
}

// certificate writes the certificate of net/http/httptest, which is for 127.0.0.1 and example.com, and its key. It
// returns what trusts it.
func certificate(t *testing.T, certFile, keyFile string) *x509.CertPool {
	t.Helper()
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	key, err := x509.MarshalPKCS8PrivateKey(s.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		certFile: {Type: "CERTIFICATE", Bytes: s.Certificate().Raw}, keyFile: {Type: "PRIVATE KEY", Bytes: key},
	} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return roots
}

// sentinel is a master, a replica, and a Sentinel that watches them; the servers have one
// password, and the Sentinel another.
type sentinel struct {
	url             string
	master, replica *redisServer
}

func startSentinel(t *testing.T) *sentinel {
	s := &sentinel{master: startRedis(t, "--repl-diskless-sync-delay", "0"), replica: startRedis(t)}
	_, port, _ := net.SplitHostPort(s.master.client.Options().Addr)
	s.replica.do(t, "REPLICAOF", "127.0.0.1", port)
	await(t, "a replica", func() bool { return strings.Contains(s.replica.info(t, "replication"), "master_link_status:up") })
	for _, server := range []*redisServer{s.master, s.replica} {
		server.do(t, "CONFIG", "SET", "masterauth", "word")
		server.do(t, "CONFIG", "SET", "requirepass", "word")
		server.identify("word")
	}
	file := filepath.Join(t.TempDir(), "conf") // which a Sentinel rewrites
	err := os.WriteFile(file, []byte("sentinel monitor mymaster 127.0.0.1 "+port+` 1
sentinel auth-pass mymaster word
sentinel down-after-milliseconds mymaster 500
sentinel failover-timeout mymaster 5000
requirepass another
`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	watch := startRedis(t, file, "--sentinel")
	watch.identify("another")
	await(t, "a Sentinel that knows both", func() bool {
		return strings.Contains(watch.info(t, "sentinel"), "status=ok,address=127.0.0.1:"+port+",slaves=1")
	})
	s.url = "redis://:another@" + watch.client.Options().Addr + "?master_name=mymaster&password=word"
	return s
}

func (s *sentinel) failover(t *testing.T) {
	start := time.Now()
	s.master.Kill()
	await(t, "a new master", func() bool { return strings.Contains(s.replica.info(t, "replication"), "role:master") })
	t.Logf("a new master after %v", time.Since(start).Round(time.Millisecond))
}

// cluster is three nodes, each with a third of the slots.
type cluster struct {
	url   string
	nodes []*redisServer
	ids   []string
}

func startCluster(t *testing.T) *cluster {
	c := &cluster{}
	const slots = 16384
	for i := range 3 {
		bus := proc.FreePort(t)
		n := startRedis(t, "--cluster-enabled", "yes", "--cluster-port", bus, "--cluster-node-timeout", "5000")
		n.do(t, "CLUSTER", "SET-CONFIG-EPOCH", i+1)
		n.do(t, "CLUSTER", "ADDSLOTSRANGE", i*slots/3, (i+1)*slots/3-1)
		if i > 0 {
			_, port, _ := net.SplitHostPort(n.client.Options().Addr)
			c.nodes[0].do(t, "CLUSTER", "MEET", "127.0.0.1", port, bus)
		}
		id, err := n.client.Do(t.Context(), "CLUSTER", "MYID").Text()
		if err != nil {
			t.Fatal(err)
		}
		c.nodes, c.ids = append(c.nodes, n), append(c.ids, id)
	}
	for _, n := range c.nodes {
		await(t, "a cluster", func() bool {
			info, err := n.client.ClusterInfo(t.Context()).Result()
			return err == nil && strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_known_nodes:3")
		})
	}
	c.url = c.nodes[0].url + "?addr=" + c.nodes[1].client.Options().Addr
	return c
}

// move takes the slot of a key to the next node, its keys one after the other, while it is in
// use.
func (c *cluster) move(t *testing.T, key string) {
	slot, err := c.nodes[0].client.ClusterKeySlot(t.Context(), key).Result()
	if err != nil {
		t.Fatal(err)
	}
	from := int(slot) * 3 / 16384
	to := (from + 1) % 3
	c.nodes[to].do(t, "CLUSTER", "SETSLOT", slot, "IMPORTING", c.ids[from])
	c.nodes[from].do(t, "CLUSTER", "SETSLOT", slot, "MIGRATING", c.ids[to])
	time.Sleep(100 * time.Millisecond) // what is new goes to one, what is old is with the other
	host, port, _ := net.SplitHostPort(c.nodes[to].client.Options().Addr)
	moved := 0
	for {
		keys, err := c.nodes[from].client.ClusterGetKeysInSlot(t.Context(), int(slot), 1).Result()
		if err != nil {
			t.Fatal(err)
		}
		if len(keys) == 0 {
			break
		}
		c.nodes[from].do(t, "MIGRATE", host, port, keys[0], 0, 1000)
		moved++
	}
	time.Sleep(100 * time.Millisecond)
	for _, i := range []int{to, from, 3 - from - to} {
		c.nodes[i].do(t, "CLUSTER", "SETSLOT", slot, "NODE", c.ids[to])
	}
	t.Logf("slot %d: %d keys moved", slot, moved)
}

// identify makes the test use the server with a password.
func (s *redisServer) identify(password string) {
	s.client.Close()
	s.client = redis.NewClient(&redis.Options{Addr: s.client.Options().Addr, Password: password})
}

func (s *redisServer) info(t *testing.T, section string) string {
	t.Helper()
	info, err := s.client.Info(t.Context(), section).Result()
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func await(t *testing.T, what string, ready func() bool) {
	t.Helper()
	for start := time.Now(); !ready(); time.Sleep(20 * time.Millisecond) {
		if time.Since(start) > busy {
			t.Fatalf("after %v there is not yet %s", busy, what)
		}
	}
}
