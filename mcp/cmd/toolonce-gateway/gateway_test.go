package main

import (
	"context"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestTwoEqualCallsPayOnce(t *testing.T) {
	w := newWorld(t)
	s, _ := w.connect()
	verdict, content := w.call(s, "pay", payment{Order: "1"})
	if verdict != "executed" || content != "paid 1, key of 64" {
		t.Errorf("first call: %s %s", verdict, content)
	}
	verdict, content = w.call(s, "pay", payment{Order: "1"})
	if verdict != "already_done" || !strings.Contains(content, `"result":"paid 1, key of 64"`) {
		t.Errorf("second call: %s %s", verdict, content)
	}
	if verdict, _ = w.call(s, "pay/later", payment{Order: "1"}); verdict != "executed" {
		t.Errorf("another tool: %s", verdict)
	}
	w.want("pay_1", "pay_1")
}

func TestClientThatStartsAgainFindsWhatIsDone(t *testing.T) {
	w := newWorld(t)
	s, _ := w.connect()
	w.call(s, "pay", payment{Order: "1"})
	_ = s.Close()
	s, _ = w.connect()
	if verdict, content := w.call(s, "pay", payment{Order: "1"}); verdict != "already_done" {
		t.Errorf("%s %s", verdict, content)
	}
	w.want("pay_1")
	res, err := s.CallTool(t.Context(), &mcp.CallToolParams{
		Name: "pay", Arguments: payment{Order: "1"}, Meta: mcp.Meta{"toolonce/run": "another"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if verdict, _ := verdictOf(res); verdict != "executed" {
		t.Errorf("another run: %s", verdict)
	}
	w.want("pay_1", "pay_1")
}

func TestKilledServerLeavesInDoubtAndResolveSettles(t *testing.T) {
	w := newWorld(t)
	toolonce := buildToolonce(t)
	s, _ := w.connect()
	in := payment{Order: "1", Then: "die"}
	verdict, content := w.call(s, "pay", in)
	if verdict != "outcome_unknown" {
		t.Fatalf("%s %s", verdict, content)
	}
	if err := s.Wait(); err != nil && !strings.Contains(err.Error(), "exit status 3") {
		t.Error(err)
	}
	w.settle(toolonce, operation(t, content))
	s, _ = w.connect()
	if verdict, content := w.call(s, "pay", in); verdict != "already_done" || !strings.Contains(content, `"result":"paid by hand"`) {
		t.Errorf("after the verdict: %s %s", verdict, content)
	}
	w.want("pay_1")
}

func TestKilledGatewayLeavesInDoubtAndResolveSettles(t *testing.T) {
	w := newWorld(t)
	toolonce := buildToolonce(t)
	s, _ := w.connect()
	in := payment{Order: "1", Then: "kill gateway"}
	if _, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "pay", Arguments: in}); err == nil {
		t.Fatal("the gateway lives")
	}
	s, _ = w.connect()
	verdict, content := w.call(s, "pay", in)
	if verdict != "outcome_unknown" {
		t.Fatalf("%s %s", verdict, content)
	}
	w.settle(toolonce, operation(t, content))
	if verdict, content := w.call(s, "pay", in); verdict != "already_done" {
		t.Errorf("after the verdict: %s %s", verdict, content)
	}
	w.want("pay_1")
}

func TestReadsPassThroughEveryTime(t *testing.T) {
	w := newWorld(t, "-trust")
	s, _ := w.connect()
	for range 2 {
		if verdict, content := w.call(s, "look", payment{Order: "1"}); verdict != "" || content != `{"orders":3}` {
			t.Errorf("%s %s", verdict, content)
		}
	}
	w.call(s, "pay", payment{Order: "1"})
	w.call(s, "pay", payment{Order: "1"})
	w.want("look", "look", "pay_1")
}

func TestServerThatIsNotTrustedIsNotBelieved(t *testing.T) {
	w := newWorld(t)
	s, _ := w.connect()
	w.call(s, "look", payment{Order: "1"})
	w.call(s, "look", payment{Order: "1"})
	w.want("look")
}

func TestToolsFileOutweighsATrustedServer(t *testing.T) {
	w := newWorld(t)
	w.flags = []string{"-trust", "-tools", w.file("tools.json", `{"look": {"key": ["order"]}}`)}
	s, _ := w.connect()
	w.call(s, "look", payment{Order: "1"})
	w.call(s, "look", payment{Order: "1"})
	w.want("look")
}

func TestTrustedServerIsAskedAgainWhenItsToolsChange(t *testing.T) {
	changed := make(chan bool, 1)
	w := newWorld(t, "-trust")
	w.options = &mcp.ClientOptions{ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {
		select {
		case changed <- true:
		default:
		}
	}}
	s, _ := w.connect()
	w.call(s, "look", payment{})
	w.call(s, "grow", payment{})
	<-changed
	w.call(s, "peek", payment{})
	w.call(s, "peek", payment{})
	w.want("look", "look", "look")
}

func TestToolsFileDecides(t *testing.T) {
	w := newWorld(t)
	w.flags = []string{"-tools", w.file("tools.json", `{
		"look": {"effect": "Read"},
		"pay": {"key": ["order"], "ignore": ["then"]},
		"*": {"errorsHaveNoEffect": true}
	}`)}
	s, _ := w.connect()
	w.call(s, "look", payment{})
	w.call(s, "look", payment{})
	w.call(s, "pay", payment{Order: "1"})
	if verdict, _ := w.call(s, "pay", payment{Order: "1", Then: "fail"}); verdict != "already_done" {
		t.Errorf("the same key: %s", verdict)
	}
	for range 2 {
		verdict, content := w.call(s, "pay/later", payment{Order: "2", Then: "fail"})
		if verdict != "failed" || content != "the bank is closed" {
			t.Errorf("%s %s", verdict, content)
		}
	}
	w.want("look", "look", "pay_1", "pay_2", "pay_2")
}

func TestErrorOfAToolLeavesInDoubt(t *testing.T) {
	w := newWorld(t)
	s, _ := w.connect()
	verdict, content := w.call(s, "pay", payment{Order: "1", Then: "fail"})
	if verdict != "outcome_unknown" || !strings.HasSuffix(content, "|The server said: the bank is closed") {
		t.Errorf("%s %s", verdict, content)
	}
	if verdict, _ = w.call(s, "pay", payment{Order: "1", Then: "fail"}); verdict != "outcome_unknown" {
		t.Errorf("again: %s", verdict)
	}
	w.want("pay_1")
}

func TestCallThatWasNotExecutedMayBeMadeAgain(t *testing.T) {
	w := newWorld(t)
	s, _ := w.connect()
	for range 2 {
		_, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "no such tool"})
		if err == nil || !strings.Contains(err.Error(), "unknown tool") {
			t.Errorf("the server's own error: %v", err)
		}
	}
	w.want()
}

