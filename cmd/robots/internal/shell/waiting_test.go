package shell

import (
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robotsgate/robotsgate/fetch"
)

func siteAt(t *testing.T, text string) fetch.Origin {
	u, _ := url.Parse(text)
	o, err := fetch.OriginOf(u)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestWhatIsWaitedForIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow, quick := NewAsked(siteAt(t, "https://slow.example")), NewAsked(siteAt(t, "https://quick.example"))
		close(quick.Done)
		time.Sleep(3 * time.Second)
		for _, c := range []struct {
			all   []*Asked
			width int
			want  string
		}{
			{nil, 80, "3s: waiting for https://slow.example"},
			{[]*Asked{slow}, 80, "3s: waiting for https://slow.example"},
			{[]*Asked{quick, slow}, 80, "1 of 2 sites answered, 3s: waiting for https://slow.example"},
			{[]*Asked{quick, slow}, 40, "1 of 2 sites answered, 3s: waiting for…"},
		} {
			if got := waiting(slow, c.all, c.width); got != c.want {
				t.Errorf("%d columns: got %q, want %q", c.width, got, c.want)
			}
		}
	})
}
