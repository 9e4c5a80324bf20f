package usage_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/robotsgate/robotsgate/policy"
	"github.com/robotsgate/robotsgate/policy/usage"
)

// An escape counts for the byte that it stands for: both paths are as long.
func TestAnEscapedPathIsAsLongAsThatInUTF8(t *testing.T) {
	for _, file := range []string{
		"User-agent: *\nContent-Usage: /%C3%A9 train-ai=y\nContent-Usage: /é train-ai=n\n",
		"User-agent: *\nContent-Usage: /é train-ai=y\nContent-Usage: /%C3%A9 train-ai=n\n",
	} {
		said := usage.ParseRobots(policy.Parse([]byte(file)), "a", "/%C3%A9")
		if got := preference(t, said, usage.TrainAI); got != usage.Disallow {
			t.Errorf("got %v of\n%s", got, file)
		}
	}
}

// 64 other paths that are as long as the first count, and one more does not.
func TestAsManyTiesAsDocumented(t *testing.T) {
	for ties, want := range map[int]usage.Preference{64: usage.Disallow, 65: usage.Allow} {
		target := "/" + strings.Repeat("a", 80)
		file := "User-agent: *\n"
		for i := range ties + 1 {
			value := "y"
			if i == ties {
				value = "n"
			}
			file += "Content-Usage: " + target[:i+1] + "*" + target[i+2:] + " train-ai=" + value + "\n"
		}
		said := usage.ParseRobots(policy.Parse([]byte(file)), "a", target)
		if got := preference(t, said, usage.TrainAI); got != want {
			t.Errorf("%d ties: got %v, want %v", ties, got, want)
		}
	}
}

func TestTheLastByteOf64KiBIsRead(t *testing.T) {
	for size, want := range map[int]usage.Preference{64 << 10: usage.Disallow, 64<<10 + 1: usage.Unknown} {
		value := strings.Repeat(" ", size-len("ai-train=no")) + "ai-train=no"
		said := usage.ParseHeader(http.Header{"Content-Signal": {value}})
		if got := preference(t, said, usage.TrainAI); got != want {
			t.Errorf("%d bytes: got %v, want %v", size, got, want)
		}
	}
}
