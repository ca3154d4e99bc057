// Package agent has what a loop on openai-go needs around a guarded registry.
//
// A loop of one's own keeps its client, its parameters and its control flow. [ChatTools] and [ResponseTools] offer the
// registry's tools to the model, [AnswerChat] and [AnswerResponse] answer all tool calls of one model answer in order
// and give back what to append to the history, and [SerialToolCalls] keeps parallel_tool_calls right for the model that
// is asked:
//
//	handle := tools.Handler(middleware.Once(ledger, nil))
//	client := openai.NewClient(agent.SerialToolCalls(nil))
//	params.Tools = agent.ChatTools(tools)
//	for {
//		turn := agent.ChatTurn(params.Messages)
//		c, err := client.Chat.Completions.New(ctx, params)
//		if err != nil {
//			return err
//		}
//		next, err := agent.AnswerChat(ctx, handle, run, turn, c, params.Messages...)
//		if err != nil {
//			return err
//		}
//		if len(next) == 0 {
//			return show(c.Choices[0].Message.Content)
//		}
//		params.Messages = append(params.Messages, next...)
//	}
package agent
