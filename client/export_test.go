package client

import (
	"net/url"
	"time"

	"github.com/robotsgate/robotsgate/fetch"
	"github.com/robotsgate/robotsgate/policy"
)

// Learn teaches p a group of u's origin, as a Transport does when it decides.
func (p *Pacer) Learn(u *url.URL, g policy.Group) {
	o, err := fetch.OriginOf(u)
	if err != nil {
		panic(err)
	}
	p.kept().Learn(o, g, "", &fetch.Result{Time: time.Now()}, time.Now())
}
