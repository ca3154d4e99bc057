package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// story is a service and its clients. It is stopped while it moves money, and started again.
func story() error {
	dir, err := os.MkdirTemp("", "http-service-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "once.db")

	moving, move := make(chan bool), make(chan bool)
	slow := func(_ context.Context, in refund) {
		if in.OrderID == "1002" {
			close(moving)
			<-move
		}
	}
	url, ended, err := start(path, slow)
	if err != nil {
		return err
	}
	post(url, "key-1", "Refund order 1001")
	post(url, "key-1", "Refund order 1001") // it got no answer, as it were
	post(url, "key-1", "Refund order 1003")
	post(url, "", "Refund order 1003")

	told := make(chan bool)
	go func() { post(url, "key-2", "Refund order 1002"); close(told) }()
	<-moving
	fmt.Println("SIGTERM")
	if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
		return err
	}
	for takes(url) {
	}
	close(move)
	<-told
	if err := <-ended; err != nil {
		return err
	}
	fmt.Println("started again")
	if url, ended, err = start(path, slow); err != nil {
		return err
	}
	post(url, "key-2", "Refund order 1002")
	return errors.Join(syscall.Kill(os.Getpid(), syscall.SIGTERM), <-ended)
}

func start(path string, before func(context.Context, refund)) (url string, ended chan error, err error) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	ended = make(chan error, 1)
	go func() { ended <- serve(context.Background(), l, path, before) }()
	return "http://" + l.Addr().String(), ended, nil
}

// takes reports whether the service still takes requests.
func takes(url string) bool {
	c, err := new(net.Dialer).DialContext(context.Background(), "tcp", strings.TrimPrefix(url, "http://"))
	if err == nil {
		_ = c.Close()
	}
	return err == nil
}

func post(url, key, message string) {
	body, _ := json.Marshal(map[string]string{"message": message}) // strings always encode
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, url+"/runs", strings.NewReader(string(body)))
	if err != nil {
		fmt.Println(err)
		return
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = res.Body.Close() }()
	var out struct{ Answer string }
	if err := json.NewDecoder(res.Body).Decode(&out); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%-5s %q: %d %s\n", key, message, res.StatusCode, out.Answer)
}
