// Two turns by `previous_response_id`, and every route of stored responses.
import OpenAI from "openai";

const client = new OpenAI({
  baseURL: process.env.BASE_URL,
  apiKey: process.env.KEY,
  maxRetries: 0,
});
const status = (promise) => promise.then(() => 200, (refused) => refused.status);
const model = "acme/agent";
const first = await client.responses.create({ model, input: "Hi" });
const second = await client.responses
  .stream({ model, input: "More", previous_response_id: first.id })
  .finalResponse();
const shown = await client.responses.retrieve(second.id);
const items = [];
for await (const item of client.responses.inputItems.list(second.id, { limit: 1, order: "asc" }))
  items.push(item.content[0].text);
console.log(
  JSON.stringify({
    said: [first.output_text, second.output_text],
    continues: shown.previous_response_id === first.id,
    shown: shown.output_text,
    items,
    cancelled: await status(client.responses.cancel(second.id)),
    deleted: await status(client.responses.delete(second.id)),
    gone: await status(client.responses.retrieve(second.id)),
  }),
);
