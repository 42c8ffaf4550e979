// Reads one stream with an official SDK's accumulator and prints a JSON line for each word as it comes,
// then one with what was accumulated. Usage: node lock_step.mjs FORMAT BASE_URL MODEL, the key in $KEY.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [format, baseURL, model] = process.argv.slice(2);
const options = { baseURL, apiKey: process.env.KEY, maxRetries: 0 };
const messages = [{ role: "user", content: "Say it" }];

// The packages are installed apart from this file.
const require = createRequire(`${process.env.PACKAGES}/`);
const load = async (name) => (await import(pathToFileURL(require.resolve(name)))).default;
const openai = async () => new (await load("openai"))(options);
const anthropic = async () => new (await load("@anthropic-ai/sdk"))(options);
const print = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

const readers = {
  async chat_completions() {
    const stream = (await openai()).chat.completions.stream({ model, messages });
    for await (const chunk of stream) print({ word: chunk.choices[0]?.delta?.content });
    const { choices, usage } = await stream.finalChatCompletion();
    return { text: choices[0].message.content, end: choices[0].finish_reason, out: usage.completion_tokens };
  },
  async completions() {
    const stream = await (await openai()).completions.create({ model, prompt: "Say it", stream: true });
    const final = { text: "" };
    for await (const { choices, usage } of stream) {
      print({ word: choices[0]?.text });
      final.text += choices[0]?.text ?? "";
      final.end = choices[0]?.finish_reason ?? final.end;
      final.out = usage?.completion_tokens;
    }
    return final;
  },
  async responses() {
    const stream = (await openai()).responses.stream({ model, input: "Say it" });
    for await (const event of stream) {
      if (event.type === "response.output_text.delta") print({ word: event.delta });
    }
    const final = await stream.finalResponse();
    return { text: final.output_text, end: final.status, out: final.usage.output_tokens };
  },
  async messages() {
    const stream = (await anthropic()).messages.stream({ model, messages, max_tokens: 64 });
    for await (const event of stream) {
      if (event.type === "content_block_delta") print({ word: event.delta.text });
    }
    const final = await stream.finalMessage();
    return { text: final.content[0].text, end: final.stop_reason, out: final.usage.output_tokens };
  },
};

print({ final: await readers[format]() });
