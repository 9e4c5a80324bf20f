//go:build js && wasm

// Robots gives a page of the Web the function robots.decide, made of package policy.
package main

import (
	"syscall/js"

	"github.com/robotsgate/robotsgate/policy"
)

func main() {
	js.Global().Set("robots", map[string]any{"decide": js.FuncOf(decide)})
	select {} // the function is called from here on
}

// decide takes the text of a robots.txt, a product token and a target, and says whether that may be fetched, and why.
func decide(_ js.Value, args []js.Value) any {
	if len(args) != 3 {
		return "robots.decide(file, agent, target) takes three strings"
	}
	file, agent, target := args[0].String(), args[1].String(), args[2].String()
	return policy.Parse([]byte(file)).Decide(policy.ProductToken(agent), target).String()
}
