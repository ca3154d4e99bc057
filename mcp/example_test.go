package mcptools_test

import (
	"context"
	"fmt"
	"log"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptools "github.com/toolonce/toolonce/mcp"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

// A client that calls twice pays once.
func ExampleExport() {
	type refund struct {
		OrderID string `json:"order_id" once:"key"`
		Cents   int64  `json:"cents"`
	}
	tools := registry.New()
	registry.Add(tools, registry.Tool[refund, string]{
		Name: "issue_refund", Description: "Refund an order to its card.", Effect: registry.NonIdempotentWrite,
		Run: func(_ context.Context, in refund) (string, error) {
			fmt.Println("money moved:", in.OrderID, in.Cents)
			return "refunded", nil
		},
	})
	server := mcp.NewServer(&mcp.Implementation{Name: "shop", Version: "v1"}, nil)
	mcptools.Export(server, tools, tools.Handler(middleware.Once(middleware.Memory(), nil)), nil)

	ctx := context.Background()
	here, there := mcp.NewInMemoryTransports()
	if _, err := server.Connect(ctx, here, nil); err != nil {
		log.Fatal(err)
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "desk", Version: "v1"}, nil).Connect(ctx, there, nil)
	if err != nil {
		log.Fatal(err)
	}
	for range 2 {
		res, err := session.CallTool(ctx, &mcp.CallToolParams{
			Name: "issue_refund", Arguments: map[string]any{"order_id": "1001", "cents": 500},
			Meta: mcp.Meta{mcptools.MetaRun: "ticket-42"},
		})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(res.Meta[mcptools.MetaVerdict])
	}
	// Output:
	// money moved: 1001 500
	// executed
	// already_done
}
