// A tool loop and two more turns by the AI SDK's default provider, as its documentation shows them.
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const openai = createOpenAI({ baseURL: process.env.BASE_URL, apiKey: process.env.KEY });
const settings = {
  model: openai("acme/agent"),
  maxRetries: 0,
  stopWhen: stepCountIs(5),
  tools: {
    exec_command: tool({
      description: "Run a command.",
      inputSchema: z.object({ cmd: z.string() }),
      execute: async () => "done",
    }),
  },
  ...(process.env.STORE === "false" ? { providerOptions: { openai: { store: false } } } : {}),
};
const messages = [{ role: "user", content: "Write one.txt." }];
const said = [];
let error = null;
try {
  const first = await generateText({ ...settings, messages });
  said.push(first.text);
  // Before version 7, `response.messages` had the messages of every step.
  const told = first.responseMessages ?? first.response.messages;
  messages.push(...told, { role: "user", content: "And now?" });
  const second = streamText({
    ...settings,
    messages,
    onError: (event) => (error = event.error.message),
  });
  let text = "";
  for await (const delta of second.textStream) text += delta;
  if (error === null) {
    said.push(text);
    const answered = (await second.responseMessages) ?? (await second.response).messages;
    messages.push(...answered, { role: "user", content: "And then?" });
    said.push((await generateText({ ...settings, messages })).text);
  }
} catch (failure) {
  error = failure.message;
}
console.log(JSON.stringify({ said, error }));
