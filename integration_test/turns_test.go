package integration_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/robotsgate/robotsgate/cache/redisstore"
	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/client/turns/redisturns"
	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/integration_test/tier"
	"github.com/robotsgate/robotsgate/policy"
)

// redisRefusals are ways in which a Redis takes no turns.
var redisRefusals = []struct {
	name         string
	sicken, heal [][]any
	says         string
}{
	{"wrong password", [][]any{{"CONFIG", "SET", "requirepass", "secret"}}, [][]any{{"CONFIG", "SET", "requirepass", ""}}, "NOAUTH"},
	{"a replica", [][]any{{"REPLICAOF", "127.0.0.1", "1"}}, [][]any{{"REPLICAOF", "NO", "ONE"}}, "READONLY"},
	{"maxmemory with noeviction", [][]any{{"CONFIG", "SET", "maxmemory", "1"}}, [][]any{{"CONFIG", "SET", "maxmemory", "0"}}, "OOM"},
	{"an ACL without scripts", [][]any{{"ACL", "SETUSER", "default", "-evalsha", "-eval"}},
		[][]any{{"ACL", "SETUSER", "default", "+evalsha", "+eval"}}, "NOPERM"},
	{"accepting and never answering", [][]any{{"CLIENT", "PAUSE", "4000", "ALL"}}, nil, "deadline"},
}

// While Redis refuses, requests wait no longer than their contexts, and then say why.
func TestFleetWaitsWhileRedisRefuses(t *testing.T) {
	tier.Gate(t)
	aside(t)
	for _, tt := range redisRefusals {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := startRedis(t)
			admin := s.client.Conn()
			defer admin.Close()
			admin.Ping(t.Context()) // has its connection before anything is refused
			gate := pacing(&client.Pacer{Turns: openTurns(t, s.url), Delay: 200 * time.Millisecond})
			for _, args := range tt.sicken {
				if err := admin.Do(t.Context(), args...).Err(); err != nil {
					t.Fatal(err)
				}
			}
			waitsInVain(t, gate, tt.says)
			for _, args := range tt.heal {
				if err := admin.Do(t.Context(), args...).Err(); err != nil {
					t.Fatal(err)
				}
			}
			turnComes(t, gate)
		})
	}
}

// pacing is a Transport for a site that allows everything.
func pacing(p *client.Pacer) *client.Transport {
	return &client.Transport{UserAgent: userAgent, Pacer: p, Override: func(fetch.Origin) *policy.Policy { return policy.Parse(nil) }}
}

func turnComes(t *testing.T, gate *client.Transport) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), busy)
	defer cancel()
	turn, err := gate.Turn(ctx, siteURL(0))
	if err != nil {
		t.Errorf("healed: %v", err)
		return
	}
	turn.End()
}

// waitsInVain checks that Turn lasts as long as its context, and says what Redis answers: the last that it has, if any
// came in time.
func waitsInVain(t *testing.T, gate *client.Transport, says string) (err error) {
	t.Helper()
	for d := 400 * time.Millisecond; d < busy; d *= 3 {
		ctx, cancel := context.WithTimeout(t.Context(), d)
		defer cancel()
		if _, err = gate.Turn(ctx, siteURL(0)); !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), says) {
			break
		}
	}
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), says) {
		t.Errorf("Turn: %v, want the end of the context, and %s", err, says)
	}
	return err
}

func openTurns(t testing.TB, url string) *redisturns.Store {
	t.Helper()
	values, err := redisstore.Open(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { values.Close() })
	return &redisturns.Store{Client: values.Client}
}
