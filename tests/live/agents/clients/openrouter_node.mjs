// OpenRouter's SDK for TypeScript by chat completions and by Responses.
import { OpenRouter } from "@openrouter/sdk";
import { commandTool, prompt, report } from "./report.mjs";

const client = new OpenRouter({
  apiKey: process.env.KEY,
  serverURL: process.env.BASE_URL,
  retryConfig: { strategy: "none" },
});
const model = "acme/agent";

async function chat(scenario) {
  const messages = [{ role: "user", content: prompt }];
  const send = (chatRequest) => client.chat.send({ chatRequest: { model, ...chatRequest } });
  if (scenario === "stream") {
    let text = "";
    for await (const chunk of await send({ messages, stream: true }))
      text += chunk.choices[0]?.delta.content ?? "";
    return text;
  }
  const tools = scenario === "tool" ? [{ type: "function", function: commandTool }] : undefined;
  const { message } = (await send({ messages, tools })).choices[0];
  if (!tools) return message.content;
  messages.push(message, { role: "tool", toolCallId: message.toolCalls[0].id, content: "done" });
  return (await send({ messages, tools })).choices[0].message.content;
}

async function responses(scenario) {
  const send = (more) => client.responses.send({ responsesRequest: { model, ...more } });
  if (scenario === "stream") {
    let text = "";
    for await (const event of await send({ input: prompt, stream: true }))
      if (event.type === "response.output_text.delta") text += event.delta;
    return text;
  }
  const tools = scenario === "tool" ? [{ type: "function", strict: null, ...commandTool }] : undefined;
  const first = await send({ input: prompt, tools });
  if (!tools) return first.output.at(-1).content[0].text;
  const call = first.output.find((item) => item.type === "function_call");
  const result = { type: "function_call_output", callId: call.callId, output: "done" };
  const input = [{ role: "user", content: prompt }, call, result];
  return (await send({ input, tools })).output.at(-1).content[0].text;
}

await report({ chat, responses });
