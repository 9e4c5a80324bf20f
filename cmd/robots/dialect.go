package main

import (
	"fmt"
	"strings"

	"github.com/robotsgate/robotsgate/policy"
)

// dialects in the order in which --as all shows them.
var dialects = [...]policy.Dialect{policy.RFC9309, policy.Google, policy.Yandex, policy.Bing, policy.Original}

// dialectByName is UnmarshalText with an error that names the remedy.
func dialectByName(name string) (d policy.Dialect, err error) {
	if d.UnmarshalText([]byte(name)) != nil {
		return 0, fmt.Errorf("no dialect is called %s: it is one of %s", quoted(name), strings.Join(dialectNames(), ", "))
	}
	return d, nil
}

// dialectName is the name in lower case, as --as and the field "profile" of a record
// are mostly written.
func dialectName(d policy.Dialect) string { return strings.ToLower(d.String()) }

func dialectNames() []string {
	var names []string
	for _, d := range dialects {
		names = append(names, dialectName(d))
	}
	return names
}