func TestAskingTheUserIsNoRepeat(t *testing.T) {
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			w := newWorld(t)
			asked := 0
			client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "v1"}, &mcp.ClientOptions{
				ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					asked++
					return &mcp.ElicitResult{Action: "accept", Content: map[string]any{}}, nil
				},
			})
			s := w.over(client, version)
			verdict, content := w.call(s, "pay", payment{Order: "1", Then: "ask"})
			if verdict != "executed" || content != "paid 1, key of 64" || asked != 1 {
				t.Errorf("%s %s, asked %d times", verdict, content, asked)
			}
			if verdict, content := w.call(s, "pay", payment{Order: "1", Then: "ask"}); verdict != "already_done" || asked != 1 {
				t.Errorf("again: %s %s, asked %d times", verdict, content, asked)
			}
			w.want("pay_1")
		})
	}
}

func TestEverythingElsePassesThrough(t *testing.T) {
	changed := make(chan bool, 1)
	w := newWorld(t)
	w.options = &mcp.ClientOptions{ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {
		select {
		case changed <- true:
		default:
		}
	}}
	s, _ := w.connect()
	if res, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "shop://terms"}); err != nil || res.Contents[0].Text != "pay at once" {
		t.Errorf("a resource: %v", err)
	}
	var names []string
	for tool, err := range s.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		if tool.OutputSchema != nil {
			t.Errorf("%s is guarded and has an output schema, which verdicts do not fit", tool.Name)
		}
		names = append(names, tool.Name)
	}
	if diff := cmp.Diff([]string{"grow", "look", "pay", "pay/later", "structured"}, names); diff != "" {
		t.Error("pages of tools:", diff)
	}
	w.call(s, "structured", payment{})
	if verdict, content := w.call(s, "structured", payment{}); verdict != "already_done" || !strings.Contains(content, `"result":{"orders":4}`) {
		t.Errorf("%s %s", verdict, content)
	}
	w.call(s, "grow", payment{})
	<-changed
	if verdict, _ := w.call(s, "grown999", payment{Order: "1"}); verdict != "executed" {
		t.Errorf("a new tool: %s", verdict)
	}
}

