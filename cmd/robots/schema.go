package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/robotsgate/robotsgate/cmd/robots/internal/answer"
	"github.com/robotsgate/robotsgate/cmd/robots/internal/shell"
)

// schemaCommand makes the subcommand.
func schemaCommand(a *shell.App) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Write the JSON Schema of what --json writes",
		Long: `Schema writes a JSON Schema (draft 2020-12) of every object that the subcommands
write with --json. The version is in its "$id". Within a version fields may be added;
none is renamed, removed or given another meaning.`,
		Example: `  robots schema > robots.schema.json
  robots schema | jq '."$defs".decision.properties | keys'`,
		Args: shell.None("schema takes no arguments"),
		RunE: shell.Runs(func(context.Context, []string) error {
			_, err := a.Out.Write(answer.Schema)
			return err
		}),
	}
}
