// Explain shows why a URL is allowed or not, without any HTTP: package policy alone.
package main

import (
	"fmt"

	"github.com/robotsgate/robotsgate/policy"
)

const robots = `User-agent: *
Disallow: /

User-agent: ExampleBot
User-agent: OtherBot
Disallow: /shop/
Allow: /shop/*.html$
Disallow: /shop/cart
`

func main() {
	p := policy.Parse([]byte(robots))
	token := policy.ProductToken("ExampleBot/1.0 (+https://example.com/bot)")
	group := p.Group(token)
	fmt.Printf("the rules for %s (group %q):\n", token, group.Token())
	for rule := range group.Rules() {
		fmt.Printf("  line %d: %v\n", rule.Line, rule)
	}
	for _, target := range []string{"/", "/shop/", "/shop/hat.html", "/shop/hat.html?size=7", "/shop/cart.html"} {
		fmt.Printf("%s\n    %v\n", target, group.Decide(target))
	}
	fmt.Printf("/ for a crawler without a group of its own\n    %v\n", p.Decide("StrangerBot", "/"))
}
