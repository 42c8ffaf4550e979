/** Sends a prompt to a model or a route, streams the answer, and shows what it costs. */

import { baseUrl, endPlayground, get, send as post, stream } from "./api.js";
import { announce, h, plain, quiet, show } from "./dom.js";
import { count, duration, money } from "./format.js";
import { copyable, field, figures, panel, problem } from "./parts.js";

const CHARACTERS_A_TOKEN = 4;
const SPEAKERS = { user: "You", assistant: "Model", tool: "Tool" };
const JOINED = new Set(["arguments", "text", "summary", "data"]);
const LANGUAGES = { curl: "curl", python: "Python", typescript: "TypeScript" };

/** Return the view. */
export async function render({ params, signal }) {
  // Only conversations make text: the playground runs no other kind of work.
  const { data } = await get("models", { output_modalities: "text" }, signal);
  const prices = new Map(data.map((model) => [model.id, model.pricing]));
  let turns = [];
  // The calls of the last answer whose results the person has yet to type.
  let calls = [];
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
    field({ name: "temperature", label: "Temperature", type: "number", min: "0", max: "2", step: "any", placeholder: "default of the model" }),
    field({ name: "tools", label: "Tools", type: "textarea", placeholder: "none", hint: "A JSON array of function tools, as OpenAI's API takes them.", oninput: checkTools }),
    h("div", { class: "buttons" }, fresh, stop, send),
    h("div", { class: "copying" }, h("label", { for: "language" }, "This request as"), h("select", { id: "language", onchange: showCode }, Object.entries(LANGUAGES).map(([key, name]) => h("option", { value: key }, name))), plain("Show code", showCode)),
    code,
  );

  /** Return the turn that the form asks for: a prompt, or the result of a call. */
  function question() {
    const [text, url] = [form.prompt.value, form.picture.value];
    if (calls.length) return { role: "tool", tool_call_id: calls[0].id, content: text };
    return { role: "user", content: url ? [{ type: "text", text }, { type: "image_url", image_url: { url } }] : text };
  }

  /** Return the request with the turns so far; without a new prompt, the last one that was sent. */
  function body() {
    const said = form.prompt.value ? [...turns, question()] : turns.slice(0, turns.findLastIndex(({ role }) => role === "assistant"));
    const messages = form.system.value ? [{ role: "system", content: form.system.value }, ...said] : said;
    const temperature = form.temperature.value ? Number(form.temperature.value) : undefined;
    return { model: form.model.value, max_tokens: Number(form.max_tokens.value) || undefined, temperature, tools: toolsOf(form.tools.value) ?? undefined, messages };
  }

  function checkTools() {
    form.tools.setCustomValidity(toolsOf(form.tools.value) === null ? "This is not a JSON array." : "");
  }

  function showCode() {
    if (form.tools.reportValidity()) show(code, copyable(snippet(form.querySelector("#language").value, body())));
  }

  /** Append turns, and label the field for the next turn: the result of a call, or a prompt. */
  function take(...said) {
    turns.push(...said);
    form.prompt.value = form.picture.value = "";
    form.prompt.labels[0].textContent = calls.length ? `Result of ${callText(calls[0])}` : "Prompt";
    form.picture.disabled = calls.length > 0;
    fresh.hidden = !turns.length;
  }

  function forget() {
    turns = [];
    calls = [];
    take();
    show(talk);
    show(cost);
    show(answer, quiet("The answer appears here as it is generated."));
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
    if (calls.length > 1) {
      const result = question();
      calls.shift();
      take(result);
      return show(talk, turns.map(turn));
    }
    const leaving = new AbortController();
    signal.addEventListener("abort", () => leaving.abort());
    stop.onclick = () => leaving.abort();
    send.disabled = true;
    stop.hidden = false;
    const asked = body();
    const asking = question();
    show(talk, turns.map(turn), turn(asking));
    const words = document.createTextNode("");
    const called = h("pre", {});
    show(answer, h("pre", {}, words), called);
    // The figures of the previous run do not apply to this one.
    show(cost);
    const run = { begunMs: performance.now(), firstMs: null, price: prices.get(asked.model), prompt: JSON.stringify([asked.messages, asked.tools]).length, usage: null, served: null };
    let said = "";
    let made = [];
    const thoughts = [];
    try {
      for await (const { frame, headers } of stream("chat/completions", { ...asked, stream: true }, { signal: leaving.signal })) {
        const delta = frame.choices?.[0]?.delta;
        const piece = delta?.content || delta?.reasoning;
        join(made, delta?.tool_calls);
        join(thoughts, delta?.reasoning_details);
        called.textContent = made.map(callText).join("\n");
        if (piece || made.length) run.firstMs ??= performance.now() - run.begunMs;
        if (piece) {
          words.appendData(piece);
          said += delta.content ?? "";
        }
        if (frame.usage) run.usage = frame.usage;
        run.served = frame.provider_used ? `${frame.model_used} via ${frame.provider_used}` : run.served;
        run.id = headers.get("x-generation-id");
        showCost(cost, run, words.length + called.textContent.length);
      }
      announce("The answer is complete");
    } catch (failure) {
      // A call that is cut short has no result.
      made = [];
      if (failure.name === "AbortError") answer.append(quiet("Stopped. What was produced is billed."));
      else answer.append(problem(failure));
    }
    // A prompt without an answer stays in the field, so that it can be sent again; it is not a turn.
    if (said || made.length) {
      calls = made.map(({ index, ...call }) => call);
      // Some models refuse the result of a call without the reasoning that led to it.
      take(asking, { role: "assistant", content: said || null, ...(calls.length && { tool_calls: [...calls], reasoning_details: thoughts.length ? thoughts : undefined }) });
    }
    send.disabled = false;
    stop.hidden = true;
  }

  warn();
  signal.addEventListener("abort", endPlayground);
  return h("div", { class: "two" }, form, h("div", {}, cost, talk, panel("Answer", answer)));
}

