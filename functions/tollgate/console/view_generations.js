/** The list of generations, newest first, with filters. */

import { get, saveCsv } from "./api.js";
import { h, p, small } from "./dom.js";
import { count, duration, money, moment } from "./format.js";
import { column, empty, field, filters, numeric, pagedTable, saver } from "./parts.js";

const DAY_MS = 86_400_000;
const OUTCOMES = [["", "any"], ["ok", "ok"], ["error", "error"], ["cancelled", "cancelled"], ["lost", "lost"]];

/** Return the view, filtered as the address says. */
export async function render({ params, signal, go }) {
  const query = select(params);
  const load = (cursor) => get("generations", { ...query, limit: 50, cursor }, signal);
  const none = empty("No generation matches.", p("Widen the days, or take a filter away. Records are kept for the days that the gateway's operator set."));
  const list = await pagedTable("Generations", COLUMNS, load, none);
  return [
    filters(go, "generations", [
      field({ name: "since", label: "From (UTC)", type: "date", value: query.since.slice(0, 10) }),
      field({ name: "until", label: "To, with that day", type: "date", value: lastDay(query.until) }),
      field({ name: "model", label: "Model", value: params.get("model") ?? "", placeholder: "asked for or served" }),
      field({ name: "provider", label: "Provider", value: params.get("provider") ?? "" }),
      field({ name: "key", label: "Key", value: params.get("key") ?? "", placeholder: "name or id" }),
      field({ name: "label", label: "Label", value: params.get("label") ?? "", placeholder: "team:search" }),
      field({ name: "outcome", label: "Outcome", value: params.get("outcome") ?? "", options: OUTCOMES }),
      field({ name: "cost_min", label: "Cost from, $", type: "number", min: "0", step: "any", value: params.get("cost_min") ?? "" }),
    ]),
    list,
    saver("Save as CSV", () => saveCsv("generations", { ...query, limit: 1000 }, "generations.csv")),
  ];
}

const COLUMNS = [
  column("Time", (row) => h("a", { href: `#/generation?id=${encodeURIComponent(row.id)}` }, moment(row.created_at))),
  column("Model", (row) => [row.model ?? "not served", row.requested_model !== row.model && small(`asked for ${row.requested_model}`)]),
  numeric("Cost", (row) => money(row.total_cost)),
  column("Outcome", (row) => outcome(row)),
  numeric("Tokens in", (row) => count(row.tokens_prompt)),
  numeric("Tokens out", (row) => count(row.tokens_completion)),
  numeric("Took", (row) => duration(row.latency_ms)),
  column("Provider", (row) => row.provider_name ?? "–"),
  column("Key", (row) => row.key_name || row.key_id),
];

/** Return an outcome as a coloured word. */
export const outcome = ({ status, error_code: code }) =>
  h("span", { class: `outcome ${status}` }, status, code && small(code));

function select(params) {
  const day = (name) => (/^\d{4}-\d{2}-\d{2}$/.test(params.get(name)) ? Date.parse(params.get(name)) : NaN);
  const today = Math.floor(Date.now() / DAY_MS) * DAY_MS;
  const until = (Number.isNaN(day("until")) ? today : day("until")) + DAY_MS;
  const since = Number.isNaN(day("since")) ? until - 7 * DAY_MS : day("since");
  const query = { since: new Date(since).toISOString(), until: new Date(until).toISOString() };
  for (const name of ["model", "provider", "key", "label", "outcome", "cost_min"]) query[name] = params.get(name);
  return query;
}

const lastDay = (until) => new Date(Date.parse(until) - DAY_MS).toISOString().slice(0, 10);
