/** The live catalog, its history and the plan of a request. Read-only: git changes routing. */

import { get, send } from "./api.js";
import { PHONE } from "./chart.js";
import { code, h, p, quiet, show, small, svg } from "./dom.js";
import { count, duration, money, moment, usd } from "./format.js";
import { column, empty, endpointState, facts, field, figures, KEY_FAULTS, meter, numeric, panel, problem, table } from "./parts.js";
import { has, READERS } from "./roles.js";

const WIDTH = 900;
const ROW = 62;
const BOX = 46;

/** Return the view. */
export async function render({ params, signal }) {
  const [models, catalog] = await Promise.all([
    get("models", {}, signal),
    has(READERS) ? get("catalog", {}, signal) : null,
  ]);
  return [catalog && live(catalog.data), explainer(models.data, params), catalog && history(catalog.data)];
}

function live({ sha, models, routes, history: made }) {
  const candidate = made[0]?.candidate ? made[0] : null;
  return [
    figures(
      ["Live catalog", short(sha), made.length ? ["published ", moment(made[0].published_at)] : "from the file, unpublished"],
      ["Models", count(models)],
      ["Routes", count(routes.length), routes.slice(0, 4).join(", ") + (routes.length > 4 ? " …" : "")],
      ["Canary", candidate ? `${candidate.percent} %` : "none", candidate && short(candidate.candidate)],
    ),
    candidate && panel("Share of the keys", meter([["held", candidate.percent], ["spent", 100 - candidate.percent]], 100, `${candidate.percent} % of the keys try the candidate`)),
  ];
}

function explainer(models, params) {
  const place = h("div", {});
  const form = h("form", { class: "filters", onsubmit: explain },
    field({ name: "model", label: "Model or route", list: "names", required: true, value: params.get("model") ?? models.find((each) => each.kind === "route")?.id ?? models[0]?.id ?? "" }),
    h("datalist", { id: "names" }, models.map((model) => h("option", { value: model.id }))),
    field({ name: "prompt", label: "Prompt", value: "Hello" }),
    field({ name: "max_tokens", label: "Maximum output tokens", type: "number", min: "1", placeholder: "the model's" }),
    h("button", { type: "submit" }, "Explain"));
  async function explain(event) {
    event?.preventDefault();
    try {
      const body = { model: form.model.value, messages: [{ role: "user", content: form.prompt.value }] };
      if (form.max_tokens.value) body.max_tokens = Number(form.max_tokens.value);
      show(place, explained(await send("POST", "route/explain", body)));
    } catch (failure) {
      show(place, problem(failure));
    }
  }
  if (form.model.value) explain();
  return panel("Where would a request go?", quiet("Nothing is sent and nothing is billed."), form, place);
}

function explained(plan) {
  const tried = plan.candidates.filter((each) => each.attempt !== null).sort((one, other) => one.attempt - other.attempt);
  const removed = plan.candidates.filter((each) => each.attempt === null);
  return [
    plan.error && problem({ message: plan.error.message, status: 400 }),
    tried.length > 0 && tried.every(({ key }) => key) && h("div", { class: "notice near", role: "status" }, p(h("strong", {}, "No endpoint has a usable key, so the request would fail.")), p("Set the key of a provider: ", code("tollgate doctor"), ", or the banner of ", code("tollgate dev"), ", names the secret or the variable.")),
    tried.length ? drawing(plan, tried) : empty("No endpoint would serve it.", p("The reasons are below.")),
    facts(
      ["Held first", money(plan.hold)],
      ["Prompt", `about ${count(plan.prompt_tokens)} tokens, at most ${count(plan.prompt_tokens_max)}`],
      ["Moves on at", plan.next_on.join(", ")],
      ["Rules skipped", plan.skipped.map((each) => `${each.rule}: ${each.reason}`).join("; ")],
      ["Adapted", plan.unmet.map((each) => (typeof each === "string" ? each : JSON.stringify(each))).join(", ")],
      ["Preset", plan.preset?.name],
      ["Guardrails", plan.guardrails.map((each) => `${each.name}: ${each.action}`).join(", ")],
      ["Reuse of answers", plan.cache && (plan.cache.unused ?? `within ${count(plan.cache.ttl_s)} s, for ${plan.cache.price_percent} % of the cost`)],
      ["Shadow", plan.shadow && shadow(plan.shadow)],
      ["Catalog", h("code", { class: "long" }, plan.catalog_sha)],
    ),
    table("Endpoints in the order in which they are tried", [
      column("Attempt", (each) => each.attempt ?? "–"),
      column("Endpoint", (each) => [each.model, small(`${each.provider} (${each.upstream})`)]),
      numeric("Weight", (each) => [each.model_weight, each.weight].filter((share) => share !== null).map((share) => `${share} %`).join(" × ") || "–"),
      numeric("At most", (each) => money(each.cost_max)),
      numeric("First token", (each) => [duration(each.latency_ms), each.thin && small(each.thin)]),
      column("State", (each) => (each.removed ? h("span", { class: "outcome error" }, "left out", small(each.removed)) : endpointState(each, each.resting_until && [each.probes ? "probed next" : "resting", small(moment(each.resting_until))], "would be tried"))),
    ], [...tried, ...removed]),
  ];
}

