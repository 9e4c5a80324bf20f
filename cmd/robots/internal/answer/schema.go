package answer

import _ "embed"

// SchemaVersion is that of Schema. Within a version fields may be added; none is
// renamed, removed or given another meaning.
const SchemaVersion = 1

// Schema describes all JSON that the command writes.
//
//go:embed schema.json
var Schema []byte
