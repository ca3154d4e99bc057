// Package operator is a web page for those who look after a store: it shows what is in doubt and what waits for a person,
// takes their verdicts, and shows operations and runs with what was stopped in them and why. It is what `toolonce serve`
// serves, and an http.Handler to mount in a service, under any prefix:
//
//	page := operator.Handler(store, operator.Options{Authorize: whoIsThis})
//	mux.Handle("/toolonce/", http.StripPrefix("/toolonce", page))
//
// It works without script, asks nothing from elsewhere, and keeps nothing. What users and models wrote is left out unless
// Options.ShowData says so. Control, direction and zero-width characters are written out.
package operator

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/middleware"
)

// Store is what the pages need of one tenant's store. More of them come with a store that also is a [middleware.Approver],
// [middleware.Inspector], [middleware.Recorder] or [journal.Reader], and with DeclareGone an operation can be settled where
// nothing shows whether its process lives. *sqlitestore.Store and *pgstore.Store have all of that.
type Store interface {
	middleware.Ledger
	middleware.Lister
}

// Options of [Handler].
type Options struct {
	// Authorize says who asks, by the name that is kept with what this person decides. An error, or no name, is answered
	// with 403 and the error's text, and nothing is read. It is asked on every request for a page, and must be set. Whoever
	// it lets in may settle and approve, unless ReadOnly.
	Authorize func(*http.Request) (by string, err error)
	// ReadOnly refuses every POST and shows no form.
	ReadOnly bool
	// ShowData shows arguments, results and what the model said. They may hold personal data. On the page of a run the
	// arguments are as the model wrote them: what tools declare as secret stands in them too.
	ShowData bool
	// Name stands beside the title, such as the tenant's or "production". "": nothing does.
	Name string
	// Note is a sentence on the first page, such as what is not shown here. "": none.
	Note string
	// Logger is told when the store cannot be read or written. nil: slog.Default().
	Logger *slog.Logger
}

//go:embed templates/*.html static/*
var files embed.FS

// site is a Handler: a store, what of it can be shown, and how.
type site struct {
	Options
	store     Store
	approver  middleware.Approver  // nil: none
	inspector middleware.Inspector // nil: none
	recorder  middleware.Recorder  // nil: none
	reader    journal.Reader       // nil: none
	mourner   mourner              // nil: none
	pages     *template.Template
	routes    map[string]route
}

// mourner is a store that can be told that a process has ended.
type mourner interface {
	DeclareGone(ctx context.Context, owner string) error
}

// route is one page: what shows it, and what takes its form, nil where it has none.
type route struct {
	get, post func(*visit) error
	nav       string // its name in the navigation, "" where it is not there
}

// visit is one request of a person.
type visit struct {
	*http.Request
	w  http.ResponseWriter
	by string
}

// Handler makes the pages of a store. It is safe for concurrent use. It panics where Options.Authorize is nil: such a page
// would let everybody settle everything.
//
// It sets its own security headers, a Content-Security-Policy among them, and refuses POSTs from pages of another origin. It
// does not check the Host: a service that is reached by name knows its own.
func Handler(store Store, opts Options) http.Handler {
	if opts.Authorize == nil {
		panic("operator: Options.Authorize is nil, so everybody could settle everything: set it to what says who asks")
	}
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	s := &site{Options: opts, store: store, pages: template.Must(template.ParseFS(files, "templates/*.html"))}
	s.approver, _ = store.(middleware.Approver)
	s.inspector, _ = store.(middleware.Inspector)
	s.recorder, _ = store.(middleware.Recorder)
	s.reader, _ = store.(journal.Reader)
	s.mourner, _ = store.(mourner)
	s.routes = map[string]route{
		"":           {get: s.overview, nav: "Overview"},
		"operations": {get: s.operations, nav: "Operations"},
		"operation":  {get: s.operation, post: s.settle},
		"run":        {get: s.run},
	}
	if s.approver != nil {
		s.routes["approvals"] = route{get: s.approvals, nav: "Approvals"}
		s.routes["approval"] = route{get: s.approval, post: s.decide}
	}
	if s.reader != nil {
		s.routes["runs"] = route{get: s.runs, nav: "Runs"}
	}
	if s.recorder != nil {
		s.routes["acts"] = route{get: s.acts, nav: "Acts"}
	}
	cross := http.NewCrossOriginProtection()
	cross.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.problem(&visit{Request: r, w: w}, http.StatusForbidden, "This was sent from a page of another origin, and was refused. Nothing was changed.")
	}))
	return secured(cross.Handler(s))
}

