package sign

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/dunglas/httpsfv"
)

// message is what a signature can cover of a request, or of a response with its request.
type message struct {
	header    http.Header
	method    string
	scheme    string
	authority string   // in canonical form
	target    string   // path and query as sent, "/" at least
	request   *message // of a response; nil: this is a request
}

// maxComponents bounds what a signature covers. For each member of a field that is covered, the whole field is read.
const maxComponents = 32

// base returns the signature base (RFC 9421 §2.5): a line for each covered component, and one
// for the signature's own parameters.
func base(m *message, input httpsfv.InnerList) (string, error) {
	if len(input.Items) > maxComponents {
		return "", fmt.Errorf("more than %d components are covered", maxComponents)
	}
	var text strings.Builder
	seen := map[string]bool{}
	for _, component := range input.Items {
		id, err := httpsfv.Marshal(component)
		if err != nil {
			return "", fmt.Errorf("covered component: %w", err)
		}
		value, err := m.value(component)
		switch {
		case seen[id]: // RFC 9421 §2.5
			return "", fmt.Errorf("%s is covered twice", id)
		case err != nil:
			return "", fmt.Errorf("cannot cover %s: %w", id, err)
		case strings.ContainsAny(value, "\r\n"): // which would begin a component of its own
			return "", fmt.Errorf("cannot cover %s: it has a line break", id)
		}
		seen[id] = true
		text.WriteString(id + ": " + value + "\n")
	}
	params, err := httpsfv.Marshal(input)
	if err != nil {
		return "", fmt.Errorf("signature parameters: %w", err)
	}
	text.WriteString(`"@signature-params": ` + params)
	return text.String(), nil
}

var errAbsent = errors.New("the message has no such field")

// value returns the value of a component (RFC 9421 §2.1 and §2.2).
func (m *message) value(component httpsfv.Item) (string, error) {
	name, ok := component.Value.(string)
	if !ok {
		return "", errors.New("its name is no string")
	}
	key, ofRequest, err := parameters(component)
	if err != nil {
		return "", err
	}
	if ofRequest {
		if m = m.request; m == nil {
			return "", errors.New("a request has no request of its own")
		}
	}
	lines := slices.Clone(m.header.Values(name))
	switch {
	case strings.HasPrefix(name, "@") && (key != "" || m.method == ""):
		return "", errors.New("it has no meaning here") // a response has a @status alone (RFC 9421 §2.2.9), which is not known here
	case strings.HasPrefix(name, "@"):
		return m.derived(name)
	case name != strings.ToLower(name):
		return "", errors.New("names of fields are in lower case")
	case len(lines) == 0:
		return "", errAbsent
	case key != "":
		return memberOf(lines, key)
	}
	for i, line := range lines { // RFC 9421 §2.1
		lines[i] = strings.Trim(line, " \t")
	}
	return strings.Join(lines, ", "), nil
}

// parameters returns those of a component that are known here. A signature over others cannot be made or checked.
func parameters(component httpsfv.Item) (key string, ofRequest bool, err error) {
	for _, name := range component.Params.Names() {
		value, _ := component.Params.Get(name)
		switch name {
		case "key":
			if key, _ = value.(string); key == "" {
				err = errors.New("its key is no string")
			}
		case "req":
			if ofRequest, _ = value.(bool); !ofRequest {
				err = errors.New("its req is not true")
			}
		default:
			err = fmt.Errorf("parameter %q is not known here", name)
		}
	}
	return key, ofRequest, err
}

// derived returns a component that is no field (RFC 9421 §2.2).
func (m *message) derived(name string) (string, error) {
	path, query, _ := strings.Cut(m.target, "?")
	switch name {
	case "@method":
		return m.method, nil
	case "@scheme":
		return m.scheme, nil
	case "@authority":
		return m.authority, nil
	case "@target-uri":
		return m.scheme + "://" + m.authority + m.target, nil
	case "@path":
		return path, nil
	case "@query":
		return "?" + query, nil // "?" for none too (RFC 9421 §2.2.7)
	}
	return "", errors.New("it is not known here")
}

// memberOf returns one member of a Dictionary field (RFC 9421 §2.1.2).
func memberOf(lines []string, key string) (string, error) {
	if size(lines) > maxFields {
		return "", fmt.Errorf("the field has more than %d bytes", maxFields)
	}
	d, err := httpsfv.UnmarshalDictionary(lines)
	if err != nil {
		return "", err
	}
	if member, ok := d.Get(key); ok {
		return httpsfv.Marshal(member)
	}
	return "", errAbsent
}
