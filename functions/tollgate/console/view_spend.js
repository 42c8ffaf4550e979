/** The cost of a month by day, grouped as the address says. */

import { get, getAll, saveCsv } from "./api.js";
import { stackedDays, swatch } from "./chart.js";
import { h, p, quiet } from "./dom.js";
import { count, money, percent, usd } from "./format.js";
import { column, empty, field, figures, filters, limitBar, numeric, panel, saver, table } from "./parts.js";

const SHOWN = 7;
const OTHERS = "all others";
const SUMMED = ["usage", "requests", "prompt_tokens", "completion_tokens"];
const GROUPS = {
  model: { title: "Model", of: (row) => row.model ?? "not served" },
  key: { title: "Key", of: (row) => row.key_name || row.key_id },
  team: { title: "Team", of: (row) => row.labels.team ?? "no team", isLabel: true },
  member: { title: "Member", of: (row) => row.labels.member ?? "no member", isLabel: true },
  environment: { title: "Environment", of: (row) => row.labels.environment ?? "not stated", isLabel: true },
  provider: { title: "Provider", of: (row) => row.provider_name ?? "not served" },
};

/** Return the view of a month (`month=2026-11`), grouped (`by=model`). */
export async function render({ params, signal, go }) {
  const now = new Date();
  const month = /^\d{4}-(0[1-9]|1[0-2])$/.test(params.get("month")) ? params.get("month") : now.toISOString().slice(0, 7);
  const by = Object.hasOwn(GROUPS, params.get("by")) ? params.get("by") : "model";
  const { days, ...query } = period(month);
  const [activity, workspace] = await Promise.all([sums(query, by, signal), get("workspace", {}, signal).catch(() => null)]);
  const group = GROUPS[by];
  const rows = activity.data;
  const ranked = rank(rows, group.of);
  const names = activity.daily ? [] : ranked.slice(0, SHOWN).map(({ name }) => name);
  if (ranked.length > names.length) names.push(OTHERS);
  const parts = perDay(activity.daily ?? rows, days, group.of, names);
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
      breakdown(ranked, names, by, activity.total, days),
      saver("Save as CSV", () => saveCsv("activity", query, `spend-${month}.csv`)),
    ),
  ];
}

/** Return sums by day, or over all days if the rows are too many, with `daily` sums. */
async function sums(query, by, signal) {
  try {
    return await getAll("activity", { ...query, by: ["day", by] }, signal);
  } catch (refusal) {
    if (refusal.status !== 400) throw refusal;
    const [all, { data: daily }] = await Promise.all([by, "day"].map((by) => getAll("activity", { ...query, by }, signal)));
    return { ...all, daily };
  }
}

function summary(total, month, days, now, budget, rows) {
  const current = month === now.toISOString().slice(0, 7);
  const begun = current ? (now - new Date(`${month}-01`)) / 86_400_000 : days.length;
  const forecast = current && begun > 0.5 ? (total / begun) * days.length : null;
  const [requests, failed] = ["requests", "failed"].map((name) => rows.reduce((sum, row) => sum + row[name], 0));
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

function breakdown(ranked, names, by, total, days) {
  const group = GROUPS[by];
  const link = ({ name }) => {
    const known = !/^(not served|no team|no member|not stated)$/.test(name);
    const query = new URLSearchParams({ since: days[0], until: days.at(-1), ...(group.isLabel ? { label: `${by}:${name}` } : { [by]: name }) });
    const color = names.indexOf(name);
    return [swatch(color < 0 ? names.length - 1 : color), known ? h("a", { href: `#/generations?${query}` }, name) : name];
  };
  return table(`Spend by ${group.title.toLowerCase()}`, [
    column(group.title, link),
    numeric("Spend", ({ usage }) => money(usage)),
    numeric("Share", ({ usage }) => percent(usage, total)),
    numeric("Requests", ({ requests }) => count(requests)),
    numeric("Tokens in", (each) => count(each.prompt_tokens)),
    numeric("Tokens out", (each) => count(each.completion_tokens)),
  ], ranked);
}

function rank(rows, of) {
  const sums = new Map();
  for (const row of rows) {
    const name = of(row);
    const sum = sums.get(name) ?? { name, ...Object.fromEntries(SUMMED.map((each) => [each, 0])) };
    for (const each of SUMMED) sum[each] += row[each];
    sums.set(name, sum);
  }
  return [...sums.values()].sort((one, other) => other.usage - one.usage || other.requests - one.requests);
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

function period(month) {
  const [year, number] = month.split("-").map(Number);
  const last = new Date(Date.UTC(year, number, 0)).getUTCDate();
  const days = Array.from({ length: last }, (_, index) => `${month}-${String(index + 1).padStart(2, "0")}`);
  return { since: `${days[0]}T00:00:00Z`, until: new Date(Date.UTC(year, number)).toISOString(), days };
}
