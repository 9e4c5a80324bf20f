package main

// table has what must not go wrong unnoticed: a line of the code, and what it must not be.
// An old text that does not occur exactly once is an error, and so is a test that is not
// there: a change of one of these lines has to mend its row. To find tests for a new row,
// leave them empty and run it: it prints which of the package notice.
var table = []mutation{
	// The gate.
	{"client/gate.go", "if target == robotsTarget {", "if strings.HasPrefix(target, robotsTarget) {", "any target that begins like robots.txt is allowed", "./client", "TestOnlyRobotsTxtItselfIsAllowedUnasked"},
	{"client/gate.go", "if r.brief && d.Allowed && !dots {", "if r.brief && d.Allowed {", "dot segments are not looked at", "./client", "TestTheTargetIsDecidedAsSent"},
	{"client/gate.go", "group := res.Policy.Group(r.token)", "group := res.Policy.Group(\"\")", "the group of the token is not looked for", "./client", "TestTheTokenIsThatOfTheUserAgentToBeSent"},
	{"client/target.go", "forms = appendResolved(forms, forms[i], first)", "_ = first", "dot segments are decided as sent alone", "./client", "TestDotSegmentsAreDecidedAsAnyServerResolvesThem"},
	{"client/target.go", "for i := 0; i < len(forms); i++ {", "for i := range 1 {", "what is resolved is not resolved again", "./client", "TestDotSegmentsAreDecidedAsAnyServerResolvesThem"},
	{"client/pacer_send.go", "return err != nil && !refused || d.Allowed", "return refused || true", "a permission outlives the wait for a turn", "./client", "TestPacerDecidesAgainWhenTheTurnComes"},
	{"client/pacer_send.go", "return !ours && req.Context().Err() == nil && !reading.failed() && sendable(req)", "return !ours && req.Context().Err() == nil", "a site is blamed for what was not sent", "./client", "TestPacerBlamesNoSiteForWhatCouldNotBeSent"},
	{"client/gate.go", "if !r.Allowed {\n", "if !r.Allowed && r.Reason == policy.ReasonRule {\n", "the unreachable is sent", "./client", "TestAPanicOfTheBaseInReadingRobotsMakesThemUnreachable"},
	{"client/gate.go", "u.Scheme, u.Host = strings.ToLower(scheme), o.URLHost()", "u.Scheme, u.Host = strings.ToLower(scheme), req.URL.Host", "the host sent is not the host decided on", "./client", "TestTheHostIsCanonicalBeforeAnythingIsSent"},
	{"client/target.go", "return path + \"?\" + u.RawQuery, nil", "return path, nil", "a long query is not decided on", "./client", "TestTheTargetIsDecidedAsSent"},
	{"client/target.go", "if !u.ForceQuery && u.RawQuery == \"\" {", "if u.RawQuery == \"\" {", "a lone question mark is not decided on", "./client", "TestTheTargetIsDecidedAsSent"},
	{"client/gate.go", "if err := g.sign(out); err != nil {", "if err := g.sign(out); false {", "what cannot be signed goes out", "./integration_test", "TestNothingGoesOutUnsigned"},
	{"fetch/attempt.go", "\tif r.Sign != nil {\n", "\tif false {\n", "robots.txt is not signed", "./integration_test", "TestAWalledSiteIsReadOnlyWithASignature"},
	{"client/sign/verify.go", "case !s.Expires.After(now.Add(-skew)):", "case false:", "an old signature verifies", "./client/sign", "TestReplayIsNoticed"},

	// What a status means.
	{"fetch/resolution.go", "{500, 599, [5]outcome{unreachable,", "{500, 599, [5]outcome{unavailable,", "a 5xx allows everything", "./fetch", "TestStatuses"},
	{"fetch/resolution.go", "{400, 499, [5]outcome{unavailable,", "{400, 499, [5]outcome{unreachable,", "a 4xx forbids everything", "./fetch", "TestStatuses"},
	{"fetch/resolution.go", "{304, 304, [5]outcome{notModified,", "{304, 304, [5]outcome{unavailable,", "a 304 allows everything", "./fetch", "TestStatuses"},
	{"fetch/resolution.go", "{401, 401, [5]outcome{unavailable, unavailable, unavailable, unavailable, unreachable}}", "{401, 401, [5]outcome{unavailable, unavailable, unavailable, unavailable, unavailable}}", "401 allows in the dialect of 1996", "./fetch", "TestStatuses"},
	{"fetch/resolution.go", "return r.unreachable(h, a, statusError(a.status))", "return map[bool]*Result{true: r.conclude(a, policy.Unavailable()), false: r.unreachable(h, a, fmt.Errorf(\"status %d\", a.status))}[len(r.chain) > 0]", "a 5xx behind a redirect allows everything", "./fetch", "TestAStatusMeansTheSameBehindRedirects"},
	{"fetch/resolution.go", "if len(r.chain) == maxRedirects || ", "if len(r.chain) == maxRedirects+1 || ", "six redirects are followed", "./fetch", "TestMoreThanFiveRedirectsOrALoopAreUnavailable"},
	{"fetch/resolution.go", "if err != nil || ref.Host == \"\" && strings.HasPrefix(location, \"//\") {", "if err != nil {", "a redirect to no host is followed", "./fetch", "TestRedirects"},
	{"fetch/resolution.go", "case !a.asked:", "case false:", "a 304 that was not asked for renews", "./fetch", "TestStatuses"},
	{"policy/parse.go", "if r.oversizeOK && len(data) > scan.Limit {", "if len(data) > scan.Limit {", "a file that is too long allows everything", "./fetch", "TestExtension_AFileThatIsTooLongIsOpenForYandex TestRFC9309_TheLineThatTheLimitCutsIsDropped"},
	{"fetch/resolution.go", "case r.Err != nil && was != unreachable:", "case false:", "an answer that broke off permits something in another dialect", "./fetch", "TestABrokenAnswerIsUnreachableInEveryDialect"},
	{"fetch/resolution.go", "case is == rules && r.Body != nil && (", "case is == rules && (", "a file that was dropped permits everything in another dialect", "./fetch", "TestRulesInAnotherDialectNeedTheFile"},
	{"fetch/body.go", "if res.StatusCode == http.StatusPartialContent && isPart(res.Header) {", "if false {", "a part is taken for the file", "./fetch", "TestA206CountsIfItHoldsTheWholeFile"},
	{"fetch/body.go", "MaxBytes+1))\n\tif err != nil {", "MaxBytes+1))\n\tif err != nil && len(body) == 0 {", "half a file is taken for the file", "./fetch", "TestContentCodings TestWhatIsWorthARetry"},
	{"policy/internal/scan/scan.go", "\tif cut {\n\t\tdata = wholeLines(data)", "\tif false {\n\t\tdata = wholeLines(data)", "half a line is taken for a rule", "./fetch", "TestRFC9309_TheLineThatTheLimitCutsIsDropped"},
	{"fetch/attempt.go", "a.err = context.Cause(req.Context())", "a.err = nil", "a time-out passes for the end of the file", "./fetch", "TestATimeoutIsNotTheEndOfTheFile"},
	{"fetch/canonical.go", "if port == \"\" || digits == ownPorts[scheme] {", "if port == \"\" {", "the scheme's own port makes another origin", "./fetch", "TestOriginOf"},
	{"fetch/attempt.go", "if strings.ContainsAny(name, \" \\t\") {", "if false {", "a field that net/http did not see passes unseen", "./integration_test", "TestAFieldNameWithWhiteSpaceGivesNoPermission"},
	{"fetch/resolution.go", "if err == nil && a.credential != \"\" && next.origin != h.origin {", "if false {", "credentials follow a redirect to another origin", "./integration_test", "TestCredentialsOfABaseDoNotFollowARedirectToAnotherOrigin"},

	// The redirect guard.
	{"fetch/internal/harden/guard.go", "if redirects > 0 && p > origin && !(g.tunnel.IsValid() && addr == g.tunnel) {", "if redirects > 0 && p > origin+1 && !(g.tunnel.IsValid() && addr == g.tunnel) {", "a public site may redirect to a private one", "./fetch", "TestARedirectDoesNotReachAMorePrivateNetwork"},
	{"fetch/internal/harden/guard.go", "if g.PublicOnly && p != global {", "if g.PublicOnly && p == special {", "PublicOnly permits private addresses", "./fetch", "TestPublicOnlyRefusesTheOriginItself"},
	{"fetch/internal/harden/guard.go", "if !g.known || p < g.origin {", "if !g.known || p > g.origin {", "an origin counts as what is most private of it", "./fetch", "TestAnOriginCannotMoveInwardsBetweenRetries"},
	{"fetch/internal/harden/guard.go", "addr = addr.Unmap().WithZone(\"\")", "addr = addr.WithZone(\"\")", "an IPv4 address in IPv6 is not known", "./fetch", "TestARedirectDoesNotReachAMorePrivateNetwork"},
	{"fetch/internal/harden/guard.go", "case isLocalhost(host):\n\t\taddr = netip.IPv6Loopback()", "case false:\n\t\taddr = netip.IPv6Loopback()", "localhost is a name like others", "./fetch", "TestAnOriginWithoutAnAddressIsJudgedByItsName"},

	// Freshness and outages.
	{"cache/freshness.go", "f.lifetime = max(0, max(0, f.lifetime)-ageOf(h, received))", "f.lifetime = max(0, f.lifetime)", "the age on arrival does not count", "./cache", "TestFreshnessLifetimeFollowsRFC9111"},
	{"cache/freshness.go", "if d == noDelta || other >= 0 && delta(other) < d {", "if d == noDelta || other >= 0 && delta(other) > d {", "the longest of two max-age counts", "./cache", "TestFreshnessLifetimeFollowsRFC9111"},
	{"cache/freshness.go", "f.explicit, f.mustRevalidate = true, true\n\tcase", "f.mustRevalidate = true\n\tcase", "no-store leaves the lifetime of a day", "./cache", "TestFreshnessLifetimeFollowsRFC9111"},
	{"cache/state.go", "return max(t.minTTL, time.Duration(float64(ttl)*spread))", "return time.Duration(float64(ttl) * spread)", "max-age=0 is a fetch for every request", "./cache", "TestLifetimesAreBounded"},
	{"cache/state.go", "if refused(r) {", "if false {", "a 403 holds a day", "./cache", "TestLifetimesAreBounded"},
	{"cache/state.go", "if isRules(r) {", "if true {", "that there was no file outlives its freshness", "./cache", "TestACopyIsDroppedAtOnceForA404"},
	{"cache/state.go", "if copied && t.outage == LastGood {", "if s.answer != nil && t.outage == LastGood {", "a copy holds for ever", "./cache", "TestTheLastGoodCopyOutlivesAnOutage"},
	{"cache/state.go", "return max(wait, min(retryAfter, maxRetryAfter))", "return wait", "Retry-After is not kept", "./cache", "TestRetryAfterIsHonouredUpToADay"},
	{"cache/state.go", "case lasted < ladderStop:", "case false:", "the ladder has no first step", "./cache", "TestTheStagesOfAnOutageDoNotWaitForARetry"},
	{"cache/state.go", "n.failure, n.failed, n.assumed = r, at, nil", "n.answer, n.failure, n.failed, n.assumed = nil, r, at, nil", "a failure takes the copy away", "./cache", "TestTheLastGoodCopyOutlivesAnOutage"},
	{"cache/state.go", "ttl = min(ttl, f.redirect, t.maxTTL)", "ttl = min(ttl, t.maxTTL)", "a redirect's own lifetime does not count", "./cache", "TestARedirectBoundsTheLifetime"},
	{"cache/state.go", "func failed(r *fetch.Result) bool { return r.Err != nil || ofTheMoment(r) }", "func failed(r *fetch.Result) bool { return r.Err != nil }", "a 429 opens a site for a day", "./cache", "TestAStatusOfTheMomentHoldsForMinutes"},
	{"cache/variant.go", "return r == nil || r.UserAgent == \"\" || p.agent != \"\" || r.UserAgent == src.agent()", "return true", "an answer is given to another User-Agent", "./cache", "TestAFlightsAnswerIsNotForAllWhoJoinedIt"},

	// Flights.
	{"cache/flight.go", "DoChan(o.flight(), ", "DoChan(o.HostField(), ", "origins of one host share a fetch", "./cache", "TestOriginsOfOneHostAreFetchedApart"},
	{"cache/flight.go", "case <-ctx.Done():\n\t\t\treturn nil, ctx.Err()", "case <-ctx.Done():\n\t\t\ttime.Sleep(300 * time.Millisecond)\n\t\t\treturn nil, ctx.Err()", "a caller is 300 ms late", "./client", "TestNoCallerIsKeptBeyondTheDeadline"},
	{"cache/flight.go", "ctx, cancel := context.WithTimeout(context.Background(), flightTimeout-returnTimeout)", "ctx, cancel := context.WithCancel(context.Background())", "a queue of ours is a failure of the site", "./cache", "TestAQueueOfOursIsNoFailureOfASite"},
	{"cache/flight.go", "hangs := time.NewTimer(flightTimeout)", "hangs := time.NewTimer(time.Hour)", "a fetch has no end", "./cache", "TestALoadThatMisbehavesIsUnreachable"},
	{"cache/flight.go", "if known := e.state.Load(); known != s {", "if false {\n\t\t\tknown := e.state.Load()", "who comes too late fetches again", "./cache", "TestWhoComesTooLateForAFlightGetsItsResult"},
	{"cache/flight.go", "if !e.renewing.CompareAndSwap(false, true) {", "if false {", "one origin takes the places of all renewals", "./cache", "TestOneSlowOriginLeavesTheOthersTheirRenewals"},

	// Memory.
	{"cache/memory.go", "for m.bytes > m.limit && m.recent.Len() > 0 {", "for false {", "the bound on bytes is not kept", "./cache", "TestTheOriginUnusedTheLongestGivesWay"},
	{"cache/memory.go", "m.bytes -= e.cost", "m.bytes -= 0", "what is evicted goes on to count", "./cache", "TestTheOriginUnusedTheLongestGivesWay"},
	{"cache/memory.go", "if m.turn.Load() >= e.turn.Load() && m.mu.TryLock() {", "if false && m.mu.TryLock() {", "the order of use is that of arrival", "./cache", "TestTheOriginUnusedTheLongestGivesWay"},

	// The Store.
	{"cache/record.go", "rec.Origin != key || ", "", "a value of another origin is believed", "./cache", "TestStore"},
	{"cache/record.go", "sum != crc32.Checksum(data[len(recordMagic)+4:], castagnoli) || ", "sum == 0 || ", "a damaged value is believed", "./cache", "TestStore"},
	{"cache/record.go", "min(f.Retry, maxRetryAfter)", "f.Retry", "a stored wait has no bound", "./cache", "TestStore"},
	{"cache/record.go", "n := r.In(d)", "n := &r", "stored rules come back as permission", "./cache", "TestStore"},
	{"cache/boltstore/check.go", "case k.before == nil && k.low != nil && !bytes.Equal(key, k.low):", "case false:", "a page need not begin with its parent's key", "./cache/boltstore", "TestADamagedTreeIsRefused"},
	{"cache/boltstore/check.go", "if c.used[id/64]&(1<<(id%64)) != 0 {", "if false {", "a page of the file may be used twice", "./cache/boltstore", "TestADamagedTreeIsRefused"},

	// The Pacer.
	{"client/pacer_lane.go", "return later(p.spaced(l, from, now), l.resume), full", "return p.spaced(l, from, now), full", "Retry-After delays no request", "./client", "TestPacerHonoursRetryAfter"},
	{"client/pacer_lane.go", "if full = as != asRobots && l.underway >= p.maxUnderway(); full {", "if full = as != asRobots && l.underway > p.maxUnderway(); full {", "one request too many is under way", "./client", "TestPacerPlaceIsGivenBack"},
	{"client/pacer_lane.go", "d = max(d, min(asked, p.maxDelay()))", "d = max(d, asked)", "robots.txt may ask for any delay", "./client", "TestPacerKeepsWhatRobotsAsksFor"},
	{"client/pacer_lane.go", "return min(unit<<l.strain, longestPause)", "return unit << l.strain", "a pause has no bound", "./client", "TestPacerBacksOffAndEasesAgain"},
	{"client/pacer_lane.go", "l.last = time.Now()\n\tl.underway--", "l.underway--", "the delay counts from the start alone", "./client", "TestPacerPlaceIsGivenBack"},
	{"client/pacer_lane.go", "case hasDeadline && at.After(deadline):", "case hasDeadline && at.After(deadline) && false:", "a turn that cannot come in time is waited for", "./client", "TestRoundTripRefusesATurnAfterTheDeadline"},
	{"client/pacer_lane.go", "mayGo := l.waiting.Front() == e && !full", "mayGo := !full", "who comes last may go first", "./client", "TestPacerNoRequestOvertakesOneThatWaits"},
	{"client/pacer_send.go", "case blames(req, reading, err):", "case blames(req, reading, err) && false:", "a site that does not answer is not spared", "./client", "TestPacerHonoursRetryAfter"},
	{"client/pacer_pace.go", "return r.from <= minute && minute < r.to", "return r.from <= minute", "a window of Request-rate has no end", "./client", "TestPacerFollowsTheWindowsOfRequestRate"},
	{"client/pacer_lane.go", "newest = later(newest, l.resume)", "newest = later(newest, time.Time{})", "a permission outlives a pause", "./client", "TestPacerDecidesAgainAfterAPause"},
	{"client/pacer_lane.go", "return held, err // learned since it joined", "_ = err", "Refuse does not hold for requests in line", "./client", "TestPacerRefusesWhatWaitsAsWell"},
	{"cache/cache.go", "if !e.place().suits(r, src) {", "if false {", "a 429 for one User-Agent opens the site to another", "./cache", "TestAStatusOfTheMomentIsForWhomItVariesBy"},
	{"fetch/attempt.go", "res.UserAgent = cmp.Or(res.UserAgent, r.prev.UserAgent)", "_ = cmp.Or(res.UserAgent, r.prev.UserAgent)", "a 304 gives a file to another User-Agent", "./fetch", "TestA304LeavesTheFileToWhomItIsFor"},

	// Statements about use.
	{"client/pacer_send.go", "return err != nil && !refused || d.Allowed", "return err != nil || refused || d.Allowed", "a use: what was not disallowed outlives the wait for a turn", "./client", "TestAUseThatIsDisallowedMeanwhileIsNotSent"},
	{"client/gate.go", "return g.checkUse(r, req.URL, form, &d, res)", "return nil", "a use: dot segments are not looked at", "./client", "TestADisallowedUseIsNotSent"},
	{"client/gate.go", "if err = g.checkUse(r, req.URL, target, &d, res); err != nil {", "if err = g.checkUse(r, req.URL, target, &d, res); false {", "a use is never refused", "./client", "TestADisallowedUseIsNotSent"},
	{"client/gate.go", "cmp.Or(tokenMisuse(\"Token\", t.Token), usesMisuse(t.Uses))", "tokenMisuse(\"Token\", t.Token)", "a use: a misspelt one is taken", "./client", "TestAMisspeltUseIsAnErrorOfEveryRequest"},
	{"client/use.go", "resp.StatusCode < 200 || resp.StatusCode > 299", "resp.StatusCode > 299", "a use: the body of another protocol is watched", "./client", "TestWatchReadsFinalPagesOnly"},
	{"policy/usage/robots.go", "if lines == nil || !g.Decide(target).Allowed {", "if lines == nil {", "a use: preferences for what may not be crawled", "./policy/usage", "TestUsageFacts TestOwnFacts"},
	{"policy/usage/robots.go", "case !ok || octets < longest:", "case !ok:", "a use: shorter paths fill in", "./policy/usage", "TestUsageFacts TestPathsEqualAnEvaluator"},
	{"policy/usage/robots.go", "return slices.Collect(p.Group(\"*\").Records(contentSignal)), true", "return slices.Collect(p.Group(\"*\").Records(contentSignal)), false", "a use: inherited signals are not marked", "./policy/usage", "TestOwnFacts"},
	{"policy/usage/robots.go", "if g.Token() == \"\" || g.Token() == \"*\" {", "if g.Token() == \"\" {", "a use: * stands in for a policy token", "./policy/usage", "TestOwnFacts"},
	{"policy/usage/robots.go", "strings.ContainsAny(path, \"\\x00\\r\\n#\")", "strings.ContainsAny(path, \"\\x00#\")", "a use: a location adds rules", "./policy/usage", "TestOwnFacts"},
	{"policy/usage/usage.go", "case p == Disallow:", "case p == Disallow && first < 0:", "a use: an allow wins over a later disallow", "./policy/usage", "TestUsageFacts TestOwnFacts"},
	{"policy/usage/usage.go", "if s.isReservation() && rank(s.In) < closest {", "if s.isReservation() && rank(s.In) > closest {", "a use: the farthest reservation counts", "./policy/usage", "TestOwnFacts"},
	{"policy/usage/list.go", "if from.Value != \"y\" && from.Value != \"n\" {", "if from.Value == \"\" {", "a use: values that are none have no problem", "./policy/usage", "ExampleStatement TestOwnFacts"},
	{"policy/usage/list.go", "if l.read+n <= maxText && !l.full {", "if !l.full {", "a use: text of any length is read", "./policy/usage", "TestStatementsAreBounded"},
	{"policy/usage/header.go", "return related && typed", "return related", "a use: any license is one of RSL", "./policy/usage", "TestOwnFacts"},
	{"policy/index.go", "} else if bytes.IndexByte(p[max(i, stem):i+gramSize], '*') >= 0 {", "} else if bytes.IndexByte(p, '*') < -1 {", "an index: a rule is sought by its wildcards", "./policy", "TestDecisionsFollowTheDefinition TestRandomRules"},
	{"policy/index.go", "if rule < s.best {", "if true {", "an index: the last rule that matches decides", "./policy", "TestDecisionsFollowTheDefinition TestRandomRules"},
	{"policy/table.go", "if w == from/64 {", "if false {", "an index of a target: pieces match in any order", "./policy", "TestDecisionsFollowTheDefinition"},
	{"policy/record.go", "w.fields |= fieldBit(len(field), field[0])\n\tif", "w.fields = fieldBit(len(field), field[0])\n\tif", "records are not found by their name", "./policy", "TestRecordsAreFoundByTheirName"},
}
