package agent_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	"github.com/toolonce/toolonce/agent"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

const aimockVersion = "1.43.0"

// Two identical calls in one turn, in other bytes, and a repeat a turn later.
const aimockFixtures = `{"fixtures":[
{"match":{"toolCallId":"call_c"},"response":{"content":"Refunded once."}},
{"match":{"toolCallId":"call_b"},"response":{"toolCalls":[
 {"id":"call_c","name":"issue_refund","arguments":"{\"order_id\":\"1001\",\"cents\":500}"}]}},
{"match":{"userMessage":"refund order 1001","turnIndex":0},"response":{"toolCalls":[
 {"id":"call_a","name":"issue_refund","arguments":"{\"order_id\":\"1001\",\"cents\":500}"},
 {"id":"call_b","name":"issue_refund","arguments":"{\"cents\":5e2, \"order_id\":\"\\u0031001\"}"}]}}]}`

// lacking skips the test, or fails it where nothing may be skipped.
func lacking(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("TOOLONCE_NO_SKIP") != "" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// aimock starts a model server that is not ours and gives its address.
func aimock(t *testing.T) string {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		lacking(t, "node is missing: this test drives the npm package @copilotkit/aimock")
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		lacking(t, "no cache directory for npm packages: %v", err)
	}
	dir := filepath.Join(cache, "toolonce-test", "aimock-"+aimockVersion)
	cli := filepath.Join(dir, "node_modules", "@copilotkit", "aimock", "dist", "cli.js")
	if _, err := os.Stat(cli); err != nil {
		out, err := exec.CommandContext(t.Context(), "npm", "install", "--prefix", dir, "--ignore-scripts", "--no-audit", "--no-fund", "@copilotkit/aimock@"+aimockVersion).CombinedOutput()
		if err != nil {
			lacking(t, "npm cannot install @copilotkit/aimock: %v\n%s", err, out)
		}
	}
	fixtures := filepath.Join(t.TempDir(), "fixtures.json")
	if err := os.WriteFile(fixtures, []byte(aimockFixtures), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), node, cli, "--port", "0", "--fixtures", fixtures, "--strict", "--validate-on-load")
	cmd.Env = append(os.Environ(), "AIMOCK_STRICT_TURN_INDEX=1") // or an earlier turn's answer is served for ever
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	said := ""
	for lines := bufio.NewScanner(out); lines.Scan(); {
		said += lines.Text() + "\n"
		if _, url, ok := strings.Cut(lines.Text(), "listening on "); ok {
			go func() {
				for lines.Scan() { // or the server blocks once the pipe is full
				}
			}()
			return strings.TrimSpace(url)
		}
	}
	t.Fatalf("aimock did not start:\n%s", said)
	return ""
}

type aimockRefund struct {
	OrderID string `json:"order_id" once:"key"`
	Cents   int64  `json:"cents"`
}

// aimockRun gives the client, the handler and the number of refunds so far.
func aimockRun(url string) (openai.Client, *registry.Registry, registry.Handler, func() int) {
	refunds := 0
	r := registry.New()
	registry.Add(r, registry.Tool[aimockRefund, string]{
		Name: "issue_refund", Description: "Refund an order.", Effect: registry.NonIdempotentWrite,
		Run: func(context.Context, aimockRefund) (string, error) {
			refunds++
			return fmt.Sprintf("refund %d", refunds), nil
		},
	})
	client := openai.NewClient(option.WithBaseURL(url+"/v1"), option.WithAPIKey("x"), agent.SerialToolCalls())
	return client, r, r.Handler(middleware.Once(middleware.Memory(), nil)), func() int { return refunds }
}

func TestAGuardedRefundHappensOnceAgainstAServerThatIsNotOurs(t *testing.T) {
	url := aimock(t)
	t.Run("chat", func(t *testing.T) {
		client, r, handle, refunds := aimockRun(url)
		params := openai.ChatCompletionNewParams{
			Model: "gpt-4.1-nano", Tools: agent.ChatTools(r),
			Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("refund order 1001")},
		}
		for turn := 1; ; turn++ {
			if n := agent.ChatTurn(params.Messages); n != turn {
				t.Fatalf("turn %d is counted as %d", turn, n)
			}
			c, err := client.Chat.Completions.New(t.Context(), params)
			if err != nil {
				t.Fatal(err)
			}
			next, err := agent.AnswerChat(t.Context(), handle, agent.Run{ID: "r"}, turn, c, params.Messages...)
			if err != nil {
				t.Fatal(err)
			}
			if len(next) == 0 {
				wantEnd(t, turn, c.Choices[0].Message.Content, refunds())
				return
			}
			params.Messages = append(params.Messages, next...)
		}
	})
	t.Run("responses", func(t *testing.T) {
		client, r, handle, refunds := aimockRun(url)
		params := responses.ResponseNewParams{Model: "gpt-4.1-nano", Tools: agent.ResponseTools(r)}
		params.Input.OfInputItemList = responses.ResponseInputParam{responses.ResponseInputItemParamOfMessage("refund order 1001", "user")}
		for turn := 1; ; turn++ {
			c, err := client.Responses.New(t.Context(), params)
			if err != nil {
				t.Fatal(err)
			}
			next, err := agent.AnswerResponse(t.Context(), handle, agent.Run{ID: "r"}, turn, c, params.Input.OfInputItemList...)
			if err != nil {
				t.Fatal(err)
			}
			if len(next) == 0 {
				wantEnd(t, turn, c.OutputText(), refunds())
				return
			}
			params.Input.OfInputItemList = append(params.Input.OfInputItemList, next...)
		}
	})
}

func wantEnd(t *testing.T, turn int, text string, refunds int) {
	t.Helper()
	if turn != 3 || text != "Refunded once." || refunds != 1 {
		t.Errorf("after turn %d the model says %q and %d refunds were made; want turn 3, \"Refunded once.\" and 1", turn, text, refunds)
	}
}
