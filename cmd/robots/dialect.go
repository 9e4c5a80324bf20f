package main

import (
	"fmt"
	"strings"

	"github.com/robotsgate/robotsgate/policy"
)

// dialects by the names that --as and the field "profile" of a record take.
var dialects = []struct {
	name    string
	dialect policy.Dialect
}{
	{"rfc9309", policy.RFC9309},
	{"google", policy.Google},
	{"yandex", policy.Yandex},
	{"bing", policy.Bing},
	{"original", policy.Original},
}

func dialectByName(name string) (policy.Dialect, error) {
	for _, d := range dialects {
		if strings.EqualFold(d.name, name) {
			return d.dialect, nil
		}
	}
	return 0, fmt.Errorf("no dialect is called %q: it is one of %s", name, dialectNames())
}

func dialectName(d policy.Dialect) string {
	for _, known := range dialects {
		if known.dialect == d {
			return known.name
		}
	}
	return d.String()
}

func dialectNames() string {
	var names []string
	for _, d := range dialects {
		names = append(names, d.name)
	}
	return strings.Join(names, ", ")
}

// dialectFlag is --as.
type dialectFlag struct{ policy.Dialect }

func (f *dialectFlag) String() string { return dialectName(f.Dialect) }
func (f *dialectFlag) Type() string   { return "dialect" }

func (f *dialectFlag) Set(name string) (err error) {
	f.Dialect, err = dialectByName(name)
	return err
}
