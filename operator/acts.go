package operator

import (
	"fmt"
	"net/http"
	"time"

	"github.com/toolonce/toolonce/middleware"
)

// acts is the list of what people did, the last act first.
func (s *site) acts(v *visit) error {
	all, err := s.recorder.Acts(v.Context())
	if err != nil {
		return err
	}
	t := table{Caption: "What people did, the last act first", Head: []string{"Act", "When", "What", "About", "By", "Why", "Detail"}, Empty: "Nobody has done anything yet."}
	for i := len(all) - 1; i >= 0; i-- {
		if len(t.Rows) == most {
			t.More = fmt.Sprintf("These are the last %d; `toolonce export` and the store have all.", most)
			break
		}
		a := &all[i]
		t.add(text(fmt.Sprint(a.Number)), moment(a.At, time.Now()), badge(a.Kind), id(a.Target, s.aboutPage(a.Kind)), text(a.By), text(a.Why), text(a.Detail))
	}
	s.render(v, http.StatusOK, "acts", "Acts", t)
	return nil
}

// aboutPage is the page that shows what an act was about, "" for none.
func (s *site) aboutPage(kind string) string {
	switch kind {
	case middleware.ActHappened, middleware.ActNotHappened, "recovered": // the last is the command's own
		return "operation"
	case middleware.ActApproved, middleware.ActDenied:
		if s.approver != nil {
			return "approval"
		}
	case middleware.ActForgot:
		return "run"
	}
	return ""
}
