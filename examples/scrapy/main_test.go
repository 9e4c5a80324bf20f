package main

import (
	"testing"

	"github.com/robotsgate/robotsgate/examples/internal/service/servicetest"
	"github.com/robotsgate/robotsgate/integration_test/tier"
)

func TestScrapySendsOnlyWhatRobotsTxtAllows(t *testing.T) {
	tier.Nightly(t)
	servicetest.Check(t, 1, run)
}
