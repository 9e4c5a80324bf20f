package client

// Pacer spaces the requests to one origin. The zero value is ready to use.
type Pacer struct{}
