package client_test

import "io"

// pageBody tells its site when it is done with.
type pageBody struct {
	io.Reader
	over func()
}

func (b *pageBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil {
		b.over()
	}
	return n, err
}

func (b *pageBody) Close() error { b.over(); return nil }
