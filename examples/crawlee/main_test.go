package main

import (
	"testing"

	"github.com/robotsgate/robotsgate/examples/internal/service/servicetest"
	"github.com/robotsgate/robotsgate/integration_test/tier"
)

func TestCrawleeSendsOnlyWhatRobotsTxtAllows(t *testing.T) {
	tier.Nightly(t)
	servicetest.Check(t, 1, run)
}
