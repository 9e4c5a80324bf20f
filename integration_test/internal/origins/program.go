package origins

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// Program is what a server does to a connection, one Step after the other, until one
// fails. After the last it waits for the client's next request, or closes if the client
// said that there will be none.
type Program []Step

// Step does one thing. It returns false where there is nothing left to be done.
type Step func(*conn) bool

// conn is the server's side of a connection.
type conn struct {
	net.Conn              // with TLS, where that is spoken
	raw      *net.TCPConn // without
	request  *request     // that is answered
}

// request is as much of one as a server needs.
type request struct {
	path   string
	fields []string
	last   bool
}

// Write sends s.
func Write(s string) Step {
	bytes := []byte(s) // once: some are megabytes, and sent by many sites at a time
	return func(c *conn) bool {
		_, err := c.Write(bytes)
		return err == nil
	}
}

// Flood sends s again and again, for as long as the client reads.
func Flood(s string) Step {
	chunk := []byte(strings.Repeat(s, max(1, 16<<10/len(s))))
	return func(c *conn) bool {
		for {
			if _, err := c.Write(chunk); err != nil {
				return false
			}
		}
	}
}

// Drip sends s byte by byte, with a pause before each.
func Drip(s string, pause time.Duration) Step {
	return func(c *conn) bool {
		for i := range len(s) {
			time.Sleep(pause)
			if _, err := io.WriteString(c, s[i:i+1]); err != nil {
				return false
			}
		}
		return true
	}
}

// Pause waits. It is the one use of real time there is: these are real servers.
func Pause(d time.Duration) Step {
	return func(*conn) bool {
		time.Sleep(d)
		return true
	}
}

// Hang says nothing until the client goes.
func Hang(c *conn) bool {
	io.Copy(io.Discard, c)
	return false
}

// Close ends the connection, in order.
func Close(*conn) bool { return false }

// HalfClose ends the server's side of it and goes on reading.
func HalfClose(c *conn) bool {
	c.raw.CloseWrite()
	return true
}

// Reset breaks the connection: what was sent may be lost.
func Reset(c *conn) bool {
	c.raw.SetLinger(0)
	c.raw.Close()
	return false
}

// Reply returns a whole response: status line or code, fields ("Name: value"), body.
func Reply(status any, body string, fields ...string) string {
	line := fmt.Sprint(status)
	if code, ok := status.(int); ok {
		line = fmt.Sprintf("HTTP/1.1 %d Some Reason", code)
	}
	fields = append(fields, fmt.Sprintf("Content-Length: %d", len(body)))
	return Head(line, fields...) + body
}

// Head returns a status line and fields, with the empty line that ends them.
func Head(line string, fields ...string) string {
	return line + "\r\n" + strings.Join(append(fields, "", ""), "\r\n")
}

// serve does what the origin does on one connection.
func (n *Net) serve(raw net.Conn, c call) {
	nth := int(c.origin.conns.Add(1)) - 1
	s := &conn{Conn: raw, raw: raw.(*net.TCPConn)}
	if p := pick(c.origin.Accept, nth); p != nil {
		s.run(p)
		return
	}
	if c.tls {
		s.Conn = n.ca.server(raw, c.origin)
		// For closing in order; a client that is gone must not hold the connection.
		defer s.Conn.Close()
	}
	in := bufio.NewReader(s.Conn)
	for {
		r, err := readRequest(in)
		if err != nil {
			return
		}
		s.request = r
		p := pick(c.origin.Paths[r.path], c.origin.note(r))
		if p == nil {
			p = Program{Write(Reply(200, "a page\n"))}
		}
		if !s.run(p) || r.last {
			return
		}
	}
}

func pick(of []Program, nth int) Program {
	if len(of) == 0 {
		return nil
	}
	return of[min(nth, len(of)-1)]
}

func (c *conn) run(p Program) bool {
	for _, step := range p {
		if !step(c) {
			return false
		}
	}
	return true
}

// readRequest reads one request without a body.
func readRequest(in *bufio.Reader) (*request, error) {
	r := &request{}
	for size := 0; ; {
		line, err := in.ReadString('\n')
		if size += len(line); err != nil || size > 64<<10 {
			return nil, fmt.Errorf("request of %d bytes: %w", size, err)
		}
		line = strings.TrimRight(line, "\r\n")
		switch {
		case r.path == "":
			words := strings.Fields(line)
			if len(words) != 3 || !strings.HasPrefix(words[2], "HTTP/") { // a TLS handshake may look like three
				return nil, fmt.Errorf("request line %q", line)
			}
			r.path, _, _ = strings.Cut(words[1], "?")
		case line == "":
			return r, nil
		default:
			r.last = r.last || strings.EqualFold(line, "Connection: close")
			r.fields = append(r.fields, line)
		}
	}
}