// order is that of the navigation.
func order() []string { return []string{"", "operations", "approvals", "runs", "acts"} }

// secured sets the headers of every answer.
func secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
			"X-Content-Type-Options":  "nosniff",
			"Referrer-Policy":         "no-referrer",
			"Cache-Control":           "no-store",
		} {
			w.Header().Set(name, value)
		}
		next.ServeHTTP(w, r)
	})
}

// ServeHTTP finds the page. All of them lie beside one another, so that a link is the same under every prefix.
func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v := &visit{Request: r, w: w}
	name := strings.TrimPrefix(r.URL.Path, "/")
	if slices.Contains([]string{"style.css", "script.js", "icon.svg"}, name) { // they tell nothing
		http.ServeFileFS(w, r, files, path.Join("static", name))
		return
	}
	by, err := s.Authorize(r)
	if err == nil && by == "" {
		err = errors.New("nothing says who you are")
	}
	if err != nil {
		s.problem(v, http.StatusForbidden, sentence("You may not see this: "+err.Error()))
		return
	}
	v.by = by
	page, ok := s.routes[name]
	if !ok {
		s.problem(v, http.StatusNotFound, "There is no such page.")
		return
	}
	do := page.get
	switch r.Method {
	case http.MethodGet, http.MethodHead:
	case http.MethodPost:
		if s.ReadOnly {
			s.problem(v, http.StatusForbidden, "This page only shows: nothing can be settled or answered here.")
			return
		}
		do = page.post
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	default:
		do = nil
	}
	if do == nil {
		w.Header().Set("Allow", "GET, HEAD")
		s.problem(v, http.StatusMethodNotAllowed, "This page takes no "+r.Method+".")
		return
	}
	s.answer(v, do)
}

// answer does what a page is for, and tells why where it cannot.
func (s *site) answer(v *visit, do func(*visit) error) {
	err := do(v)
	no, said := errors.AsType[*refusal](err)
	switch {
	case err == nil:
	case said:
		s.problem(v, no.status, no.reason)
	case v.Context().Err() != nil: // nobody reads it
	default:
		s.Logger.Error("operator: the store could not be used", "page", v.URL.Path, "error", err)
		s.problem(v, http.StatusInternalServerError, "The store could not be used: "+err.Error())
	}
}

// maxForm is how long a form may be, in bytes.
const maxForm = 1 << 20

// badForm says why a form was not read.
func badForm(err error) error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &refusal{http.StatusRequestEntityTooLarge, fmt.Sprintf("The form is too large: more than %d KiB. Say it in fewer words. Nothing was changed.", maxForm>>10)}
	}
	return &refusal{http.StatusBadRequest, "The form could not be read. Nothing was changed."}
}

// refusal is an answer that is told as it stands.
type refusal struct {
	status int
	reason string
}

func (r *refusal) Error() string { return r.reason }

// layout is what all pages have. It is made by render.
type layout struct {
	Site   string
	Title  string
	By     string
	Nav    []link
	Closed bool // it only shows
	Hides  bool // data of users is left out
	Page   any
}

type link struct {
	Name, Href string
	Here       bool
}

// problem is a page that says why there is no other.
func (s *site) problem(v *visit, status int, reason string) {
	s.render(v, status, "problem", http.StatusText(status), reason)
}

// render writes a page, whole or not at all.
func (s *site) render(v *visit, status int, name, title string, page any) {
	l := layout{Site: s.Name, Title: title, By: v.by, Closed: s.ReadOnly, Hides: !s.ShowData, Page: page}
	for _, to := range order() {
		if r, ok := s.routes[to]; ok && v.by != "" {
			href := to
			if href == "" {
				href = "./"
			}
			l.Nav = append(l.Nav, link{r.nav, href, to == strings.TrimPrefix(v.URL.Path, "/")})
		}
	}
	var b bytes.Buffer
	if err := s.pages.ExecuteTemplate(&b, name+".html", l); err != nil {
		s.Logger.Error("operator: a page could not be made", "page", name, "error", err)
		http.Error(v.w, "operator: the page could not be made", http.StatusInternalServerError)
		return
	}
	v.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	v.w.WriteHeader(status)
	_, _ = v.w.Write([]byte(lines(b.String()))) // who has gone does not read it
}
