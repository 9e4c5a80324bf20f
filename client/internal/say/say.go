// Package say is how package client puts into words what it did not choose: texts of others, bounded, and log lines.
package say

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
)

// Cut bounds what one part may add to a text: some 256 bytes, whole characters.
func Cut(s string) string {
	const most = 256
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// Log logs. A panic of the handler must not become one of a request, and cannot be logged.
func Log(level slog.Level, text string, args ...any) {
	defer func() { _ = recover() }()
	slog.Log(context.Background(), level, text, args...)
}

// Text returns the text of a panic's value, which may panic in turn.
func Text(p any) (text string) {
	defer func() {
		if recover() != nil {
			text = fmt.Sprintf("%T", p)
		}
	}()
	return fmt.Sprint(p)
}
