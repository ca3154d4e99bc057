package operator_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/operator"
)

// The page below /toolonce/ of a service, for those whom the service lets in.
func ExampleHandler() {
	page := operator.Handler(middleware.Memory(), operator.Options{
		Authorize: func(r *http.Request) (string, error) {
			name, _, ok := r.BasicAuth()
			if !ok {
				return "", errors.New("log in first")
			}
			return name, nil
		},
	})
	mux := http.NewServeMux()
	mux.Handle("/toolonce/", http.StripPrefix("/toolonce", page))

	for _, name := range []string{"", "ann"} {
		r := httptest.NewRequest(http.MethodGet, "/toolonce/", nil)
		if name != "" {
			r.SetBasicAuth(name, "secret")
		}
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Header().Get("Content-Security-Policy") != "")
	}
	// Output:
	// 403 true
	// 200 true
}
