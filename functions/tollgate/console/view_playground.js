/** Sends a prompt to a model or a route, streams the answer, and shows what it costs. */

import { baseUrl, get, session, stream } from "./api.js";
import { announce, h, plain, quiet, show } from "./dom.js";
import { count, duration, money } from "./format.js";
import { copyable, field, figures, panel, problem } from "./parts.js";
import { CALLERS, has } from "./roles.js";

const CHARACTERS_A_TOKEN = 4;
const STORED = "tollgate.playground";
const LANGUAGES = { curl: "curl", python: "Python", javascript: "JavaScript" };

/** Return the view. */
export async function render({ params, signal }) {
  const { data } = await get("models", {}, signal);
  const prices = new Map(data.map((model) => [model.id, model.pricing]));
  const needsKey = !has(CALLERS);
  const answer = h("div", { class: "answer", tabindex: "0", role: "region", "aria-label": "Answer" }, quiet("The answer appears here as it is made."));
  const cost = h("div", { "aria-live": "off" });
  const code = h("div", {});
  const send = h("button", { type: "submit" }, "Send");
  const stop = plain("Stop", null, { hidden: true });
  const form = h(
    "form",
    { class: "card", onsubmit: submit },
    needsKey && field({ name: "secret", label: `A ${session.key.role} key sends no requests: paste an inference key`, type: "password", required: true, value: sessionStorage.getItem(STORED) ?? "", hint: "Kept in this tab alone." }),
    field({ name: "model", label: "Model or route", list: "models", required: true, value: params.get("model") ?? (prices.has("test/echo") ? "test/echo" : data[0]?.id ?? "") }),
    h("datalist", { id: "models" }, data.map((model) => h("option", { value: model.id }))),
    field({ name: "system", label: "Instructions", placeholder: "none" }),
    field({ name: "prompt", label: "Prompt", type: "textarea", required: true }),
    field({ name: "max_tokens", label: "Most output tokens", type: "number", min: "1", value: "500" }),
    h("div", { class: "buttons" }, h("label", { for: "language" }, "Copy as"), h("select", { id: "language", onchange: showCode }, Object.entries(LANGUAGES).map(([key, name]) => h("option", { value: key }, name))), plain("Show code", showCode), stop, send),
    code,
  );

  function body() {
    const messages = [{ role: "user", content: form.prompt.value }];
    if (form.system.value) messages.unshift({ role: "system", content: form.system.value });
    return { model: form.model.value, max_tokens: Number(form.max_tokens.value) || undefined, messages };
  }

  function showCode() {
    show(code, copyable(snippet(form.querySelector("#language").value, body())));
  }

  async function submit(event) {
    event.preventDefault();
    if (needsKey) sessionStorage.setItem(STORED, form.secret.value.trim());
    const leaving = new AbortController();
    signal.addEventListener("abort", () => leaving.abort());
    stop.onclick = () => leaving.abort();
    send.disabled = true;
    stop.hidden = false;
    const words = document.createTextNode("");
    show(answer, h("pre", {}, words));
    const run = { begunMs: performance.now(), firstMs: null, price: prices.get(form.model.value), prompt: JSON.stringify(body().messages).length, usage: null, served: null };
    try {
      const secret = needsKey ? form.secret.value.trim() : session.secret;
      for await (const { frame, headers } of stream("chat/completions", { ...body(), stream: true }, { secret, signal: leaving.signal })) {
        const delta = frame.choices?.[0]?.delta;
        const piece = delta?.content || delta?.reasoning;
        if (piece) {
          run.firstMs ??= performance.now() - run.begunMs;
          words.appendData(piece);
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
    send.disabled = false;
    stop.hidden = true;
  }

  return h("div", { class: "two" }, form, h("div", {}, cost, panel("Answer", answer)));
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
    return `import json, os\nfrom openai import OpenAI\n\nclient = OpenAI(base_url=${JSON.stringify(baseUrl)}, api_key=os.environ["TOLLGATE_API_KEY"])\nbody = json.loads(${JSON.stringify(JSON.stringify(body))})\nfor chunk in client.chat.completions.create(**body, stream=True):\n    print(chunk.choices[0].delta.content or "" if chunk.choices else "", end="")`;
  }
  if (language === "javascript") {
    return `import OpenAI from "openai";\n\nconst client = new OpenAI({ baseURL: ${JSON.stringify(baseUrl)}, apiKey: process.env.TOLLGATE_API_KEY });\nconst answer = await client.chat.completions.create(${json});\nconsole.log(answer.choices[0].message.content);`;
  }
  const quoted = JSON.stringify({ ...body, stream: true }, null, 2).replaceAll("'", "'\\''");
  return `curl -N ${baseUrl}/chat/completions \\\n  -H "authorization: Bearer $TOLLGATE_API_KEY" \\\n  -H 'content-type: application/json' \\\n  -d '${quoted}'`;
}
