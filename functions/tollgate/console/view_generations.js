/** The list of generations, newest first or as they come, with filters. */

import { get, saveCsv, session } from "./api.js";
import { announce, h, p, quiet, show, small } from "./dom.js";
import { count, duration, money, moment } from "./format.js";
import { column, empty, field, filters, numeric, pagedTable, problem, saver, table } from "./parts.js";

const DAY_MS = 86_400_000;
const LIVE_MS = 3_000;
const LIVE_ROWS_MAX = 500;
const PAGE = 50;
const OUTCOMES = [["", "any"], ["ok", "ok"], ["error", "error"], ["cancelled", "cancelled"], ["lost", "lost"]];
const FILTERS = ["model", "provider", "key", "team", "member", "label", "outcome", "cost_min"];

/** Return the view, filtered as the address says; the form is there before the list is found. */
export async function render({ params, signal, go, refresh }) {
  const query = select(params);
  const place = h("div", {}, quiet("Looking …"));
  const live = params.get("live") === "1";
  const mayChoose = session.key.role !== "inference";
  const text = (name, label, placeholder) => field({ name, label, value: params.get(name) ?? "", placeholder });
  fill(place, query, { live, signal }).catch((failure) => signal.aborted || show(place, problem(failure, refresh)));
  return [
    filters(go, "generations", [
      field({ name: "since", label: "From (UTC)", type: "date", value: query.since.slice(0, 10) }),
      field({ name: "until", label: "To (inclusive)", type: "date", value: lastDay(query.until) }),
      text("model", "Model", "asked for or served"),
      text("provider", "Provider"),
      mayChoose && [text("key", "Key", "name or id"), text("team", "Team"), text("member", "Member")],
      text("label", "Label", "environment:production"),
      field({ name: "outcome", label: "Outcome", value: params.get("outcome") ?? "", options: OUTCOMES }),
      field({ name: "cost_min", label: "Cost from, $", type: "number", min: "0", step: "any", value: params.get("cost_min") ?? "" }),
      field({ name: "live", label: "Order", value: live ? "1" : "", options: [["", "newest first"], ["1", "live"]] }),
    ]),
    place,
    saver("Save as CSV", () => saveCsv("generations", { ...query, limit: 1000 }, "generations.csv")),
  ];
}

async function fill(place, query, { live, signal }) {
  const load = (cursor) => get("generations", { ...query, limit: PAGE, cursor }, signal);
  if (live) return follow(place, load, signal);
  const none = empty("No generations match.", p("Choose more days, or remove a filter. Records are kept for the days that the gateway's operator set; a first request is a press on Send in the ", h("a", { href: "#/playground" }, "playground"), "."));
  const list = await pagedTable("Generations", COLUMNS, load, none, { link: addressOf });
  if (!signal.aborted) show(place, list);
}

/** Show the last generations, and each later one above them, until the view is left. */
async function follow(place, load, signal) {
  const known = new Set();
  const whole = table("Generations", COLUMNS, [], { link: addressOf });
  const body = whole.querySelector("tbody");
  const note = quiet();
  show(place, note, whole);
  for (let isFirst = true; !signal.aborted; isFirst = false) {
    if (!document.hidden) {
      try {
        const { data } = await load(null);
        const fresh = data.filter(({ id }) => !known.has(id));
        for (const { id } of fresh) known.add(id);
        const rows = [...table("Generations", COLUMNS, fresh, { link: addressOf }).querySelectorAll("tbody > tr")];
        if (!isFirst) rows.forEach((row) => row.classList.add("fresh"));
        body.prepend(...rows);
        while (body.rows.length > LIVE_ROWS_MAX) body.lastChild.remove();
        show(note, known.size ? `Live: ${count(known.size)} shown; a request appears when it ends.` : "Live: waiting for a request.");
        if (fresh.length && !isFirst) announce(`${fresh.length} more`);
      } catch (failure) {
        if (signal.aborted) return;
        if (failure.status === 400 || failure.status === 404 || failure.status === 401) throw failure;
        show(note, `Live: ${failure.message} Trying again.`);
      }
    }
    await new Promise((done) => setTimeout(done, LIVE_MS));
  }
}

const addressOf = ({ id }) => `#/generation?id=${encodeURIComponent(id)}`;

const COLUMNS = [
  column("Time", (row) => moment(row.created_at)),
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
  for (const name of FILTERS) query[name] = params.get(name);
  return query;
}

const lastDay = (until) => new Date(Date.parse(until) - DAY_MS).toISOString().slice(0, 10);
