package main

import (
	"context"
	_ "embed"

	"github.com/spf13/cobra"
)

// schemaVersion is that of schema.json. Within a version fields may be added; none is
// renamed, removed or given another meaning.
const schemaVersion = 1

// schemaText describes all JSON that the command writes.
//
//go:embed schema.json
var schemaText []byte

// schema makes the subcommand.
func (a *app) schema() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Write the JSON Schema of what --json writes",
		Long: `Schema writes a JSON Schema (draft 2020-12) of every object that the subcommands
write with --json. The version is in its "$id". Within a version fields may be added;
none is renamed, removed or given another meaning.`,
		Example: `  robots schema > robots.schema.json
  robots schema | jq '."$defs".decision.properties | keys'`,
		Args: none("schema takes no arguments"),
		RunE: runs(func(context.Context, []string) error {
			_, err := a.out.Write(schemaText)
			return err
		}),
	}
}