func TestConcurrentEqualCallsPayOnce(t *testing.T) {
	w := newWorld(t)
	s, _ := w.connect()
	other, _ := w.connect()
	var mu sync.Mutex
	verdicts := map[string]int{}
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			who := s
			if i%2 == 0 {
				who = other
			}
			verdict, _ := w.call(who, "pay", payment{Order: "1"})
			mu.Lock()
			defer mu.Unlock()
			verdicts[verdict]++
		})
	}
	wg.Wait()
	if diff := cmp.Diff(map[string]int{"executed": 1, "already_done": 15}, verdicts); diff != "" {
		t.Error(diff)
	}
	w.want("pay_1")
}

func TestCancelEndsTheWaitAndNotTheCall(t *testing.T) {
	w := newWorld(t)
	if err := syscall.Mkfifo(os.Getenv(fifoVar), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	w.options = &mcp.ClientOptions{ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) { cancel() }}
	s, _ := w.connect()
	params := &mcp.CallToolParams{Name: "pay", Arguments: payment{Order: "1", Then: "wait"}}
	params.SetProgressToken("p")
	if _, err := s.CallTool(ctx, params); err == nil || ctx.Err() == nil {
		t.Fatalf("it was not cancelled: %v", err)
	}
	if err := os.WriteFile(os.Getenv(fifoVar), []byte("go"), 0o600); err != nil {
		t.Fatal(err)
	}
	if verdict, content := w.call(s, "pay", payment{Order: "1", Then: "wait"}); verdict != "already_done" || !strings.Contains(content, "paid 1") {
		t.Errorf("%s %s", verdict, content)
	}
	w.want("pay_1")
}

func TestSIGTERMLetsCallsEnd(t *testing.T) {
	w := newWorld(t)
	if err := syscall.Mkfifo(os.Getenv(fifoVar), 0o600); err != nil {
		t.Fatal(err)
	}
	started := make(chan bool, 1)
	w.options = &mcp.ClientOptions{ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) { started <- true }}
	s, cmd := w.connect()
	params := &mcp.CallToolParams{Name: "pay", Arguments: payment{Order: "1", Then: "wait"}}
	params.SetProgressToken("p")
	got := make(chan string, 1)
	go func() {
		res, err := s.CallTool(t.Context(), params)
		if err != nil {
			got <- err.Error()
			return
		}
		verdict, _ := verdictOf(res)
		got <- verdict
	}()
	<-started
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(os.Getenv(fifoVar), []byte("go"), 0o600); err != nil {
		t.Fatal(err)
	}
	if verdict := <-got; verdict != "executed" {
		t.Errorf("%s: %s", verdict, &w.log)
	}
	if err := s.Wait(); err != nil {
		t.Errorf("the gateway's end: %v: %s", err, &w.log)
	}
	w.want("pay_1")
}

// over connects a client of one version of the protocol.
func (w *world) over(client *mcp.Client, version string) *mcp.ClientSession {
	w.t.Helper()
	cmd := gatewayCommand(w)
	s, err := client.Connect(w.t.Context(), &mcp.CommandTransport{Command: cmd}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		w.t.Fatalf("connecting: %v: %s", err, &w.log)
	}
	w.t.Cleanup(func() { _ = s.Close() })
	if got := s.InitializeResult().ProtocolVersion; got != version {
		w.t.Fatalf("the protocol is %s", got)
	}
	return s
}
