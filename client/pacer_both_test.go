package client_test

import (
	"testing"

	"github.com/robotsgate/robotsgate/client"
	"github.com/robotsgate/robotsgate/client/internal/memturns"
	"github.com/robotsgate/robotsgate/integration_test/tier"
)

// shared says that the Pacers of a test keep their pace in a store of turns.
var shared bool

// over returns p, over a store of turns of its own if the test is run for that.
func over(p *client.Pacer) *client.Pacer {
	if shared && p.Turns == nil {
		p.Turns = new(memturns.Store)
	}
	return p
}

// What holds for the pace of one process holds for a pace that is shared: the same tests run over
// both.
func TestPacerOverTurns(t *testing.T) {
	tier.Nightly(t)
	shared = true
	defer func() { shared = false }()
	for name, test := range map[string]func(*testing.T){
		"TestPacerHonoursRetryAfter":                             TestPacerHonoursRetryAfter,
		"TestPacerDoesNotBlameTheSiteForAnImpatientCaller":       TestPacerDoesNotBlameTheSiteForAnImpatientCaller,
		"TestPacerBacksOffAndEasesAgain":                         TestPacerBacksOffAndEasesAgain,
		"TestPacerCountsWhatFailsTogetherOnce":                   TestPacerCountsWhatFailsTogetherOnce,
		"TestPacer429OnRobotsSlowsThePages":                      TestPacer429OnRobotsSlowsThePages,
		"TestPacerRobotsWaitsAsWell":                             TestPacerRobotsWaitsAsWell,
		"TestPacerRobotsThatMustWaitTooLongIsUnreachable":        TestPacerRobotsThatMustWaitTooLongIsUnreachable,
		"TestPacerNoRequestOvertakesOneThatWaits":                TestPacerNoRequestOvertakesOneThatWaits,
		"TestPacerRobotsGoesFirst":                               TestPacerRobotsGoesFirst,
		"TestPacerRobotsGoesBeforeWhoHasWaited":                  TestPacerRobotsGoesBeforeWhoHasWaited,
		"TestPacerOneTurnServesOneRequest":                       TestPacerOneTurnServesOneRequest,
		"TestPacerWhoHasWaitedGoesBeforeWhoHasNot":               TestPacerWhoHasWaitedGoesBeforeWhoHasNot,
		"TestTheTurnOfWaitBelongsToItsURL":                       TestTheTurnOfWaitBelongsToItsURL,
		"TestAPollerTakesNoTurnOfWait":                           TestAPollerTakesNoTurnOfWait,
		"TestPacerRedirectsOfRobotsKeepThePaceOfTheirSite":       TestPacerRedirectsOfRobotsKeepThePaceOfTheirSite,
		"TestPacerRedirectsOfRobotsDoNotWaitForEachOther":        TestPacerRedirectsOfRobotsDoNotWaitForEachOther,
		"TestPacerRetriesOfRobotsKeepTheDelay":                   TestPacerRetriesOfRobotsKeepTheDelay,
		"TestTrySaysWhen":                                        TestTrySaysWhen,
		"TestPacerTellsWaitersOfALesserDelay":                    TestPacerTellsWaitersOfALesserDelay,
		"TestPacerWhoGivesUpTakesNoDelayFromOthers":              TestPacerWhoGivesUpTakesNoDelayFromOthers,
		"TestPacerLeavesNoRequestWaiting":                        TestPacerLeavesNoRequestWaiting,
		"TestPacerKeepsWhatRobotsAsksFor":                        TestPacerKeepsWhatRobotsAsksFor,
		"TestPacerRefusesWhatIsAboveTheCap":                      TestPacerRefusesWhatIsAboveTheCap,
		"TestPacerFollowsTheWindowsOfRequestRate":                TestPacerFollowsTheWindowsOfRequestRate,
		"TestPacerLearnsFromDecide":                              TestPacerLearnsFromDecide,
		"TestPacerLearnsAnew":                                    TestPacerLearnsAnew,
		"TestPacerDecidesAgainAfterAPause":                       TestPacerDecidesAgainAfterAPause,
		"TestPacerRefusesWhatWaitsAsWell":                        TestPacerRefusesWhatWaitsAsWell,
		"TestPacerTimeForTheTurnIsNotTheSites":                   TestPacerTimeForTheTurnIsNotTheSites,
		"TestPacerRenewalsThatWaitHoldUpNoOthers":                TestPacerRenewalsThatWaitHoldUpNoOthers,
		"TestPacerAPauseThatRobotsAsksForEnds":                   TestPacerAPauseThatRobotsAsksForEnds,
		"TestPacerDecidesAgainWhenTheTurnComes":                  TestPacerDecidesAgainWhenTheTurnComes,
		"TestTraceHearsOfTheDecisionAtTheTurn":                   TestTraceHearsOfTheDecisionAtTheTurn,
		"TestPacerAnOpenBodyDoesNotMakeAnOriginUnreachable":      TestPacerAnOpenBodyDoesNotMakeAnOriginUnreachable,
		"TestPacerItsOwnDelayIsNoFailureOfTheSite":               TestPacerItsOwnDelayIsNoFailureOfTheSite,
		"TestPacerKeepsTheLargestDelayOfTheTokensInUse":          TestPacerKeepsTheLargestDelayOfTheTokensInUse,
		"TestPacerKeepsTheLargestDelayOfAllCrawlersWithOneToken": TestPacerKeepsTheLargestDelayOfAllCrawlersWithOneToken,
		"TestPacerLearnsOncePerTokenAndFile":                     TestPacerLearnsOncePerTokenAndFile,
		"TestPacerAnOutageKeepsTheDelay":                         TestPacerAnOutageKeepsTheDelay,
		"TestPacerBlamesNoSiteForWhatCouldNotBeSent":             TestPacerBlamesNoSiteForWhatCouldNotBeSent,
		"TestPacerLateIsATimeout":                                TestPacerLateIsATimeout,
		"TestACauseIsTheErrorAsNetHTTPHasIt":                     TestACauseIsTheErrorAsNetHTTPHasIt,
		"TestPacerReadsRobotsBeforeWhoHasWaited":                 TestPacerReadsRobotsBeforeWhoHasWaited,
		"TestPacerPlaceIsGivenBack":                              TestPacerPlaceIsGivenBack,
		"TestPacerPlaceIsGivenBackOnPanic":                       TestPacerPlaceIsGivenBackOnPanic,
		"TestPacerLeavesUpgradedConnectionsAlone":                TestPacerLeavesUpgradedConnectionsAlone,
		"TestPacerKeepsWriterTo":                                 TestPacerKeepsWriterTo,
		"TestPacerKeepsDelayAndPlacesWhateverWorkersDo":          TestPacerKeepsDelayAndPlacesWhateverWorkersDo,
		"TestPacerFieldsOfEveryValue":                            TestPacerFieldsOfEveryValue,
		"TestPacerFirstComeFirstServedAndWhoGivesUpLeavesNoGap":  TestPacerFirstComeFirstServedAndWhoGivesUpLeavesNoGap,
		"TestPacerOneOriginNeverDelaysAnother":                   TestPacerOneOriginNeverDelaysAnother,
		"TestWaitObtainsTheTurnOfTheNextRequest":                 TestWaitObtainsTheTurnOfTheNextRequest,
		"TestWaitAloneSpacesStarts":                              TestWaitAloneSpacesStarts,
		"TestWaitSaysWhyItDoesNot":                               TestWaitSaysWhyItDoesNot,
		"TestRoundTripRefusesATurnAfterTheDeadline":              TestRoundTripRefusesATurnAfterTheDeadline,
		"TestPacerTellsWaitersOfANewPause":                       TestPacerTellsWaitersOfANewPause,
		"TestNextIsWhenTheNextRequestStarts":                     TestNextIsWhenTheNextRequestStarts,
		"TestTraceWaitedSaysHowLongARequestWasHeldBack":          TestTraceWaitedSaysHowLongARequestWasHeldBack,
		"TestPacerMaxUnderway":                                   TestPacerMaxUnderway,
	} {
		t.Run(name, test)
	}
}
