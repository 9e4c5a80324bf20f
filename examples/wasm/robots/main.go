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

// last is the file that was asked about last. A page asks about one file again and again.
var last struct {
	text   string
	policy *policy.Policy
}

// decide takes the text of a robots.txt, a product token and a target, and returns an object.
func decide(_ js.Value, args []js.Value) any {
	if len(args) != 3 || args[0].Type() != js.TypeString || args[1].Type() != js.TypeString || args[2].Type() != js.TypeString {
		return map[string]any{"error": "robots.decide(file, agent, target) takes three strings"}
	}
	file, agent, target := args[0].String(), args[1].String(), args[2].String()
	if last.policy == nil || last.text != file {
		last.text, last.policy = file, policy.Parse([]byte(file))
	}
	d := last.policy.Decide(policy.ProductToken(agent), target)
	return map[string]any{
		"allowed": d.Allowed, "line": d.Rule.Line, "rule": d.Rule.String(), "group": d.GroupToken, "text": d.String(),
	}
}
