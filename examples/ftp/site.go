package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

const settings = `
listen=YES
listen_address=127.0.0.1
listen_port=%d
background=NO
run_as_launching_user=YES
seccomp_sandbox=NO
anonymous_enable=YES
anon_root=%s
`

// serve runs vsftpd with the files on a port of this machine, and returns its URL. If vsftpd
// is not there, the error is exec.ErrNotFound. It ends with ctx; stop waits for that.
func serve(ctx context.Context, files map[string]string) (site string, stop func(), err error) {
	program, err := exec.LookPath("vsftpd")
	if err != nil {
		return "", nil, err
	}
	dir, err := os.MkdirTemp("", "ftp")
	if err != nil {
		return "", nil, err
	}
	port, err := write(dir, files)
	if err != nil {
		os.RemoveAll(dir)
		return "", nil, err
	}
	server := exec.CommandContext(ctx, program, filepath.Join(dir, "conf"))
	if err := server.Start(); err != nil {
		os.RemoveAll(dir)
		return "", nil, err
	}
	stop = func() {
		server.Process.Kill()
		server.Wait()
		os.RemoveAll(dir)
	}
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	for range 500 {
		if conn, err := net.Dial("tcp", addr); err == nil {
			conn.Close()
			return "ftp://" + addr, stop, nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	stop()
	return "", nil, fmt.Errorf("vsftpd does not listen on %s", addr)
}

// write writes the files and, beside them, the settings for the port that it returns.
func write(dir string, files map[string]string) (port int, err error) {
	root := filepath.Join(dir, "files")
	if err := os.Mkdir(root, 0o755); err != nil {
		return 0, err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			return 0, err
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	port = l.Addr().(*net.TCPAddr).Port
	l.Close()
	return port, os.WriteFile(filepath.Join(dir, "conf"), fmt.Appendf(nil, settings, port, root), 0o600)
}
