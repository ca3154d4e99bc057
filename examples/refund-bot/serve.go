package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"
)

// serve answers on a free port of the loopback interface until stop is called.
func serve(ctx context.Context, what string, h http.Handler) (url string, stop func() error, err error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("starting the %s: %w", what, err)
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.Serve(l) }() // it ends with stop
	return "http://" + l.Addr().String(), s.Close, nil
}
