//go:build !unix

package pgtest

type running struct{}

// New makes and starts a server.
func New() (*Server, error) { return nil, errMissing }

// Start starts a server that was stopped.
func (s *Server) Start() error { return errMissing }

// Stop stops the server. Its data stay.
func (s *Server) Stop(string) error { return errMissing }

// Close stops the server and removes its data.
func (s *Server) Close() error { return nil }
