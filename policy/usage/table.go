package usage

import "slices"

// A Mapping is a row of a table: what a statement says about a label. It fits the
// statements with the same By, Key and Value.
type Mapping struct {
	By, Key, Value string

	// Engine is the dialect that a page rule must have been read in, "Bing" for example.
	// If empty, any.
	Engine string

	Label      string
	Preference Preference
}

// Table returns the rows that For uses by itself. The package documentation shows them. The
// slice is the caller's own, to add rows to and to take rows from.
func Table() []Mapping { return slices.Clone(mappings) }

// Labels of the table.
const (
	trainAI = "train-ai"
	aiUse   = "ai-use"
	search  = "search"

	useReference = "use=reference"
	useFull      = "use=full"

	trainAIImage = "train-ai:image"
	aiUseImage   = "ai-use:image"
)

// mappings are never written to.
var mappings = []Mapping{
	{contentUsage, trainAI, "n", "", trainAI, Disallow},
	{contentUsage, trainAI, "y", "", trainAI, Allow},
	{contentUsage, aiUse, "n", "", aiUse, Disallow},
	{contentUsage, aiUse, "y", "", aiUse, Allow},
	{contentUsage, search, "n", "", search, Disallow},
	{contentUsage, search, "y", "", search, Allow},

	{contentSignal, "ai-train", "no", "", trainAI, Disallow},
	{contentSignal, "ai-train", "yes", "", trainAI, Allow},
	{contentSignal, "ai-input", "no", "", aiUse, Disallow},
	{contentSignal, "ai-input", "yes", "", aiUse, Allow},
	{contentSignal, "search", "no", "", search, Disallow},
	{contentSignal, "search", "yes", "", search, Allow},
	{contentSignal, "use", "immediate", "", trainAI, Disallow},
	{contentSignal, "use", "immediate", "", useReference, Disallow},
	{contentSignal, "use", "immediate", "", useFull, Disallow},
	{contentSignal, "use", "reference", "", useReference, Allow},
	{contentSignal, "use", "reference", "", useFull, Disallow},
	{contentSignal, "use", "full", "", useReference, Allow},
	{contentSignal, "use", "full", "", useFull, Allow},

	{tdmRep, reservation, "1", "", trainAI, Disallow},

	{pageRule, "noai", "", "", trainAI, Disallow},
	{pageRule, "noai", "", "", aiUse, Disallow},
	{pageRule, "noml", "", "", trainAI, Disallow},
	{pageRule, "noml", "", "", aiUse, Disallow},
	{pageRule, "noimageai", "", "", trainAIImage, Disallow},
	{pageRule, "noimageai", "", "", aiUseImage, Disallow},
	{pageRule, "noindex", "", "", search, Disallow},
	{pageRule, "none", "", "", search, Disallow},
	{pageRule, "noarchive", "", "Bing", trainAI, Disallow},
	{pageRule, "noarchive", "", "Bing", aiUse, Disallow},
	{pageRule, "nosnippet", "", "Google", aiUse, Disallow},
	{pageRule, "max-snippet", "0", "Google", aiUse, Disallow},

	{policyToken, "Google-Extended", "disallow", "", trainAI, Disallow},
	{policyToken, "Google-Extended", "disallow", "", aiUse, Disallow},
	{policyToken, "Applebot-Extended", "disallow", "", trainAI, Disallow},
}
