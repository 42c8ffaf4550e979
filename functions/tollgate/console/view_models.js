/** Models, routes and aliases, with prices, kinds and endpoints. */

import { get } from "./api.js";
import { code, h, p, show, small } from "./dom.js";
import { count, duration, perMillion } from "./format.js";
import { column, empty, endpointState, field, numeric, panel, problem, table } from "./parts.js";

const SHOWN_MAX = 60;
const PIECES = { request: "a request", image: "an image", web_search: "a search", search: "a unit", audio_hour: "an hour", character: "a character", text_unit: "a text unit", video_second: "a second" };

/** Return the view; typing filters it without a request. */
export async function render({ params, signal, go }) {
  if (params.get("id")) return endpoints(params.get("id"), signal);
  const { data } = await get("models", { output_modalities: "all" }, signal);
  const place = h("div", {});
  const narrow = (form) => {
    const words = form.find.value.toLowerCase().split(/\s+/).filter(Boolean);
    const kind = form.kind.value;
    const found = data.filter((model) => (!kind || model.kind === kind) && words.every((word) => text(model).includes(word)));
    show(place, h("p", { class: "quiet", role: "status" }, `${count(found.length)} of ${count(data.length)}${found.length > SHOWN_MAX ? `, the first ${SHOWN_MAX} are shown` : ""}`),
      found.length ? table("Models", COLUMNS, found.slice(0, SHOWN_MAX)) : empty("No models match.", p("Try a vendor, a kind of input such as image, or a parameter such as tools.")));
  };
  const form = h("form", { class: "filters", oninput: () => narrow(form), onsubmit: (event) => { event.preventDefault(); go("models", { find: form.find.value, kind: form.kind.value }); } },
    field({ name: "find", label: "Find", type: "search", value: params.get("find") ?? "", placeholder: "openai image tools" }),
    field({ name: "kind", label: "Kind", value: params.get("kind") ?? "", options: [["", "all"], ["model", "models"], ["route", "routes"], ["alias", "aliases"]] }));
  narrow(form);
  return [form, place];
}

const text = (model) => [model.id, model.name, model.kind, model.architecture.modality, ...model.supported_parameters, ...(model.models ?? [])].join(" ").toLowerCase();

const COLUMNS = [
  column("Name", (model) => [h("a", { href: `#/models?id=${encodeURIComponent(model.canonical_slug)}` }, model.id), small(kind(model))]),
  column("In → out", (model) => model.architecture.modality.replace("->", " → ").replaceAll("+", ", ")),
  numeric("Context", (model) => count(model.context_length)),
  numeric("$ in / M", (model) => perMillion(model.pricing.prompt)),
  numeric("$ out / M", (model) => perMillion(model.pricing.completion)),
  column("Lifecycle", (model) => lifecycle(model)),
];

const kind = (model) => (model.kind === "route" ? `route: ${model.models.join(", ")}` : model.kind === "alias" ? `alias of ${model.canonical_slug}` : model.name);

function lifecycle({ deprecation_date: deprecated, expiration_date: ends, successor }) {
  if (!deprecated && !ends) return "–";
  return [ends ? `ends ${ends}` : `deprecated ${deprecated}`, successor && small(`use ${successor}`)];
}

async function endpoints(id, signal) {
  const path = h("p", { class: "path" }, h("a", { href: "#/models" }, "Models"), " / ", code(id));
  const model = await get(`models/${id}`, {}, signal);
  const slugs = model.models ?? [model.canonical_slug];
  const found = await Promise.all(slugs.map((slug) => get(`models/${slug}/endpoints`, {}, signal).catch((failure) => failure)));
  return [path, model.description && p(model.description), found.map((reply, index) =>
    panel(slugs[index], reply.data ? table(`Endpoints of ${slugs[index]}`, ENDPOINTS, reply.data.endpoints) : problem(reply)))];
}

const ENDPOINTS = [
  column("Provider", (each) => each.provider_name),
  column("State", (each) => endpointState(each, each.status && "resting after failures", "in service")),
  numeric("$ in / M", (each) => perMillion(each.pricing.prompt)),
  numeric("$ out / M", (each) => perMillion(each.pricing.completion)),
  column("Other prices", (each) => others(each)),
  numeric("First token", (each) => duration(each.latency_ms)),
  numeric("Tokens/s", (each) => count(each.tokens_per_s)),
  column("Lifecycle", (each) => lifecycle(each)),
];

function others({ pricing, pricing_overrides: overrides }) {
  const known = Object.entries(PIECES).filter(([name]) => pricing[name]).map(([name, of]) => `$${pricing[name]} ${of}`);
  if (pricing.input_cache_read) known.unshift(`${perMillion(pricing.input_cache_read)} from the cache`);
  if (overrides.length) known.push(`${overrides.length} dated or tiered`);
  return known.join(", ") || "–";
}
