package serve

// How the page names readers, and its table of crawlers.

import "github.com/robotsgate/robotsgate/policy"

// readers are the dialects as people call them. Each of answer.Dialects has one.
var readers = map[policy.Dialect]string{
	policy.RFC9309: "the standard (RFC 9309)", policy.Google: "Google", policy.Yandex: "Yandex", policy.Bing: "Bing",
	policy.Original: "the original protocol",
}

// pageRow is how some crawlers are answered, all alike: by a group of the same name, with the same Cells. A file that
// tells few crawlers apart has a short table. Mine is the row of the crawler that was asked about.
type pageRow struct {
	Crawlers []string
	Group    string
	Mine     bool
	Cells    []pageCell
}

// pageCell is a verdict in the table, for one URL. It is compared with ==.
type pageCell struct {
	Allowed bool
	Line    int
	Rule    string
}
