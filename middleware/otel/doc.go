// Package otel tells OpenTelemetry what a loop, its guard and its model do. Nothing else in this module depends on
// OpenTelemetry, and the providers are the program's.
//
//	o := &otel.Options{} // the global providers; no content
//	client := openai.NewClient(option.WithMiddleware(otel.Chat(o)))
//	loop := agent.New(client, tools, store, &agent.Options{
//		Trace:      otel.Run(o),
//		Middleware: []registry.Middleware{otel.Tools(o)},
//		Once:       &middleware.OnceOptions{Timed: otel.Timed(o)},
//	})
//	stop, err := otel.Watch(store, o) // stop before store.Close
//
// A run is then a span invoke_agent, with a span "chat MODEL" for each request of the model (each try of the SDK) and a
// span "execute_tool NAME" for each call within. A loop of one's own has all of it too:
//
//	ctx, end := otel.Run(o)(ctx, run, 0)
//	…
//	end(err)
//
// Names are those of the GenAI semantic conventions v0.1.0 (of the repository semantic-conventions-genai, status
// Development; the last general release with them is v1.41.0), and toolonce.… for what these do not know. Texts of
// errors, keys, and the names that a model makes up for tools never appear; arguments, results and messages do so only
// with [Options.Content]. docs/operating.md has the table of metrics, and what to alert on.
//
// All functions take nil Options, and what they return is safe for concurrent use.
package otel
