/** Batches with their progress, cost so far and estimate; each leads to the requests behind it. */

import { get } from "./api.js";
import { code, h, p, show, small } from "./dom.js";
import { count, distance, money, moment, uri } from "./format.js";
import { column, empty, meter, numeric, pagedTable } from "./parts.js";

const LOOK_MS = 5_000;
const PAGE = 50;
const OPEN = ["validating", "in_progress", "finalizing", "cancelling"];
const WORDS = { completed: "ok", failed: "error", expired: "error" };

/** Return the view; while a batch runs, the list is read again every few seconds. */
export async function render({ signal }) {
  const place = h("div", {});
  const first = await load(null, signal);
  await draw(place, first, signal);
  follow(place, first, signal);
  return [
    p("Files of requests that run within a day. Lines are billed like other requests; an estimate goes by the lines that have ended."),
    place,
  ];
}

async function follow(place, page, signal) {
  while (!page.next_cursor && page.data.some(({ status }) => OPEN.includes(status))) {
    await new Promise((done) => setTimeout(done, LOOK_MS));
    if (signal.aborted) return;
    if (document.hidden) continue;
    // A failed look leaves the list as it is; the next one may succeed.
    page = await load(null, signal).catch(() => page);
    if (signal.aborted) return;
    await draw(place, page, signal);
  }
}

async function draw(place, page, signal) {
  const none = empty("There is no batch yet.", p("Upload a file of requests and start it with ", code("tollgate batches create FILE --watch"), "."));
  const list = await pagedTable("Batches", COLUMNS, async (cursor) => (cursor ? load(cursor, signal) : page), none, { link: requestsOf });
  show(place, list);
}

async function load(after, signal) {
  const { data, has_more: more, last_id: last } = await get("batches", { limit: PAGE, after }, signal);
  return { data, next_cursor: more ? last : null };
}

const iso = (seconds) => new Date(seconds * 1000).toISOString();

/** Return the address of the requests of a batch, from the day of its creation on. */
const requestsOf = ({ id, created_at: created, expires_at: expires }) =>
  `#/generations?label=${uri(`batch:${id}`)}&since=${iso(created).slice(0, 10)}&until=${iso(expires).slice(0, 10)}`;

const ended = ({ request_counts: { completed, failed } }) => completed + failed;

/** Return what all lines may cost at the average of those that have ended, at most their bound. */
function estimate(batch) {
  if (!ended(batch) || !OPEN.includes(batch.status)) return null;
  return Math.min(batch.total_cost_max, (batch.total_cost / ended(batch)) * batch.request_counts.total);
}

function progress(batch) {
  const { total, completed, failed } = batch.request_counts;
  const words = total ? `${count(completed + failed)} of ${count(total)} lines` : "no lines yet";
  return h("div", { class: "progress" },
    h("span", { class: `outcome ${WORDS[batch.status] ?? "cancelled"}` }, batch.status.replace("_", " ")),
    meter([["spent", completed], ["held", failed]], total, words),
    small(words, failed ? `, ${count(failed)} failed` : ""));
}

const COLUMNS = [
  column("Created", (batch) => moment(iso(batch.created_at), { seconds: false })),
  column("Progress", progress),
  numeric("Cost so far", (batch) => money(batch.total_cost)),
  numeric("Estimate", (batch) => (estimate(batch) === null ? "–" : money(estimate(batch)))),
  numeric("At most", (batch) => money(batch.total_cost_max)),
  column("Requests", ({ endpoint, errors }) => [endpoint, errors && small(errors.data[0].message)]),
  column("Ends", (batch) => (OPEN.includes(batch.status) ? distance(iso(batch.expires_at)) : "ended")),
  column("Batch", ({ id, metadata }) => [id, metadata && small(Object.entries(metadata).map((pair) => pair.join(" ")).join(", "))]),
];
