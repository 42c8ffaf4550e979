/** One generation: its bill line by line, its attempts in order, and its refund. */

import { get, send, session } from "./api.js";
import { code, h, p, plain, quiet, small, svg } from "./dom.js";
import { count, duration, exact, money, moment, usd } from "./format.js";
import { column, dialog, facts, field, figures, numeric, panel, problem, table } from "./parts.js";
import { has, KEEPERS_OF_KEYS } from "./roles.js";
import { outcome } from "./view_generations.js";

const ITEMS = {
  input: "Fresh input", output: "Output", cache_read: "Cache read", cache_write_5m: "Cache write 5m",
  cache_write_1h: "Cache write 1h", input_audio: "Audio input", output_audio: "Audio output",
  provider_web_search: "Provider search", unpriced_web_search: "Provider search", reused_answer: "Reused answer",
};
const SOURCES = {
  provider: "counted by the provider", estimated: "estimated: the provider did not count",
  bounded: "the provider counted more than the answer can have used; the bound is billed", none: "nothing was used",
};

/** Return the view of the generation `id`. */
export async function render({ params, signal, refresh }) {
  const { data } = await get("generation", { id: params.get("id"), notes: true }, signal);
  return [
    h("p", { class: "path" }, h("a", { href: "#/generations" }, "Generations"), " / ", code(data.id)),
    figures(
      ["Cost", money(data.total_cost), `held at first: ${usd(data.held)}`],
      ["Outcome", outcome(data), data.finish_reason],
      ["Took", duration(data.latency_ms), data.first_token_ms === null ? null : `first token ${duration(data.first_token_ms)}`],
      ["Tokens", `${count(data.tokens_prompt)} → ${count(data.tokens_completion)}`, "in → out"],
    ),
    panel("Bill", bill(data), session.operator && data.total_cost > 0 && data.refunded === 0 && refundButton(data, refresh)),
    data.notes?.length > 0 && panel("Why", h("ul", {}, ...data.notes.map((note) => h("li", {}, linked(note, (data.shadow ?? data.reused)?.generation_id))))),
    panel("Attempts", attempts(data.provider_responses)),
    panel("Record", record(data)),
    has(KEEPERS_OF_KEYS) && contentButton(data.id),
  ];
}

function bill(data) {
  if (!data.cost_lines.length) return quiet(`Nothing is billed: ${data.reused ? "an earlier answer was reused" : "no attempt served"}.`);
  const sums = [{ name: "Total", cost: data.total_cost }];
  if (data.refunded) sums.push({ name: "Refunded", cost: -data.refunded }, { name: "Net", cost: data.total_cost - data.refunded });
  const lines = [...data.cost_lines, ...sums];
  return table("Bill", [
    column("Item", (line) => (line.name ? h("strong", {}, line.name) : [ITEMS[line.item] ?? line.item, line.round && small(`round ${line.round}`)])),
    numeric("Quantity", (line) => (line.name ? "" : count(line.quantity))),
    numeric("$ per million", (line) => (line.name ? "" : exact(line.usd_per_million))),
    numeric("Cost, $", (line) => (line.name ? h("strong", {}, exact(line.cost)) : exact(line.cost))),
  ], lines);
}

