package uitest

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/sqlitestore"
)

// page is a browser that has the pages of a store open.
type page struct {
	t    *testing.T
	ctx  context.Context
	home string
}

// served is `toolonce serve` as a process, with the address that it prints. It is ended by SIGTERM, as a service would be.
func served(t *testing.T, store string, flags ...string) string {
	t.Helper()
	command := filepath.Join(t.TempDir(), "toolonce")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", command, "./cmd/toolonce")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	c := exec.Command(command, append([]string{"serve", "-store", "sqlite:" + store, "-by", "ann"}, flags...)...)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Scan()
	t.Cleanup(func() {
		if err := c.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		for lines.Scan() { // to its end: Wait closes it
		}
		if err := c.Wait(); err != nil {
			t.Errorf("SIGTERM did not end it well: %v", err)
		}
	})
	return lines.Text()
}

func open(t *testing.T, address string) *page {
	t.Helper()
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.Flag("no-sandbox", os.Getuid() == 0))
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), opts...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 4*time.Minute)
	t.Cleanup(cancel)
	p := &page{t: t, ctx: ctx}
	if err := chromedp.Listen(ctx, func(e any) { // of the policy's violations, too
		switch e := e.(type) {
		case *runtime.EventExceptionThrown:
			t.Errorf("an exception: %+v", e.ExceptionDetails)
		case *log.EventEntryAdded:
			if e.Entry.Source != log.EntrySourceNetwork { // which a refused form is
				t.Errorf("the browser complains: %s", e.Entry.Text)
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	p.do(chromedp.Navigate(address))
	p.home = is(p, chromedp.Location())
	if strings.Contains(p.home, "token") {
		t.Errorf("the token stays in the address: %s", p.home)
	}
	return p
}

func (p *page) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, steps...); err != nil {
		p.t.Fatal(err)
	}
}

// is asks the browser.
func is[T any](p *page, a chromedp.Action[T]) T {
	p.t.Helper()
	v, err := chromedp.Run(p.ctx, a)
	if err != nil {
		p.t.Fatal(err)
	}
	return v
}

// goes does what leads to another page, and waits for that.
func (p *page) goes(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	if _, err := chromedp.RunResponse(p.ctx, steps...); err != nil {
		p.t.Fatal(err)
	}
}

func (p *page) wants(selector chromedp.CSS, text string) {
	p.t.Helper()
	if got := is(p, chromedp.Text(selector)); !strings.Contains(got, text) {
		p.t.Errorf("%s lacks %q:\n%s", selector, text, got)
	}
}

func (p *page) follow(selector chromedp.CSS) { p.t.Helper(); p.goes(chromedp.Click(selector)) }

func (p *page) submit() { p.t.Helper(); p.follow("form.decide button") }

func TestARefundInDoubtIsFoundSettledAndGone(t *testing.T) {
	store := newStore(t)
	p := open(t, served(t, store, "-show-data"))
	p.wants("h1", "1 operation is in doubt")
	p.follow(`section[aria-labelledby=doubt] td a`)
	p.wants("h1", "issue_refund: in doubt")
	p.wants(".data", "1001")
	if !is(p, chromedp.Evaluate[bool](`getComputedStyle(document.querySelector("#result").parentElement).display === "none"`)) {
		t.Error("the result is asked for before it is said that it happened")
	}
	p.do(chromedp.Click(chromedp.CSS("#not")), chromedp.SendKeys(chromedp.CSS("#why"), "nothing in the books"))
	p.submit()
	p.wants("[role=alert]", "Too early to say that it did not happen")
	if focus := is(p, chromedp.Evaluate[string](`document.activeElement.id`)); focus != "refused" {
		t.Errorf("the focus is on %q, and not on why it was refused", focus)
	}
	p.do(chromedp.Click(chromedp.CSS("#happened")), chromedp.Clear(chromedp.CSS("#why")),
		chromedp.SendKeys(chromedp.CSS("#result"), `{"id":"re_1"}`), chromedp.SendKeys(chromedp.CSS("#why"), "re_1 is in the dashboard"))
	p.submit()
	p.wants("[role=status]", "Settled: it is done now.")
	p.follow(`nav a[href="./"]`)
	p.wants("section[aria-labelledby=doubt]", "Nothing is in doubt.")

	p.follow(`section[aria-labelledby=waiting] td a`)
	p.do(chromedp.Click(chromedp.CSS("#approve")), chromedp.SendKeys(chromedp.CSS("#why"), "the photos show it"))
	p.submit()
	p.wants("[role=status]", "It is approved. Start the run again.")
	p.follow(`nav a[href="./"]`)
	p.wants("section[aria-labelledby=waiting]", "Nothing waits for approval.")
	p.wants("main", "Nothing needs you, ann.")

	// The runs go on: the model is told what the person has said, and what was approved is done.
	s, err := sqlitestore.Open(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	h := handler(s)
	for _, c := range []struct {
		call registry.Call
		want registry.Verdict
		says string
	}{
		{registry.Call{Run: registry.Run{ID: "ticket-42", Conversation: "chat-7"}, Turn: 2, Position: 1, ID: "call_11", Arguments: `{"order_id":"1001","cents":189}`}, registry.Replayed, `{"id":"re_1"}`},
		{registry.Call{Run: registry.Run{ID: "ticket-99", Conversation: "chat-7"}, Turn: 1, Arguments: `{"order_id":"1001","cents":189}`}, registry.AlreadyDone, "re_1"},
		{registry.Call{Run: registry.Run{ID: longRun}, Turn: 1, ID: "call_00", Arguments: `{"order_id":"1003","cents":12000}`, Asked: time.Now()}, registry.Executed, "re_1003"},
	} {
		c.call.Tool = "issue_refund"
		if res, err := h(t.Context(), &c.call); err != nil || res.Verdict != c.want || !strings.Contains(res.Content, c.says) {
			t.Errorf("run %s is told %+v, %v, want %s", c.call.Run.ID, res, err, c.want)
		}
	}
}

func TestTheKeyboardIsEnough(t *testing.T) {
	p := open(t, served(t, newStore(t)))
	press := func(keys string) { p.do(chromedp.KeyEvent(keys)) }
	press("\t")
	focus := is(p, chromedp.Evaluate[string](`document.activeElement.textContent + getComputedStyle(document.activeElement).outlineStyle`))
	if focus != "Skip to the contentsolid" {
		t.Errorf("the first stop is %q", focus)
	}
	press("\r")
	press("\t")
	focus = is(p, chromedp.Evaluate[string](`document.activeElement.getAttribute("href")`))
	if !strings.HasPrefix(focus, "operation?id=") {
		t.Errorf("behind the skip link is %q", focus)
	}
	p.goes(chromedp.KeyEvent("\r"))
	p.do(chromedp.Focus(chromedp.CSS("#happened")))
	press(" ")
	press("\t")
	press("\t")
	press("seen")
	press("\t")
	p.goes(chromedp.KeyEvent("\r"))
	p.wants("[role=status]", "Settled: it is done now.")
}

func TestEveryPageFitsPhonesAndDesks(t *testing.T) {
	dir := os.Getenv("TOOLONCE_SHOTS")
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "toolonce-ui-"); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Logf("the pictures are in %s", dir)
	p := open(t, served(t, newStore(t), "-show-data"))
	pages := map[string]string{
		"overview": p.home, "operations": p.home + "operations", "approvals": p.home + "approvals", "runs": p.home + "runs", "acts": p.home + "acts",
		"run": p.home + "run?id=ticket-42", "problem": p.home + "run?id=none",
	}
	for name, selector := range map[string]chromedp.CSS{"operation": "section[aria-labelledby=doubt] td a", "approval": "section[aria-labelledby=waiting] td a"} {
		p.do(chromedp.Navigate(p.home))
		p.follow(selector)
		pages[name] = is(p, chromedp.Location())
	}
	for name, address := range pages {
		p.do(chromedp.Navigate(address))
		p.shoot(dir, name)
	}
	p.do(chromedp.Navigate(pages["operation"]), chromedp.Click(chromedp.CSS("#not")), chromedp.SendKeys(chromedp.CSS("#why"), "nothing in the books"))
	p.submit()
	p.shoot(dir, "refused")
	p.do(chromedp.Click(chromedp.CSS("#happened")))
	p.submit()
	p.shoot(dir, "settled")
}

// shoot takes pictures of a page as it is, and fails where it is wider than its window.
func (p *page) shoot(dir, name string) {
	p.t.Helper()
	for _, width := range []int64{390, 1280} {
		for _, scheme := range []string{"light", "dark"} {
			p.do(chromedp.EmulateViewport(width, 844))
			media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
			if _, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, media); err != nil {
				p.t.Fatal(err)
			}
			over, shot := is(p, chromedp.Evaluate[int](`document.documentElement.scrollWidth - innerWidth`)), is(p, chromedp.FullScreenshot(100))
			if over > 0 {
				p.t.Errorf("%s is %d wider than %d", name, over, width)
			}
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%d-%s.png", name, width, scheme)), shot, 0o600); err != nil {
				p.t.Fatal(err)
			}
		}
	}
}
