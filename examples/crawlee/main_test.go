package main

import (
	"testing"

	"github.com/robotsgate/robotsgate/examples/internal/service/servicetest"
	"github.com/robotsgate/robotsgate/integration_test/tier"
)

func TestCrawleeSendsOnlyWhatRobotsTxtAllows(t *testing.T) {
	tier.Nightly(t)
	servicetest.Check(t, run,
		"fetched http://www.example/ 200\n",
		"fetched http://www.example/public 200\n",
		"refused http://www.example/private/ robots.txt: Disallow: /private/\n",
		"refused http://other.example/archive/1 robots.txt: Disallow: /archive/\n", // the hop of a redirect
		"failed http://www.example/gone ",
		"fetched http://www.example/moved 302\n",
		"refused http://down.example/ robots.txt: unreachable\n",
	)
}
