// The AI SDK by chat completions, by Responses and by Messages.
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";
import { prompt, report } from "./report.mjs";

const settings = { baseURL: process.env.BASE_URL, apiKey: process.env.KEY };
const openai = createOpenAI(settings);
const tools = {
  exec_command: tool({
    description: "Run a command.",
    inputSchema: z.object({ cmd: z.string() }),
    execute: async () => "done",
  }),
};

const by = (model) => async (scenario) => {
  const asked = { model, prompt, maxRetries: 0 };
  if (scenario === "tool") Object.assign(asked, { tools, stopWhen: stepCountIs(5) });
  if (scenario !== "stream") return (await generateText(asked)).text;
  let text = "";
  for await (const delta of streamText(asked).textStream) text += delta;
  return text;
};

await report({
  chat: by(createOpenAICompatible({ name: "tollgate", ...settings })("acme/agent")),
  responses: by(openai.responses("acme/agent")),
  messages: by(createAnthropic(settings)("acme/agent")),
});
