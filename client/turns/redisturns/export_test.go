package redisturns

import (
	"strings"

	"github.com/redis/go-redis/v9"
)

// Change makes all Stores run other scripts: with each of the pairs of texts, the second in place of the first.
// It returns what undoes that.
func Change(pairs ...string) (undo func()) {
	take, tell := takeScript, tellScript
	change := strings.NewReplacer(pairs...)
	changed := func(text string) func() *redis.Script {
		s := redis.NewScript(change.Replace(preamble + text))
		return func() *redis.Script { return s }
	}
	takeScript, tellScript = changed(takeText), changed(tellText)
	return func() { takeScript, tellScript = take, tell }
}
