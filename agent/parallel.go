package agent

import "strings"

// ParallelAction is what happens to parallel_tool_calls in a request. The zero value is ForceSerial.
type ParallelAction uint8

const (
	// ForceSerial sends false, whatever the caller asked for.
	ForceSerial ParallelAction = iota
	// OmitParallel leaves the field out, for models that refuse it.
	OmitParallel
	// KeepParallel sends what the caller asked for.
	KeepParallel
)

// ParallelRule says what happens to parallel_tool_calls in requests to a model.
type ParallelRule struct {
	// Model is a name, or the beginning of one with * behind it; "*" is every model. Case does not matter. It is
	// compared with the model as requested (on Azure that is the deployment) and with the one that answered such a
	// request last; with the part of each behind a gateway's last slash (openai/gpt-4.1-nano), and for ft:BASE:… with
	// BASE.
	Model  string
	Action ParallelAction
}

// parallelEntry is a line of the table: what is known of models in general.
type parallelEntry struct {
	model    string // as in ParallelRule
	effort   string // only at this reasoning effort
	strict   bool   // only with a strict tool
	azure    bool   // only at an Azure address
	action   ParallelAction
	basis    string
	asOf     string // when the basis was last read
	shutdown string // announced end at OpenAI; Azure and gateways keep models longer
}

// parallelTable holds what leaves the field out before what forces it. The first entry that applies decides.
var parallelTable = []parallelEntry{
	{model: "o1*", action: OmitParallel, basis: refuses, asOf: "2026-11", shutdown: "2026-10-23"},
	{model: "o3", action: OmitParallel, basis: refuses, asOf: "2026-11", shutdown: "2026-12-11"},
	{model: "o3-2025-*", action: OmitParallel, basis: refuses, asOf: "2026-11", shutdown: "2026-12-11"},
	{model: "o3-mini*", action: OmitParallel, basis: refuses, asOf: "2026-11", shutdown: "2026-10-23"},
	{model: "o4-mini*", action: OmitParallel, basis: refuses, asOf: "2026-11", shutdown: "2026-10-23"},
	{model: "o3-pro*", action: OmitParallel, basis: vendorTable, asOf: "2026-11", shutdown: "2026-12-11"},
	{model: "codex-mini*", action: OmitParallel, basis: vendorTable, asOf: "2026-11"},
	{model: "gpt-5-pro*", action: OmitParallel, basis: vendorTable, asOf: "2026-11", shutdown: "2026-12-11"},
	{model: "gpt-5.4-pro*", action: OmitParallel, basis: vendorTable, asOf: "2026-11"},
	{model: "gpt-5", effort: "minimal", action: OmitParallel, basis: vendorTable, asOf: "2026-11"},
	{model: "gpt-5-2025-08-07", effort: "minimal", action: OmitParallel, basis: vendorTable, asOf: "2026-11", shutdown: "2026-12-11"},
	{model: "gpt-5-mini", effort: "minimal", action: OmitParallel, basis: vendorTable, asOf: "2026-11"},
	{model: "gpt-5-mini-2025-08-07", effort: "minimal", action: OmitParallel, basis: vendorTable, asOf: "2026-11", shutdown: "2026-12-11"},
	{model: "gpt-5-nano", effort: "minimal", action: OmitParallel, basis: vendorTable, asOf: "2026-11"},
	{model: "gpt-5-nano-2025-08-07", effort: "minimal", action: OmitParallel, basis: vendorTable, asOf: "2026-11", shutdown: "2026-12-11"},

	{model: "gpt-4.1-nano", action: ForceSerial, basis: repeats, asOf: "2026-07-15", shutdown: "2026-10-23"},
	{model: "gpt-4.1-nano-2025-04-14", action: ForceSerial, basis: repeats, asOf: "2026-07-15", shutdown: "2026-10-23"},
	{model: "ft:*", strict: true, action: ForceSerial, basis: "OpenAI's function calling guide: several calls in one turn of a fine-tuned model are not strict", asOf: "2026-07-15"},
	{model: "*", strict: true, azure: true, action: ForceSerial, basis: "Azure's structured outputs page: not supported with parallel function calls", asOf: "2026-11"},
}

const (
	refuses     = "answers 400 unsupported_parameter, to false too"
	vendorTable = "Azure's table of reasoning models: parallel tool calls not supported"
	repeats     = "OpenAI's function calling guide: may call the same tool several times in one turn"
)

// azureHosts are the ends of Azure's host names.
var azureHosts = []string{
	".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com",
	".openai.azure.us", ".cognitiveservices.azure.us",
}

// parallelAsk is what the decision about parallel_tool_calls depends on.
type parallelAsk struct {
	model    string
	effort   string
	calls    bool // the request has tools whose calls the caller answers
	strict   bool // one of them is strict
	template bool // tools and model may be in a prompt that the server keeps
	azure    bool
	learned  learned
}

// decide asks the caller's rules first, then the table. Neither helps a field that the server has refused.
func decide(rules []ParallelRule, a parallelAsk) ParallelAction {
	if a.learned.refuses {
		return OmitParallel
	}
	names := modelNames(a.model)
	if a.learned.model != "" {
		names = append(names, modelNames(a.learned.model)...)
	}
	action, found := KeepParallel, false
	for _, r := range rules {
		if matches(r.Model, names) {
			action, found = r.Action, true
			break
		}
	}
	switch {
	case found && (a.calls || a.template || action == KeepParallel):
		return action
	case !a.calls && a.template:
		return KeepParallel
	case !a.calls:
		return OmitParallel
	}
	for _, e := range parallelTable {
		if (e.effort == "" || e.effort == a.effort) && (!e.strict || a.strict) && (!e.azure || a.azure) && matches(e.model, names) {
			return e.action
		}
	}
	return KeepParallel
}

// modelNames are the names that a pattern is compared with.
func modelNames(model string) []string {
	model = strings.ToLower(model)
	names := []string{model}
	if i := strings.LastIndexByte(model, '/'); i >= 0 {
		model = model[i+1:]
		names = append(names, model)
	}
	if tuned, ok := strings.CutPrefix(model, "ft:"); ok {
		base, _, _ := strings.Cut(tuned, ":")
		names = append(names, base)
	}
	return names
}

func matches(pattern string, names []string) bool {
	pattern = strings.ToLower(pattern)
	prefix, open := strings.CutSuffix(pattern, "*")
	for _, n := range names {
		if n == pattern || open && strings.HasPrefix(n, prefix) {
			return true
		}
	}
	return false
}
