package otel

// scope is the name under which spans and metrics are made.
const scope = "github.com/toolonce/toolonce/middleware/otel"

// Attributes of the GenAI semantic conventions v0.1.0, and of the general ones. No Go package has them all.
const (
	operationName      = "gen_ai.operation.name"
	providerName       = "gen_ai.provider.name"
	agentName          = "gen_ai.agent.name"
	conversationID     = "gen_ai.conversation.id"
	toolName           = "gen_ai.tool.name"
	toolType           = "gen_ai.tool.type"
	toolCallID         = "gen_ai.tool.call.id"
	toolArguments      = "gen_ai.tool.call.arguments" // content
	toolResult         = "gen_ai.tool.call.result"    // content
	requestModel       = "gen_ai.request.model"
	responseModel      = "gen_ai.response.model"
	responseID         = "gen_ai.response.id"
	finishReasons      = "gen_ai.response.finish_reasons"
	inputTokens        = "gen_ai.usage.input_tokens"
	outputTokens       = "gen_ai.usage.output_tokens"
	cachedTokens       = "gen_ai.usage.cache_read.input_tokens"
	reasoningTokens    = "gen_ai.usage.reasoning.output_tokens"
	tokenType          = "gen_ai.token.type"
	systemInstructions = "gen_ai.system_instructions" // content
	inputMessages      = "gen_ai.input.messages"      // content
	outputMessages     = "gen_ai.output.messages"     // content
	apiType            = "openai.api.type"
	responseTier       = "openai.response.service_tier"
	fingerprint        = "openai.response.system_fingerprint"
	errorTypeName      = "error.type"
	serverAddress      = "server.address"
	serverPort         = "server.port"
	statusCode         = "http.response.status_code"
	resendCount        = "http.request.resend_count"
)

// Attributes of our own.
const (
	verdictName   = "toolonce.verdict"
	operationID   = "toolonce.operation"
	effectName    = "toolonce.effect"
	runID         = "toolonce.run"
	turnNumber    = "toolonce.turn"
	positionIndex = "toolonce.position"
	repeatCount   = "toolonce.repeats"
	pausedFlag    = "toolonce.paused"
	parallelCalls = "toolonce.parallel_tool_calls"
)

// other stands for a name that is not known beforehand.
const other = "_OTHER"

// Bounds of histograms in seconds: those that the conventions advise for what a model does, and finer ones for stores.
var (
	modelSeconds = []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
	storeSeconds = []float64{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}
	tokenCounts  = []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}
)
