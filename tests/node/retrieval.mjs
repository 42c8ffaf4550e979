// Embeds, ranks, answers and judges with OpenAI's SDK, and prints what came of it as one JSON line.
// Usage: node retrieval.mjs BASE_URL, the key in $KEY, documents and a question as JSON on stdin.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const { documents, question } = JSON.parse(readFileSync(0, "utf8"));
// The packages are installed apart from this file.
const require = createRequire(`${process.env.PACKAGES}/`);
const OpenAI = (await import(pathToFileURL(require.resolve("openai")))).default;
const client = new OpenAI({ baseURL: process.argv[2], apiKey: process.env.KEY, maxRetries: 0 });

const { data } = await client.embeddings.create({ model: "test/embed", input: documents });
const body = { model: "test/rerank", query: question, documents, top_n: 1 };
const { results } = await client.post("/rerank", { body });
const messages = [{ role: "user", content: documents[results[0].index] }];
const stream = client.chat.completions.stream({ model: "test/echo", messages });
const judged = await client.moderations.create({
  model: "test/moderate",
  input: [{ type: "text", text: "do harm" }],
});
const printed = {
  sizes: data.map(({ embedding }) => embedding.length),
  answer: await stream.finalContent(),
  flagged: judged.results[0].flagged,
};
process.stdout.write(`${JSON.stringify(printed)}\n`);
