package main

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/toolonce/toolonce/operator"
)

func serveVerb(fs *flag.FlagSet) action {
	addr := fs.String("addr", "127.0.0.1:0", "the `address` to listen on: of this machine alone; port 0 is any that is free")
	by := fs.String("by", "", "your `name`, which is kept with what you decide (required)")
	var o operator.Options
	fs.BoolVar(&o.ReadOnly, "read-only", false, "show, and let nothing be settled or answered")
	fs.BoolVar(&o.ShowData, "show-data", false, "show arguments, results and texts too: they may hold personal data")
	return func(ctx context.Context, e *env, _ []string) error {
		if strings.TrimSpace(*by) == "" {
			return usagef("serve: say who you are: --by NAME")
		}
		if _, err := e.store.Counts(ctx); err != nil { // said here, and not on the page
			return err
		}
		l, err := listenHere(ctx, *addr)
		if err != nil {
			return err
		}
		if err := e.others(ctx, &o); err != nil {
			return errors.Join(err, l.Close())
		}
		return e.serve(ctx, l, *by, o)
	}
}

// others says on the page whose operations it shows, so that nobody takes a quiet tenant for a quiet store.
func (e *env) others(ctx context.Context, o *operator.Options) error {
	names, err := e.store.Namespaces(ctx)
	names = slices.DeleteFunc(names, func(n string) bool { return n == e.namespace })
	if e.namespace != "" || len(names) > 0 {
		o.Name = fmt.Sprintf("namespace %q", e.namespace)
	}
	if len(names) > 0 {
		o.Note = fmt.Sprintf("Only namespace %q is shown. Others in the store: %d, such as %q; -namespace shows one of them.", e.namespace, len(names), names[0])
	}
	return err
}

// listenHere listens on an address that nobody on another machine can reach.
func listenHere(ctx context.Context, addr string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, usagef("serve: -addr %s: say host and port, such as 127.0.0.1:8080", addr)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, usagef("serve: -addr %s: others could reach it there: say 127.0.0.1:PORT, and from another machine ssh -L PORT:127.0.0.1:PORT", addr)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("serve: listening on %s: %w: say another -addr, or leave it out", addr, err)
	}
	return l, nil
}

// serve shows the store until the command ends.
func (e *env) serve(ctx context.Context, l net.Listener, by string, o operator.Options) error {
	d := newDoor(l.Addr(), by)
	o.Authorize = d.authorize
	server := &http.Server{Handler: d.guard(operator.Handler(e.store, o)), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	link := "http://" + d.host + d.path + "?token=" + d.token
	if e.json {
		_ = e.printJSON(map[string]string{"url": link}) // strings have a JSON form
	} else {
		e.printf("%s\nOpen it: the address works once, and lets in the browser that opens it. Ctrl-C ends the page.\n", link)
	}
	if err := e.unwritten(); err != nil { // nobody can open it
		return errors.Join(err, server.Close())
	}
	select {
	case err := <-served:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return errors.Join(server.Shutdown(end), server.Close())
}

// door lets in who has opened the address that was printed.
type door struct {
	by, host string
	names    []string // what the page may be called by: a name that leads here from elsewhere is none of them
	// path is random and where the cookie counts. A cookie knows no ports: other servers on this machine would be sent it.
	path          string
	token, ticket string // token is in the address, ticket in the cookie
	used          atomic.Bool
}

func newDoor(at net.Addr, by string) *door {
	_, port, _ := net.SplitHostPort(at.String()) // of a listener
	return &door{
		by: by, host: at.String(), names: []string{at.String(), "127.0.0.1:" + port, "localhost:" + port},
		path: "/" + strings.ToLower(rand.Text()[:8]) + "/", token: rand.Text(), ticket: rand.Text(),
	}
}

const cookieName = "toolonce"

// guard refuses what was not meant for this page, and lets in who has the token.
func (d *door) guard(pages http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "There is nothing here. Open the address that toolonce serve has printed.", http.StatusForbidden)
	})
	mux.Handle(d.path, http.StripPrefix(strings.TrimSuffix(d.path, "/"), pages))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token := r.URL.Query().Get("token")
		switch {
		case !slices.Contains(d.names, r.Host):
			http.Error(w, "This page is not served under that name. Open the address that toolonce serve has printed.", http.StatusMisdirectedRequest)
		case token == "" || r.URL.Path != d.path || r.Method != http.MethodGet:
			mux.ServeHTTP(w, r)
		case equal(token, d.token) && d.used.CompareAndSwap(false, true):
			http.SetCookie(w, &http.Cookie{Name: cookieName, Value: d.ticket, Path: d.path, HttpOnly: true, SameSite: http.SameSiteStrictMode})
			fallthrough
		default: // who is in already loses the token; who is not is told so there
			w.Header().Set("Cache-Control", "no-store")
			w.Header().Set("Referrer-Policy", "no-referrer")
			http.Redirect(w, r, d.path, http.StatusSeeOther)
		}
	})
}

// authorize says who asks.
func (d *door) authorize(r *http.Request) (string, error) {
	c, err := r.Cookie(cookieName)
	if err != nil || !equal(c.Value, d.ticket) {
		return "", errors.New("open the address that toolonce serve has printed. If you just have, reload this page; if it was opened before, start toolonce serve again, for it works once")
	}
	return d.by, nil
}

func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
