package main

import (
	"testing"

	"github.com/robotsgate/robotsgate/examples/internal/service/servicetest"
	"github.com/robotsgate/robotsgate/integration_test/tier"
)

func TestRequestsSendsOnlyWhatRobotsTxtAllows(t *testing.T) {
	tier.Nightly(t)
	servicetest.Check(t, run,
		"fetched http://www.example/ 200\n",
		"fetched http://www.example/public 200\n",
		"refused http://www.example/private/ Disallow: /private/\n",
		"refused http://other.example/archive/1 Disallow: /archive/\n", // the hop of a redirect
		"fetched http://www.example/gone 404\n",
		"refused http://down.example/ unreachable\n",
	)
}
