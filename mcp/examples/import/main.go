// Import shows a loop of ours with the tools of an MCP server: the model asks twice for the same refund, under two ids, and
// the server is called once. Model and server are in this process; a real server is one line, mcp.CommandTransport.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/toolonce/toolonce/agent"
	"github.com/toolonce/toolonce/agent/journal"
	mcptools "github.com/toolonce/toolonce/mcp"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/transcript"
)

func main() {
	ctx := context.Background()
	session, err := connect(ctx)
	if err != nil {
		log.Fatal(err)
	}
	tools := registry.New()
	err = mcptools.Import(ctx, tools, session, &mcptools.ImportOptions{
		Tool: func(t *mcp.Tool, raw *registry.RawTool) bool {
			raw.Key = []string{"order_id"} // at most one refund an order
			return true
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	store := struct { // sqlitestore.Open in production
		*middleware.MemoryLedger
		*journal.MemoryJournal
	}{middleware.Memory(), journal.Memory()}
	client := openai.NewClient(option.WithAPIKey("any"), option.WithHTTPClient(model().Client()))
	reply, err := agent.New(client, tools, store, nil).Chat(ctx, agent.Run{ID: "ticket-42"}, openai.ChatCompletionNewParams{
		Model: "scripted", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Refund 5.00 of order 1001.")},
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, c := range reply.Report.Calls {
		fmt.Println(c.CallID, c.Tool, c.Verdict)
	}
	fmt.Println(reply.Choices[0].Message.Content)
}

// connect is a session with a shop's server.
func connect(ctx context.Context) (*mcp.ClientSession, error) {
	type refund struct {
		OrderID string `json:"order_id"`
		Cents   int    `json:"cents"`
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "shop", Version: "v1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "issue_refund", Description: "Refund an order to its card."},
		func(_ context.Context, _ *mcp.CallToolRequest, in refund) (*mcp.CallToolResult, any, error) {
			fmt.Println("the server moves money:", in.OrderID, in.Cents)
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "refunded"}}}, nil, nil
		})
	here, there := mcp.NewInMemoryTransports()
	if _, err := server.Connect(ctx, here, nil); err != nil {
		return nil, err
	}
	return mcp.NewClient(&mcp.Implementation{Name: "desk", Version: "v1"}, nil).Connect(ctx, there, nil)
}

func model() *transcript.Server {
	call := func(id string) transcript.ToolCall {
		return transcript.ToolCall{ID: id, Name: "issue_refund", Arguments: `{"order_id":"1001","cents":500}`}
	}
	return transcript.NewServer(transcript.Steps(
		transcript.Step{Calls: []transcript.ToolCall{call("call_1"), call("call_2")}},
		transcript.Step{Text: "5.00 of order 1001 are on their way."},
	), nil)
}