const shadow = ({ model, share, used, unused }) => [
  `${share} % of the route's requests also go to ${model}`,
  used !== null && small(used ? "this request does" : `this request does not: ${unused}`),
];

/** Draw the plan: the requested model, the rule, and the endpoints from first to last. */
function drawing(plan, tried) {
  const shown = tried.slice(0, 6);
  const serving = shown.find(({ key }) => !key);
  const height = shown.length * ROW + 8;
  // Phones show only the endpoints.
  const left = innerWidth < PHONE ? 556 : 0;
  const label = `${plan.requested} goes to ${shown.map((each) => `${each.model} via ${each.provider}`).join(", then ")}`;
  const box = (x, y, width, lines, kind = "") => svg("g", {},
    svg("rect", { x, y, width, height: BOX, rx: 6, class: `box ${kind}` }),
    svg("text", { x: x + 12, y: y + 20, class: "box-text" }, cut(lines[0], width)),
    svg("text", { x: x + 12, y: y + 37, class: "axis" }, cut(lines[1], width)));
  const middle = 4 + BOX / 2;
  const route = [plan.route ?? "no route", plan.rule !== null ? `rule ${plan.rule}` : plan.route ? "its models in order" : "the model itself"];
  return h("div", { class: "chart" }, svg("svg", { viewBox: `${left} 0 ${WIDTH - left} ${height}`, role: "img", "aria-label": label },
    svg("path", { d: `M200 ${middle}H280M480 ${middle}H560`, class: "arrow" }),
    shown.map((each, index) => index > 0 && svg("path", { d: `M590 ${4 + (index - 1) * ROW + BOX}V${4 + index * ROW}`, class: "arrow dashed" })),
    box(0, 4, 200, [plan.requested, "asked for"]),
    box(280, 4, 200, route),
    shown.map((each, index) => box(560, 4 + index * ROW, 336, [each.model, `${each.attempt}. ${each.provider}, ${each.key ? KEY_FAULTS[each.key] : `at most ${usd(each.cost_max)}`}`], each.key ? "unusable" : each === serving ? "first" : ""))));
}

const short = (sha) => h("code", { title: sha }, sha.slice(0, 12));

const cut = (text, width) => (text.length > width / 7.4 ? `${text.slice(0, Math.floor(width / 7.4) - 1)}…` : text);

function history({ history: made }) {
  return panel("History", made.length
    ? table("Publications", [
        column("Published", (each) => moment(each.published_at)),
        numeric("Revision", (each) => each.revision),
        column("Live", (each) => short(each.live)),
        column("Canary", (each) => (each.candidate ? [short(each.candidate), ` ${each.percent} %`] : ["–", each.withdrawn && small(`withdrawn: ${each.withdrawn}`)])),
        column("By", (each) => [each.published_by ?? "–", each.commit && small(short(each.commit))]),
      ], made)
    : empty("Nothing was published: the catalog is the one that was deployed.", p("A change goes through git and ", code("tollgate publish"), ".")));
}
