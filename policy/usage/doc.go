// Package usage reads what sites say about the use of their content: whether it may train models, be given to models as
// input, or be listed by a search engine. Most of that follows drafts, which change: the package changes with them, and
// the module promises no compatibility for it until they are RFCs.
//
// Sites say it in several ways, and no document puts these in order. The package reads
// each by its own rules, as a list of [Statement] with the place where each stood.
// [For] then translates the list by a table and combines it, for one label at a time:
//
//	said := usage.ParseRobots(p, "ExampleBot", "/articles/1")      // before the request
//	said = append(said, usage.ParseHeader(resp.Header)...)         // after it
//	what, by, err := usage.For(said, usage.TrainAI)
//	if err != nil || what == usage.Disallow {
//		log.Print(by, err) // robots.txt line 3, Content-Usage: "train-ai=n" <nil>
//	}
//
// Statements about use are no crawling rules. They change no policy.Decision, and say nothing about
// a target that may not be crawled. They hold for what was received while they were in force: store
// them with the content. A contract may say otherwise.
//
// # Labels
//
// Labels are data: a label is known if a row of the table has it. The rows of [Table] have
// the three of the IETF's draft, and what other conventions need besides:
//
//	train-ai          changing the learned parameters of a generative model
//	ai-use            input to a generative model that its user did not provide
//	search            selecting, and sending users to the location, with links and excerpts
//	use=reference     the content use of that name of Content Signals
//	use=full          likewise; use=immediate has no label: it cannot be disallowed
//	train-ai:image    train-ai of images alone: to train on images, ask for this
//	                  and for train-ai
//	ai-use:image      likewise: to use images, ask for this and for ai-use
//
// There is no hierarchy. For a use that qualifies as search, only search counts, whatever the other two say (vocab-08).
//
// # What is read
//
//	mechanism       stands in                          evaluated as
//	Content-Usage   robots.txt, header                 the longest path under the crawler's own name
//	Content-Signal  robots.txt, header                 its group, else outside of groups, else "*"
//	policy token    robots.txt                         the token's own group, never "*"
//	RSL             robots.txt License, header Link    its group, else outside of groups
//	TDMRep          tdmrep.json, header, meta          each of these overrides those before it
//	page rule       X-Robots-Tag, meta robots          package page
//
// Not read are ai.txt and llms.txt, which state no permission, nor the documents of RSL and the
// policies of TDMRep, which are contracts. A Statement has the address of such a contract.
//
// # The table
//
// A column is empty where the statement says nothing. Silence, an Allow line, and a TDM
// reservation of 0 never become permission.
//
//	statement                              train-ai  ai-use    search
//	Content-Usage label=y, label=n         as said   as said   as said
//	Content-Signal ai-train=yes, =no       as said
//	Content-Signal ai-input=yes, =no                 as said
//	Content-Signal search=yes, =no                             as said
//	Content-Signal use=immediate           disallow
//	tdm-reservation: 1                     disallow
//	noai, noml                             disallow  disallow
//	noarchive, read as Bing does           disallow  disallow
//	nosnippet, max-snippet:0, as Google              disallow
//	noindex, none                                              disallow
//	Google-Extended: disallowed            disallow  disallow
//	Applebot-Extended: disallowed          disallow
//	License, tdm-policy
//
// noimageai disallows train-ai:image and ai-use:image. use=immediate disallows
// use=reference and use=full, use=reference disallows use=full.
//
// # Engines
//
// What is known of those who read the statements:
//
//	Content-Usage      drafts of the IETF, 2026-08 and 2026-09; no engine documents it    A V
//	Content-Signal     Cloudflare's own crawler refuses before it crawls; Google: ignored  C S
//	Google-Extended    Google: training and grounding of its models, no effect on search   G
//	Applebot-Extended  Apple: training of its models                                       P
//	noai, noimageai    img2dataset                                                         I
//	nocache, noarchive Bing: limits and forbids answers and training; Google: no effect    B G
//	noarchive          Amazon: no training; not in Table, append a Mapping to heed it      Z
//	nosnippet          Google: no text preview, and no input to its AI features            G
//	tdm-reservation    a reservation of rights (EU 2019/790 Art. 4), set by publishers     T
//	License            no large vendor of models has committed itself                      R
//
//	A  draft-ietf-aipref-attach-05    V  draft-ietf-aipref-vocab-08
//	C  contentsignals.org             S  developers.cloudflare.com, Browser Run /crawl
//	G  developers.google.com/search/docs/crawling-indexing: crawlers, robots-meta-tag
//	P  support.apple.com/119829       I  github.com/rom1504/img2dataset
//	B  blogs.bing.com 2023-09         Z  developer.amazon.com/amazonbot
//	T  w3.org/community/reports/tdmrep
//	R  rslstandard.org/rsl, 1.0 of 2025-12
//
// # Open questions
//
// Where sources disagree or are silent, this is what the package does:
//
//   - [Q] Of Content-Usage the longest path alone counts, for all labels; paths of the same length apply separately. A
//     rule without a path is shorter than one for "/".
//   - [Q] A Content-Usage line is for the names between it and the rule or Content-Usage line above (attach-05). To RFC
//     9309 §2.2.4, names below it are of the same group: so what it refuses is refused to the whole group, but a
//     refusal for "*" does not reach a crawler that is named.
//   - [Q] A Content-Signal of "*" counts for a crawler whose group has none, and is marked Inherited. Of several,
//     "no" wins, and the narrowest use= holds. It ends no list of names, and is read without case.
//   - [Q] The policy tokens that were announced in 2026-10 are not settled: the caller names those that it answers to.
//   - [Q] Several tdm-reservation fields: any 1 counts. Locations of a tdmrep.json match as paths of robots.txt do.
//
// # Limits
//
// 64 KiB of a field or meta element in all, 64 KiB of a tdmrep.json, and 1,024 statements. What is beyond a limit is
// not read; a Statement with a Problem says so. Nothing that a site sends makes the package fail, panic, or take more
// than time in proportion to its size: paths take a few times as long as rules of a robots.txt do. Text in a Statement
// comes from the network: quote it before it goes to a terminal.
package usage
