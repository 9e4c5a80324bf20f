package model

import "strings"

// A crawler is what is known of a product token: its operator's own documentation as of November 2026.
type crawler struct {
	name    string // in its usual spelling; in lower case where the token is no longer used alone
	token   bool   // stands for a use and fetches nothing
	trains  bool   // is for the training of models
	delay   string // the engine whose crawlers do not read Crawl-delay
	search  bool   // of a search engine that renders pages
	retired string // what stands in for it now
}

const (
	anthropics = "Anthropic's crawlers are ClaudeBot, Claude-SearchBot and Claude-User"
	closed     = "its search engine has closed"
)

var crawlers = func() map[string]crawler {
	all := map[string]crawler{}
	for _, c := range []crawler{
		{name: "Google-Extended", token: true, trains: true}, {name: "Applebot-Extended", token: true, trains: true},
		{name: "GPTBot", trains: true}, {name: "ClaudeBot", trains: true}, {name: "CCBot", trains: true},
		{name: "meta-externalagent", trains: true}, {name: "Bytespider", trains: true},
		{name: "Googlebot-Mobile", retired: "Google's mobile crawler answers to Googlebot"},
		{name: "Applebot", delay: "Apple"}, {name: "Amazonbot", delay: "Amazon"}, {name: "bingbot", search: true},
		{name: "msnbot", retired: "Bing's crawler is bingbot"}, {name: "Exabot", retired: closed},
		{name: "Slurp", retired: "Yahoo's results come from Bing, whose crawler is bingbot"},
	} {
		all[strings.ToLower(c.name)] = c
	}
	for name := range strings.FieldsSeq(`Googlebot Googlebot-Image Googlebot-News Googlebot-Video AdsBot-Google
		Mediapartners-Google GoogleOther Google-CloudVertexBot Yandex YandexBot YandexImages YandexAdditional adidxbot
		BingPreview DuckDuckBot DuckAssistBot Baiduspider Amzn-SearchBot OAI-SearchBot ChatGPT-User Claude-SearchBot
		Claude-User PerplexityBot FacebookBot facebookexternalhit Twitterbot SeznamBot AhrefsBot SemrushBot MJ12bot
		DotBot ia_archiver PetalBot Sogou`) {
		all[strings.ToLower(name)] = crawler{name: name}
	}
	for name, retired := range map[string]string{
		"anthropic-ai": anthropics, "claude-web": anthropics, "msnbot-media": "Bing's crawler is bingbot",
		"teoma": "Ask closed its search engine", "scooter": closed, "twiceler": closed, "gigabot": closed,
		"cohere-ai": "Cohere runs no crawler",
	} {
		all[name] = crawler{retired: retired}
	}
	return all
}()

// crawlerOf returns what is known of a name in lower case.
func crawlerOf(name string) crawler {
	c := crawlers[name]
	switch {
	case strings.HasPrefix(name, "googlebot"):
		c.search, c.delay = true, "Google"
	case strings.HasPrefix(name, "yandex"):
		c.search, c.delay = true, "Yandex"
	case name == "*":
		c.search = true
	}
	return c
}

// KnownAgent returns the usual spelling of a well-known crawler's product token, "" if name is none.
func KnownAgent(name string) string { return crawlers[strings.ToLower(name)].name }

// Retired says what stands in for a product token that is no longer used, "" if name (in lower case) still is.
func Retired(name string) string { return crawlers[name].retired }

// IgnoresStar tells the crawlers that obey a group of their own alone.
func IgnoresStar(name string) bool {
	return strings.HasPrefix(name, "adsbot-google") || name == "mediapartners-google"
}
