package usage

import (
	"slices"

	"github.com/robotsgate/robotsgate/policy"
)

// A Mapping is a row of a table: what a statement says about a label. It fits the
// statements with the same By, Key and Value.
type Mapping struct {
	By         Mechanism
	Key, Value string

	// Engine is the dialect that a page rule must have been read in, such as policy.Bing. If
	// zero, any: RFC 9309 knows no page rules.
	Engine policy.Dialect

	Label      Label
	Preference Preference
}

// Table returns the rows that For uses by itself. The package documentation shows them. The
// slice is the caller's own, to add rows to and to take rows from.
func Table() []Mapping { return slices.Clone(mappings) }

// A Label names a use. Tables may have others than these.
type Label string

// The labels that [Table] has. The package documentation says what each means.
const (
	TrainAI      Label = "train-ai"
	AIUse        Label = "ai-use"
	Search       Label = "search"
	UseReference Label = "use=reference"
	UseFull      Label = "use=full"
	TrainAIImage Label = "train-ai:image"
	AIUseImage   Label = "ai-use:image"
)

// mappings are never written to.
var mappings = []Mapping{
	{ContentUsage, "train-ai", "n", 0, TrainAI, Disallow},
	{ContentUsage, "train-ai", "y", 0, TrainAI, Allow},
	{ContentUsage, "ai-use", "n", 0, AIUse, Disallow},
	{ContentUsage, "ai-use", "y", 0, AIUse, Allow},
	{ContentUsage, "search", "n", 0, Search, Disallow},
	{ContentUsage, "search", "y", 0, Search, Allow},

	{ContentSignal, "ai-train", "no", 0, TrainAI, Disallow},
	{ContentSignal, "ai-train", "yes", 0, TrainAI, Allow},
	{ContentSignal, "ai-input", "no", 0, AIUse, Disallow},
	{ContentSignal, "ai-input", "yes", 0, AIUse, Allow},
	{ContentSignal, "search", "no", 0, Search, Disallow},
	{ContentSignal, "search", "yes", 0, Search, Allow},
	{ContentSignal, "use", "immediate", 0, TrainAI, Disallow},
	{ContentSignal, "use", "immediate", 0, UseReference, Disallow},
	{ContentSignal, "use", "immediate", 0, UseFull, Disallow},
	{ContentSignal, "use", "reference", 0, UseReference, Allow},
	{ContentSignal, "use", "reference", 0, UseFull, Disallow},
	{ContentSignal, "use", "full", 0, UseReference, Allow},
	{ContentSignal, "use", "full", 0, UseFull, Allow},

	{TDMRep, reservation, "1", 0, TrainAI, Disallow},

	{PageRule, "noai", "", 0, TrainAI, Disallow},
	{PageRule, "noai", "", 0, AIUse, Disallow},
	{PageRule, "noml", "", 0, TrainAI, Disallow},
	{PageRule, "noml", "", 0, AIUse, Disallow},
	{PageRule, "noimageai", "", 0, TrainAIImage, Disallow},
	{PageRule, "noimageai", "", 0, AIUseImage, Disallow},
	{PageRule, "noindex", "", 0, Search, Disallow},
	{PageRule, "none", "", 0, Search, Disallow},
	{PageRule, "noarchive", "", policy.Bing, TrainAI, Disallow},
	{PageRule, "noarchive", "", policy.Bing, AIUse, Disallow},
	{PageRule, "nosnippet", "", policy.Google, AIUse, Disallow},
	{PageRule, "max-snippet", "0", policy.Google, AIUse, Disallow},

	{PolicyToken, "Google-Extended", "disallow", 0, TrainAI, Disallow},
	{PolicyToken, "Google-Extended", "disallow", 0, AIUse, Disallow},
	{PolicyToken, "Applebot-Extended", "disallow", 0, TrainAI, Disallow},
}
