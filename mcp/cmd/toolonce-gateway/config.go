package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"time"

	"github.com/toolonce/toolonce/mcp/internal/carry"
	"github.com/toolonce/toolonce/registry"
)

// toolConfig is tools.json: settings by the server's name of a tool, "*" for all others.
type toolConfig map[string]toolSettings

// toolSettings are what a tool does. The zero value is a tool that must not repeat, identified by its arguments.
type toolSettings struct {
	Effect             registry.Effect `json:"effect"`
	Key                []string        `json:"key"`
	Ignore             []string        `json:"ignore"`
	Timeout            duration        `json:"timeout"`
	Keep               duration        `json:"keep"`
	ShareResult        bool            `json:"shareResult"`
	ErrorsHaveNoEffect bool            `json:"errorsHaveNoEffect"`
}

type duration time.Duration

// UnmarshalText reads a duration such as 90s.
func (d *duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	*d = duration(v)
	return err
}

// readTools reads and checks a file, none where the path is "".
func readTools(path string) (toolConfig, error) {
	if path == "" {
		return nil, nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, usagef("reading -tools: %w", err)
	}
	var c toolConfig
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	err = dec.Decode(&c)
	if err == nil {
		if _, more := dec.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("there is something behind the object")
		}
	}
	if err != nil {
		return nil, usagef("reading %s: %w", path, err)
	}
	none := func(context.Context, json.RawMessage) (any, error) { return "", nil }
	for name, s := range c {
		if err := registry.New().AddRaw(s.tool(name, none)); err != nil {
			return nil, usagef("reading %s: tool %q: %w", path, name, err)
		}
	}
	return c, nil
}

// of is what is said of a tool.
func (c toolConfig) of(name string) toolSettings {
	if s, ok := c[name]; ok {
		return s
	}
	return c["*"]
}

// effect is what a tool does as it was said, 0 where nothing was. What is set only for what must not repeat says it too.
func (s toolSettings) effect() registry.Effect {
	if s.Effect == 0 && (len(s.Key) > 0 || s.Keep != 0) {
		return registry.NonIdempotentWrite
	}
	return s.Effect
}

// tool is the tool as a registry knows it. The server knows its schema and checks the arguments.
func (s toolSettings) tool(name string, run func(context.Context, json.RawMessage) (any, error)) registry.RawTool {
	e := s.effect()
	if e == 0 {
		e = registry.NonIdempotentWrite
	}
	return registry.RawTool{
		Name: carry.Name("", name), Effect: e, Key: s.Key, Ignore: s.Ignore,
		Timeout: time.Duration(s.Timeout), Keep: time.Duration(s.Keep), ShareResult: s.ShareResult, Run: run,
	}
}
