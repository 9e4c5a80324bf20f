package serve

import (
	_ "embed"
	"encoding/json"
	"strings"
	"sync"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
)

// openAPIText describes what "robots serve" answers. What the subcommands write as well, it
// takes from schema.json.
//
//go:embed openapi.json
var openAPIText []byte

// openAPI is openapi.json with the definitions of schema.json that it uses among its schemas: one
// document, which tools need not put together.
var openAPI = sync.OnceValue(func() []byte {
	var doc, schema map[string]any
	defs := strings.ReplaceAll(string(answer.Schema), "#/$defs/", "#/components/schemas/")
	if err := json.Unmarshal([]byte(defs), &schema); err != nil {
		panic(err)
	}
	if err := json.Unmarshal(openAPIText, &doc); err != nil {
		panic(err)
	}
	own := doc["components"].(map[string]any)["schemas"].(map[string]any)
	for _, name := range []string{"decision", "dialect", "engines", "fetched", "report", "robots", "ruleID", "severity", "statement"} {
		own[name] = schema["$defs"].(map[string]any)[name]
	}
	text, err := json.Marshal(doc)
	if err != nil {
		panic(err)
	}
	return text
})
