package answer

import (
	"fmt"
	"strings"

	"github.com/robotsgate/robotsgate/policy"
)

// Dialects in the order in which --as all shows them.
var Dialects = [...]policy.Dialect{policy.RFC9309, policy.Google, policy.Yandex, policy.Bing, policy.Original}

// DialectByName is UnmarshalText with an error that names the remedy.
func DialectByName(name string) (d policy.Dialect, err error) {
	if d.UnmarshalText([]byte(name)) != nil {
		return 0, fmt.Errorf("no dialect is called %s: it is one of %s", Quoted(name), strings.Join(DialectNames(), ", "))
	}
	return d, nil
}

// DialectName is the name in lower case, as --as and the field "profile" of a record
// are mostly written.
func DialectName(d policy.Dialect) string { return strings.ToLower(d.String()) }

func DialectNames() []string {
	var names []string
	for _, d := range Dialects {
		names = append(names, DialectName(d))
	}
	return names
}
