// OpenAI's Agents SDK for Node by chat completions and by Responses.
import {
  Agent,
  OpenAIChatCompletionsModel,
  OpenAIResponsesModel,
  run,
  setTracingDisabled,
  tool,
} from "@openai/agents";
import OpenAI from "openai";
import { z } from "zod";
import { prompt, report } from "./report.mjs";

setTracingDisabled(true);
const client = new OpenAI({ maxRetries: 0 });
const execCommand = tool({
  name: "exec_command",
  description: "Run a command.",
  parameters: z.object({ cmd: z.string() }),
  execute: async () => "done",
});

const by = (Model) => async (scenario) => {
  const agent = new Agent({
    name: "agent",
    instructions: "Be brief.",
    model: new Model(client, "acme/agent"),
    tools: scenario === "tool" ? [execCommand] : [],
  });
  if (scenario !== "stream") return (await run(agent, prompt)).finalOutput;
  const running = await run(agent, prompt, { stream: true });
  await running.completed;
  return running.finalOutput;
};

await report({
  chat: by(OpenAIChatCompletionsModel),
  responses: by(OpenAIResponsesModel),
});
