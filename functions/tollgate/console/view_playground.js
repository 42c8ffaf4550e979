/** Sends a prompt to a model or a route, streams the answer, and shows what it costs. */

import { baseUrl, endPlayground, get, send as post, stream } from "./api.js";
import { announce, h, plain, quiet, show } from "./dom.js";
import { count, duration, money } from "./format.js";
import { copyable, field, figures, panel, problem } from "./parts.js";

const CHARACTERS_A_TOKEN = 4;
const LANGUAGES = { curl: "curl", python: "Python", typescript: "TypeScript" };

/** Return the view. */
export async function render({ params, signal }) {
  // Only conversations make text: the playground runs no other kind of work.
  const { data } = await get("models", { output_modalities: "text" }, signal);
  const prices = new Map(data.map((model) => [model.id, model.pricing]));
  let turns = [];
  const talk = h("div", { class: "talk" });
  const answer = h("div", { class: "answer", tabindex: "0", role: "region", "aria-label": "Answer" }, quiet("The answer appears here as it is generated."));
  const cost = h("div", { "aria-live": "off" });
  const code = h("div", {});
  const keys = h("div", { role: "status" });
  const send = h("button", { type: "submit" }, "Send");
  const stop = plain("Stop", null, { hidden: true });
  const fresh = plain("New conversation", forget, { hidden: true });
  const form = h(
    "form",
    { class: "card", onsubmit: submit },
    field({ name: "model", label: "Model or route", list: "models", required: true, onchange: warn, value: params.get("model") ?? (prices.has("test/echo") ? "test/echo" : data[0]?.id ?? "") }),
    h("datalist", { id: "models" }, data.map((model) => h("option", { value: model.id }))),
    keys,
    field({ name: "system", label: "Instructions", placeholder: "none" }),
    field({ name: "prompt", label: "Prompt", type: "textarea", required: true, hint: "Ctrl+Enter sends it.", onkeydown: (pressed) => pressed.key === "Enter" && (pressed.ctrlKey || pressed.metaKey) && !send.disabled && form.requestSubmit() }),
    field({ name: "picture", label: "Address of a picture", type: "url", placeholder: "none" }),
    field({ name: "max_tokens", label: "Maximum output tokens", type: "number", min: "1", value: "500" }),
    h("div", { class: "buttons" }, fresh, stop, send),
    h("div", { class: "copying" }, h("label", { for: "language" }, "This request as"), h("select", { id: "language", onchange: showCode }, Object.entries(LANGUAGES).map(([key, name]) => h("option", { value: key }, name))), plain("Show code", showCode)),
    code,
  );

  /** Return the turn that the form asks for. */
  function question() {
    const [text, url] = [form.prompt.value, form.picture.value];
    return { role: "user", content: url ? [{ type: "text", text }, { type: "image_url", image_url: { url } }] : text };
  }

  /** Return the request with the turns so far; without a new prompt, the last one that was sent. */
  function body() {
    const said = form.prompt.value ? [...turns, question()] : turns.slice(0, -1);
    const messages = form.system.value ? [{ role: "system", content: form.system.value }, ...said] : said;
    return { model: form.model.value, max_tokens: Number(form.max_tokens.value) || undefined, messages };
  }

  function showCode() {
    show(code, copyable(snippet(form.querySelector("#language").value, body())));
  }

  function forget() {
    turns = [];
    show(talk);
    show(cost);
    show(answer, quiet("The answer appears here as it is generated."));
    fresh.hidden = true;
    form.prompt.focus();
  }

  /** Say so if no endpoint of the chosen model has a usable key. */
  async function warn() {
    const model = form.model.value;
    const plan = prices.has(model) && (await post("POST", "route/explain", { model, messages: [{ role: "user", content: "Hello" }] }).catch(() => null));
    const tried = plan ? plan.candidates.filter(({ attempt }) => attempt !== null) : [];
    const unusable = tried.length > 0 && tried.every(({ key }) => key);
    show(keys, unusable && h("div", { class: "notice near" }, `No endpoint of ${model} has a usable key, so the request would fail.`));
  }

  async function submit(event) {
    event.preventDefault();
    const leaving = new AbortController();
    signal.addEventListener("abort", () => leaving.abort());
    stop.onclick = () => leaving.abort();
    send.disabled = true;
    stop.hidden = false;
    const asked = body();
    const asking = question();
    show(talk, turns.map(turn), turn(asking));
    const words = document.createTextNode("");
    show(answer, h("pre", {}, words));
    // The figures of the previous run do not apply to this one.
    show(cost);
    const run = { begunMs: performance.now(), firstMs: null, price: prices.get(asked.model), prompt: JSON.stringify(asked.messages).length, usage: null, served: null };
    let said = "";
    try {
      for await (const { frame, headers } of stream("chat/completions", { ...asked, stream: true }, { signal: leaving.signal })) {
        const delta = frame.choices?.[0]?.delta;
        const piece = delta?.content || delta?.reasoning;
        if (piece) {
          run.firstMs ??= performance.now() - run.begunMs;
          words.appendData(piece);
          said += delta.content ?? "";
        }
        if (frame.usage) run.usage = frame.usage;
        run.served = frame.provider_used ? `${frame.model_used} via ${frame.provider_used}` : run.served;
        run.id = headers.get("x-generation-id");
        showCost(cost, run, words.length);
      }
      announce("The answer is complete");
    } catch (failure) {
      if (failure.name === "AbortError") answer.append(quiet("Stopped. What was produced is billed."));
      else answer.append(problem(failure));
    }
    // A prompt without an answer stays in the field, so that it can be sent again; it is not a turn.
    if (said) {
      turns.push(asking, { role: "assistant", content: said });
      form.prompt.value = form.picture.value = "";
      fresh.hidden = false;
    }
    send.disabled = false;
    stop.hidden = true;
  }

  warn();
  signal.addEventListener("abort", endPlayground);
  return h("div", { class: "two" }, form, h("div", {}, cost, talk, panel("Answer", answer)));
}