const callText = ({ function: { name, arguments: values } }) => `${name}(${values})`;

function turn({ role, content, tool_calls: made = [] }) {
  const words = Array.isArray(content) ? content.map((part) => part.text ?? part.image_url.url) : [content];
  return h("div", { class: `turn ${role}` }, h("small", {}, SPEAKERS[role]), h("pre", {}, [...words, ...made.map(callText)].filter(Boolean).join("\n")));
}

/** Return the tools that a text states: undefined without text, null if it is not a JSON array. */
function toolsOf(text) {
  if (!text.trim()) return undefined;
  try {
    const tools = JSON.parse(text);
    return Array.isArray(tools) ? tools : null;
  } catch {
    return null;
  }
}

/** Append streamed pieces to their wholes, which have the same index: text is joined, other values are replaced. */
function join(wholes, pieces) {
  for (const piece of pieces ?? []) {
    const whole = wholes.find(({ index }) => index === piece.index);
    if (whole) merge(whole, piece);
    else wholes.push(piece);
  }
}

function merge(whole, piece) {
  for (const [name, value] of Object.entries(piece)) {
    if (name === "function") merge(whole.function, value);
    else whole[name] = JOINED.has(name) ? (whole[name] ?? "") + value : value;
  }
}

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
    return `import json, os\nfrom openai import OpenAI\n\nclient = OpenAI(base_url=${JSON.stringify(baseUrl)}, api_key=os.environ["TOLLGATE_API_KEY"])\nbody = json.loads(${JSON.stringify(JSON.stringify(body))})\nfor chunk in client.chat.completions.create(**body, stream=True):\n    for choice in chunk.choices:\n        print(choice.delta.content or choice.delta.tool_calls or "", end="")`;
  }
  if (language === "typescript") {
    return `import OpenAI from "openai";\n\nconst client = new OpenAI({ baseURL: ${JSON.stringify(baseUrl)}, apiKey: process.env.TOLLGATE_API_KEY });\nconst answer = await client.chat.completions.create(${json});\nconst { message } = answer.choices[0];\nconsole.log(message.content ?? message.tool_calls);`;
  }
  const quoted = JSON.stringify({ ...body, stream: true }, null, 2).replaceAll("'", "'\\''");
  return `curl -N ${baseUrl}/chat/completions \\\n  -H "authorization: Bearer $TOLLGATE_API_KEY" \\\n  -H 'content-type: application/json' \\\n  -d '${quoted}'`;
}
