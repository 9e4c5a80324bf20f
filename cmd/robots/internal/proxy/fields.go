package proxy

// The fields of a request or an answer that a proxy has to change itself: Via, Max-Forwards, Upgrade. All
// other rules about fields of one hop are httputil.ReverseProxy's, and rewrite in proxy.go takes back what
// that does for a gateway.

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// via is our part of a Via field, for what came in a version of HTTP (RFC 9110 §7.6.3).
func via(major, minor int) string {
	if major == 1 {
		return "1." + strconv.Itoa(minor) + " robotsgate"
	}
	return strconv.Itoa(major) + " robotsgate"
}

// forwards counts a request down whose Max-Forwards field says so (RFC 9110 §7.6.2). It reports whether we
// are its last recipient; final answers it then. Other methods than TRACE and OPTIONS have no use of the
// field.
func forwards(r *http.Request) (last bool, err error) {
	field, ok := r.Header["Max-Forwards"]
	if !ok || r.Method != http.MethodTrace && r.Method != http.MethodOptions {
		return false, nil
	}
	n, err := maxForwards(field)
	if err != nil || n == 0 {
		return err == nil, err
	}
	r.Header["Max-Forwards"] = []string{strconv.FormatUint(n-1, 10)}
	return false, nil
}

// mostForwards is where we begin to count down what is larger.
const mostForwards = 1 << 20

// maxForwards reads the field. More than one line, or anything but digits, is an error: two readers could
// count it differently.
func maxForwards(field []string) (uint64, error) {
	if len(field) != 1 || field[0] == "" || strings.Trim(field[0], "0123456789") != "" {
		return 0, fmt.Errorf("Max-Forwards is %.256q, not one number", strings.Join(field, ", "))
	}
	n, err := strconv.ParseUint(field[0], 10, 64)
	if err != nil || n > mostForwards { // beyond its range
		n = mostForwards
	}
	return n, nil
}

// carriers are protocols whose connections carry requests (RFC 9113 §11.1, RFC 2817 §3): inside nothing would
// be decided on.
var carriers = [...]string{"HTTP", "TLS", "h2c", "h2"}

// offer leaves of an Upgrade field the first protocol that may pass. A server takes one or none, and none
// of HTTP/1.0, whose Expect it ignores as well (RFC 9110 §7.8, §10.1.1).
func offer(r *http.Request) {
	fields := strings.Join(r.Header["Upgrade"], ",")
	r.Header.Del("Upgrade")
	if !r.ProtoAtLeast(1, 1) {
		r.Header.Del("Expect")
		return
	}
	for protocol := range strings.SplitSeq(fields, ",") {
		protocol = strings.Trim(protocol, " \t")
		name, _, _ := strings.Cut(protocol, "/")
		carries := func(other string) bool { return strings.EqualFold(name, other) }
		if protocol != "" && !slices.ContainsFunc(carriers[:], carries) {
			r.Header.Set("Upgrade", protocol)
			return
		}
	}
}

// errSwitch: a site that does so has not understood the request.
var errSwitch = errors.New("the site switched to a protocol that it was not asked for")

// checkSwitch looks at a response of status 101 (RFC 9110 §7.8).
func checkSwitch(res *http.Response) error {
	asked, got := res.Request.Header.Get("Upgrade"), res.Header.Get("Upgrade")
	if asked == "" || !strings.EqualFold(got, asked) ||
		!httpguts.HeaderValuesContainsToken(res.Header["Connection"], "Upgrade") {
		return errSwitch
	}
	return nil
}

// secret are fields that a TRACE does not show (RFC 9110 §9.3.8).
var secret = [...]string{"Authorization", "Cookie", "Proxy-Authorization"}

// final answers a TRACE or OPTIONS that goes no further.
func final(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodOptions {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "TRACE %s %s\r\nHost: %s\r\n", r.RequestURI, r.Proto, r.Host)
	shown := r.Header.Clone()
	for _, name := range secret {
		shown.Del(name)
	}
	shown.Write(&text)
	text.WriteString("\r\n")
	w.Header().Set("Content-Type", "message/http")
	w.Write(text.Bytes())
}
