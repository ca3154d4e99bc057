// Package agent is the loop on openai-go round a guarded registry, and what a loop of one's own needs.
//
// A [Loop] takes the SDK's params and options and gives the SDK's own answer. It stores each answer of the model before
// it runs its calls, so that the same run again, in this process or another, goes on where it was:
//
//	loop := agent.New(client, tools, store, nil)
//	reply, err := loop.Chat(ctx, agent.Run{ID: "msg-881", Conversation: "chat-7"}, params)
//	fmt.Println(reply.Choices[0].Message.Content)
//
// A loop of one's own keeps its client, its parameters and its control flow. [ChatTools] and [ResponseTools] offer the
// registry's tools to the model, [AnswerChat] and [AnswerResponse] answer all tool calls of one model answer in order
// and give back what to append to the history, and [SerialToolCalls] keeps parallel_tool_calls right for the model that
// is asked:
//
//	handle := tools.Handler(middleware.Once(ledger, nil))
//	client := openai.NewClient(agent.SerialToolCalls())
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
