// OpenAI's SDK for Node by chat completions and by Responses.
import OpenAI from "openai";
import { commandTool, prompt, report } from "./report.mjs";

const client = new OpenAI({ maxRetries: 0 });
const model = "acme/agent";

async function chat(scenario) {
  const messages = [{ role: "user", content: prompt }];
  if (scenario === "stream") {
    const stream = client.chat.completions.stream({ model, messages });
    return stream.finalContent();
  }
  const tools = scenario === "tool" ? [{ type: "function", function: commandTool }] : undefined;
  const first = await client.chat.completions.create({ model, messages, tools });
  const { message } = first.choices[0];
  if (!tools) return message.content;
  messages.push(message, {
    role: "tool",
    tool_call_id: message.tool_calls[0].id,
    content: "done",
  });
  const last = await client.chat.completions.create({ model, messages, tools });
  return last.choices[0].message.content;
}

async function responses(scenario) {
  if (scenario === "stream") {
    const last = await client.responses.stream({ model, input: prompt }).finalResponse();
    return last.output_text;
  }
  const tools = scenario === "tool" ? [{ type: "function", ...commandTool }] : undefined;
  const input = [{ role: "user", content: prompt }];
  const first = await client.responses.create({ model, input, tools });
  if (!tools) return first.output_text;
  const call = first.output.find((item) => item.type === "function_call");
  input.push(...first.output, {
    type: "function_call_output",
    call_id: call.call_id,
    output: "done",
  });
  return (await client.responses.create({ model, input, tools })).output_text;
}

await report({ chat, responses });
