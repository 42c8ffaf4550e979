/** What a month has cost, by day and by whatever one asks for. */

import { get, getAll, saveCsv } from "./api.js";
import { stackedDays, swatch } from "./chart.js";
import { h, p, quiet } from "./dom.js";
import { count, money, percent, usd } from "./format.js";
import { column, empty, field, figures, filters, limitBar, numeric, panel, saver, table } from "./parts.js";

const SHOWN = 7;
const OTHERS = "all others";
const GROUPS = {
  model: { title: "Model", of: (row) => row.model ?? "not served", filter: "model" },
  key: { title: "Key", of: (row) => row.key_name || row.key_id, filter: "key" },
  team: { title: "Team", of: (row) => row.labels.team ?? "no team", filter: "team" },
  member: { title: "Member", of: (row) => row.labels.member ?? "no member", filter: "member" },
  environment: { title: "Environment", of: (row) => row.labels.environment ?? "not stated", filter: "environment" },
  provider: { title: "Provider", of: (row) => row.provider_name ?? "not served", filter: "provider" },
};

/** Return the view of a month (`month=2026-11`), grouped (`by=model`). */
export async function render({ params, signal, go }) {
  const now = new Date();
  const month = /^\d{4}-(0[1-9]|1[0-2])$/.test(params.get("month")) ? params.get("month") : now.toISOString().slice(0, 7);
  const by = Object.hasOwn(GROUPS, params.get("by")) ? params.get("by") : "model";
  const { since, until, days } = period(month);
  const query = { since, until };
  const [activity, workspace] = await Promise.all([sums(query, by, signal), get("workspace", {}, signal).catch(() => null)]);
  const group = GROUPS[by];
  const rows = activity.data;
  const ranked = rank(rows, group.of);
  const names = activity.daily ? [] : ranked.slice(0, SHOWN).map(({ name }) => name);
  if (ranked.length > names.length) names.push(OTHERS);
  const parts = activity.daily ? perDay(activity.daily, days, () => OTHERS, names) : perDay(rows, days, group.of, names);
  const budget = workspace?.data.budget;
  const controls = filters(go, "spend", [
    field({ name: "month", label: "Month (UTC)", type: "month", value: month, pattern: "\\d{4}-\\d{2}" }),
    field({ name: "by", label: "By", value: by, options: Object.entries(GROUPS).map(([key, { title }]) => [key, title]) }),
  ]);
  const head = [controls, summary(activity.total, month, days, now, budget, rows), warnings(activity)];
  if (!rows.length) {
    return [head, empty(`Nothing was spent in ${month}.`, p("Choose another month, or send a first request from the ", h("a", { href: "#/playground" }, "playground"), "."))];
  }
  const open = (day) => go("generations", { since: day, until: day });
  return [
    head,
    panel(`Spend a day by ${group.title.toLowerCase()}`, stackedDays(parts, names, {
        label: `Spend of ${month} a day, ${usd(activity.total)} in all; the table below has the figures`,
        mark: budget && budget / days.length,
        open,
      }),
      breakdown(ranked, names, group, activity.total, month),
      saver("Save as CSV", () => saveCsv("activity", query, `spend-${month}.csv`)),
    ),
  ];
}

/** Return the sums of each day; where these are too many, those of all days, and of each day alone as `daily`. */
async function sums(query, by, signal) {
  try {
    return await getAll("activity", { ...query, by: ["day", by] }, signal);
  } catch (refusal) {
    if (refusal.status !== 400) throw refusal;
    const [all, { data: daily }] = await Promise.all([by, "day"].map((one) => getAll("activity", { ...query, by: one }, signal)));
    return { ...all, daily };
  }
}

function summary(total, month, days, now, budget, rows) {
  const current = month === now.toISOString().slice(0, 7);
  const begun = current ? (now - new Date(`${month}-01T00:00:00Z`)) / 86_400_000 : days.length;
  const forecast = current && begun > 0.5 ? (total / begun) * days.length : null;
  const requests = rows.reduce((sum, row) => sum + row.requests, 0);
  const failed = rows.reduce((sum, row) => sum + row.failed, 0);
  return [
    figures(
      [current ? "Month so far" : "Month", money(total)],
      forecast !== null && ["Forecast", money(forecast), "at this pace, to the month's end"],
      ["Requests", count(requests), `${count(failed)} failed`],
      ["A request", requests > failed ? money(total / (requests - failed)) : "–", "on average"],
    ),
    budget && h("div", { class: "card" }, limitBar("Budget of the month", { limit: budget, spent: total, left: Math.max(0, budget - total) })),
  ];
}

function warnings({ partial_days: partial, missing_days: missing }) {
  const past = missing.length ? `Nothing is known any more of ${missing.length} days: their records have expired.` : "";
  const counted = partial.length ? `Not every record of ${partial.join(", ")} is counted yet.` : "";
  return (past || counted) && quiet(`${counted} ${past}`);
}

function breakdown(ranked, names, group, total, month) {
  const link = ({ name }) => {
    const label = { team: true, member: true, environment: true }[group.filter];
    const known = !["not served", "no team", "no member", "not stated"].includes(name);
    const { since, until } = bounds(month);
    const query = new URLSearchParams({ since, until, ...(label ? { label: `${group.filter}:${name}` } : { [group.filter]: name }) });
    const color = names.indexOf(name);
    return [swatch(color < 0 ? names.length - 1 : color), known ? h("a", { href: `#/generations?${query}` }, name) : name];
  };
  return table(`Spend by ${group.title.toLowerCase()}`, [
    column(group.title, link),
    numeric("Spend", ({ cost }) => money(cost)),
    numeric("Share", ({ cost }) => percent(cost, total)),
    numeric("Requests", ({ requests }) => count(requests)),
    numeric("Tokens in", ({ input }) => count(input)),
    numeric("Tokens out", ({ output }) => count(output)),
  ], ranked);
}

function rank(rows, of) {
  const sums = new Map();
  for (const row of rows) {
    const name = of(row);
    const sum = sums.get(name) ?? { name, cost: 0, requests: 0, input: 0, output: 0 };
    sum.cost += row.usage;
    sum.requests += row.requests;
    sum.input += row.prompt_tokens;
    sum.output += row.completion_tokens;
    sums.set(name, sum);
  }
  return [...sums.values()].sort((one, other) => other.cost - one.cost || other.requests - one.requests);
}

function perDay(rows, days, of, names) {
  const byDay = new Map(days.map((day) => [day, new Map()]));
  for (const row of rows) {
    const parts = byDay.get(row.date);
    const name = names.includes(of(row)) ? of(row) : OTHERS;
    parts?.set(name, (parts.get(name) ?? 0) + row.usage);
  }
  return [...byDay].map(([day, parts]) => ({ day, parts }));
}

function bounds(month) {
  const [year, number] = month.split("-").map(Number);
  const last = new Date(Date.UTC(year, number, 0)).getUTCDate();
  return { since: `${month}-01`, until: `${month}-${last}`, last };
}

function period(month) {
  const { last } = bounds(month);
  const days = Array.from({ length: last }, (_, index) => `${month}-${String(index + 1).padStart(2, "0")}`);
  return { since: `${days[0]}T00:00:00Z`, until: new Date(Date.parse(`${days.at(-1)}T00:00:00Z`) + 86_400_000).toISOString(), days };
}