function attempts(made) {
  if (!made.length) return quiet("No provider was called.");
  const total = made.reduce((sum, each) => sum + (each.latency ?? 0), 0) || 1;
  let begun = 0;
  const bar = (each) => {
    const x = (begun / total) * 100;
    begun += each.latency ?? 0;
    return svg("svg", { class: "span", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
      svg("rect", { x, y: 1, width: Math.max(0.8, ((each.latency ?? 0) / total) * 100), height: 8, class: each.error ? "failed" : "served" }));
  };
  return table("Attempts in order", [
    column("Endpoint", (each) => [each.model, small(each.provider_name)]),
    column("Timeline", bar),
    numeric("Took", (each) => duration(each.latency)),
    column("Result", (each) => [h("span", { class: `outcome ${each.error ? "error" : "ok"}` }, each.error ?? "served"), each.status && small(`HTTP ${each.status}`), each.provider_words && small(each.provider_words)]),
    numeric("Billed", (each) => (each.error ? [money(0), each.operator_cost > 0 && small(`${usd(each.operator_cost)} paid by the operator`)] : "as above")),
  ], made);
}

/** Return a note in which the other generation, if the note names it, is a link. */
function linked(note, other) {
  const [before, after] = other ? note.split(other) : [note];
  return after === undefined ? note : [before, h("a", { href: `#/generation?id=${encodeURIComponent(other)}` }, other), after];
}

const demands = ({ owner, regions, no_training, no_retention }) =>
  `${owner}: ${[...regions, no_training && "no_training", no_retention && "no_retention"].filter(Boolean).join(", ")}`;

/** Return the shadow's generation, as a link if the session may read it. */
const shadow = (other) => other && linked(other.generation_id, other.is_readable && other.generation_id);

const id = (text) => text && h("code", { class: "long" }, text);

function record(data) {
  const labels = Object.entries(data.labels).map(([name, value]) => `${name}: ${value}`).join(", ");
  return facts(
    ["Time", moment(data.created_at)],
    ["Asked for", data.requested_model],
    ["Route", data.route && `${data.route}${data.rule ? `, rule ${data.rule}` : ""}`],
    ["Preset", data.trace.preset],
    ["Budget left", data.trace.budget_left_percent !== null && `${data.trace.budget_left_percent} %`],
    ["Prompt policies", data.trace.prompt_policies.map(demands).join("; ")],
    ["Served by", data.model && `${data.model} via ${data.provider_name} (${data.upstream_model})`],
    ["Key", h("a", { href: `#/generations?key=${encodeURIComponent(data.key_id)}` }, data.key_name || data.key_id)],
    ["Labels", labels],
    ["Source", data.source],
    ["Format", `${data.ingress_format}${data.streamed ? ", streamed" : ""}`],
    ["Usage", SOURCES[data.usage_source]],
    ["Adapted", data.adapted.join(", ")],
    ["Shadow", shadow(data.shadowed_by)],
    ["User", data.external_user],
    ["Catalog", id(data.catalog_sha)],
    ["Provider's id", id(data.upstream_id)],
    ["Client's id", id(data.client_request_id)],
    ["API Gateway", id(data.api_gateway_request_id)],
    ["Lambda", id(data.lambda_request_id)],
  );
}

function refundButton(data, refresh) {
  const fields = [
    p(`This generation cost $${exact(data.total_cost)}. It can be refunded once.`),
    field({ name: "amount", label: "Amount, $", type: "number", step: "any", min: "0", max: String(data.total_cost), hint: "Leave empty for the full cost." }),
    field({ name: "note", label: "Note", maxlength: "200" }),
  ];
  const save = async ({ amount, note }) => {
    const reply = await send("POST", "credits/refunds", { generation_id: data.id, amount: amount ?? null, note: note ?? "" });
    await refresh();
    const text = reply.granted ? "Refunded." : "This generation had already been refunded; nothing was added.";
    document.querySelector(".view")?.prepend(h("div", { class: "notice good", role: "status" }, p(`${text} Available now: ${usd(reply.data.available)}.`)));
  };
  return plain("Refund …", () => dialog("Refund", fields, { action: "Refund", save }));
}

function contentButton(id) {
  const place = h("div", {});
  const open = async () => {
    try {
      const { data } = await get("generation/content", { id });
      place.replaceChildren(h("pre", { tabindex: "0" }, JSON.stringify(data, null, 2)));
    } catch (failure) {
      place.replaceChildren(problem(failure));
    }
  };
  return panel("Content", quiet("Stored only if the key stores content."), plain("Show the request and the answer", open), place);
}
