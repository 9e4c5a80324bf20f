package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// ftpCmd is "ftp FILE": it serves FILE to anyone who asks for a file over FTP, and sets $FTP, the URL of
// its site.
func ftpCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: ftp FILE")
	}
	file := ts.ReadFile(args[0])
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Defer(func() { l.Close() })
	ts.Setenv("FTP", "ftp://"+l.Addr().String())
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go sayFile(c, file)
		}
	}()
}

// sayFile is a session of FTP (RFC 959, RFC 2428).
func sayFile(c net.Conn, file string) {
	defer c.Close()
	data, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return
	}
	defer data.Close()
	fmt.Fprint(c, "220 ready\r\n")
	for lines := bufio.NewScanner(c); lines.Scan(); {
		verb, _, _ := strings.Cut(lines.Text(), " ")
		switch verb {
		case "EPSV":
			fmt.Fprintf(c, "229 (|||%d|)\r\n", data.Addr().(*net.TCPAddr).Port)
		case "RETR":
			fmt.Fprint(c, "150 here\r\n")
			if d, err := data.Accept(); err == nil {
				io.WriteString(d, file)
				d.Close()
			}
			fmt.Fprint(c, "226 done\r\n")
		case "PASS", "USER":
			fmt.Fprint(c, "230 in\r\n")
		default:
			fmt.Fprint(c, "200 ok\r\n")
		}
	}
}
