package model

import "strings"

// What is said here about single crawlers is their operators' own documentation as
// of November 2026.

// KnownAgent returns the usual spelling of a well-known crawler's product token, ""
// if name (in lower case) is none.
func KnownAgent(name string) string {
	for _, known := range [...]string{"Googlebot", "Googlebot-Image", "Googlebot-News", "Googlebot-Video",
		"Googlebot-Mobile",
		"AdsBot-Google", "Mediapartners-Google", "Google-Extended", "GoogleOther", "Google-CloudVertexBot",
		"Yandex", "YandexBot", "YandexImages", "YandexAdditional", "bingbot", "msnbot", "adidxbot", "BingPreview",
		"Slurp",
		"DuckDuckBot", "DuckAssistBot", "Baiduspider", "Applebot", "Applebot-Extended", "Amazonbot", "Amzn-SearchBot",
		"GPTBot", "OAI-SearchBot", "ChatGPT-User", "ClaudeBot", "Claude-SearchBot", "Claude-User", "CCBot",
		"PerplexityBot", "Bytespider", "meta-externalagent", "FacebookBot", "facebookexternalhit", "Twitterbot",
		"SeznamBot", "AhrefsBot", "SemrushBot", "MJ12bot", "DotBot", "ia_archiver", "PetalBot", "Exabot", "Sogou"} {
		if strings.EqualFold(name, known) {
			return known
		}
	}
	return ""
}

// Retired says what stands in for a product token that is no longer used, "" if
// name (in lower case) still is.
func Retired(name string) string {
	switch name {
	case "anthropic-ai", "claude-web":
		return "Anthropic's crawlers are ClaudeBot, Claude-SearchBot and Claude-User"
	case "msnbot", "msnbot-media":
		return "Bing's crawler is bingbot"
	case "slurp":
		return "Yahoo's results come from Bing, whose crawler is bingbot"
	case "teoma":
		return "Ask closed its search engine"
	case "googlebot-mobile":
		return "Google's mobile crawler answers to Googlebot"
	case "scooter", "twiceler", "gigabot", "exabot":
		return "its search engine has closed"
	case "cohere-ai":
		return "Cohere runs no crawler"
	}
	return ""
}

// IgnoresStar tells the crawlers that obey a group of their own alone.
func IgnoresStar(name string) bool {
	return strings.HasPrefix(name, "adsbot-google") || name == "mediapartners-google"
}

// tokenOnly are the product tokens that stand for a use and fetch nothing.
func tokenOnly(name string) bool { return name == "google-extended" || name == "applebot-extended" }

// trains tells the product tokens that stand for the training of models.
func trains(name string) bool {
	switch name {
	case "google-extended", "applebot-extended", "gptbot", "claudebot", "ccbot", "meta-externalagent", "bytespider":
		return true
	}
	return false
}

// ignoresDelay names the engine whose crawlers do not read Crawl-delay, "" if name
// (in lower case) is none of them.
func ignoresDelay(name string) string {
	switch {
	case strings.HasPrefix(name, "googlebot"):
		return "Google"
	case strings.HasPrefix(name, "yandex"):
		return "Yandex"
	case name == "applebot":
		return "Apple"
	case name == "amazonbot":
		return "Amazon"
	}
	return ""
}

// searches tells the product tokens of search engines that render pages, and * .
func searches(name string) bool {
	return name == "*" || name == "bingbot" || strings.HasPrefix(name, "googlebot") || strings.HasPrefix(name, "yandex")
}
