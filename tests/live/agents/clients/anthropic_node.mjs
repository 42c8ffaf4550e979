// Anthropic's SDK for Node by Messages.
import Anthropic from "@anthropic-ai/sdk";
import { commandTool, prompt, report } from "./report.mjs";

const client = new Anthropic({ maxRetries: 0 });

async function messages(scenario) {
  const turns = [{ role: "user", content: prompt }];
  const settings = { model: "acme/agent", max_tokens: 100, messages: turns };
  if (scenario === "stream") return client.messages.stream(settings).finalText();
  const { parameters, ...named } = commandTool;
  if (scenario === "tool") settings.tools = [{ ...named, input_schema: parameters }];
  const first = await client.messages.create(settings);
  const block = first.content.at(-1);
  if (scenario !== "tool") return block.text;
  const result = { type: "tool_result", tool_use_id: block.id, content: "done" };
  turns.push({ role: "assistant", content: first.content }, { role: "user", content: [result] });
  return (await client.messages.create(settings)).content.at(-1).text;
}

await report({ messages });