const turn = ({ role, content }) => h("div", { class: `turn ${role}` }, h("small", {}, role === "user" ? "You" : "Model"), h("pre", {}, typeof content === "string" ? content : content.map((part) => part.text ?? part.image_url.url).join("\n")));

/** Show a cost estimated from text lengths, and the exact one once usage has arrived. */
function showCost(place, run, characters) {
  const { usage, price } = run;
  const guess = price ? (run.prompt / CHARACTERS_A_TOKEN) * price.prompt + (characters / CHARACTERS_A_TOKEN) * price.completion : null;
  const record = run.id && h("a", { href: `#/generation?id=gen-${encodeURIComponent(run.id.replace(/^gen-/, ""))}` }, "bill");
  show(place, figures(
    ["Cost", money(usage?.cost ?? guess), usage ? record : "so far, about"],
    ["First token", duration(run.firstMs === null ? null : Math.round(run.firstMs))],
    ["Took", duration(Math.round(performance.now() - run.begunMs)), run.served],
    ["Tokens", usage ? `${count(usage.prompt_tokens)} → ${count(usage.completion_tokens)}` : `about ${count(characters / CHARACTERS_A_TOKEN)}`],
  ));
}

/** Return the request as code that reads the key from the environment. */
function snippet(language, body) {
  const json = JSON.stringify(body, null, 2);
  if (language === "python") {
    return `import json, os\nfrom openai import OpenAI\n\nclient = OpenAI(base_url=${JSON.stringify(baseUrl)}, api_key=os.environ["TOLLGATE_API_KEY"])\nbody = json.loads(${JSON.stringify(JSON.stringify(body))})\nfor chunk in client.chat.completions.create(**body, stream=True):\n    print(chunk.choices[0].delta.content or "" if chunk.choices else "", end="")`;
  }
  if (language === "typescript") {
    return `import OpenAI from "openai";\n\nconst client = new OpenAI({ baseURL: ${JSON.stringify(baseUrl)}, apiKey: process.env.TOLLGATE_API_KEY });\nconst answer = await client.chat.completions.create(${json});\nconsole.log(answer.choices[0].message.content);`;
  }
  const quoted = JSON.stringify({ ...body, stream: true }, null, 2).replaceAll("'", "'\\''");
  return `curl -N ${baseUrl}/chat/completions \\\n  -H "authorization: Bearer $TOLLGATE_API_KEY" \\\n  -H 'content-type: application/json' \\\n  -d '${quoted}'`;
}
