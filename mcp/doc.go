// Package mcptools joins the guard of toolonce and the Model Context Protocol, both ways. It is called so because a
// program that uses it imports the SDK's package mcp as well.
//
// [Import] makes the tools of an MCP server tools of a registry, for a loop that guards them:
//
//	tools := registry.New()
//	err := mcptools.Import(ctx, tools, session, nil)
//	handle := tools.Handler(middleware.Once(store, nil))
//
// [Export] gives the tools of a registry to the clients of an MCP server, guarded by the handler:
//
//	server := mcp.NewServer(&mcp.Implementation{Name: "shop", Version: "v1"}, nil)
//	mcptools.Export(server, tools, tools.Handler(middleware.Once(store, nil)), nil)
//
// The command toolonce-gateway stands in front of a server that you cannot change.
package mcptools
