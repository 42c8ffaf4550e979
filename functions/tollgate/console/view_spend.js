/** Cost, tokens, requests and errors of any days, by one or two groups, as chart and table. */

import { baseUrl, get, getAll, saveCsv, session } from "./api.js";
import { stackedDays, swatch } from "./chart.js";
import { h, p, quiet } from "./dom.js";
import { count, money, percent, usd } from "./format.js";
import { copyable, empty, field, figures, filled, limitBar, panel, saver } from "./parts.js";
import { choices, sorted, sortedTable } from "./table.js";

const SHOWN = 7;
const OTHERS = "all others";
const DAY_MS = 86_400_000;
const DATE = /^\d{4}-\d{2}-\d{2}$/;
const SUMMED = ["usage", "requests", "failed", "prompt_tokens", "cached_tokens", "completion_tokens", "reasoning_tokens"];
const RANGES = [["today", "Today"], ["7d", "7 days"], ["30d", "30 days"], ["month", "This month"], ["last", "Last month"]];
const label = (title, none) => ({ title, none, of: (row, name) => row.labels[name] ?? none });
const GROUPS = {
  model: { title: "Model", none: "not served", of: (row) => row.model ?? "not served" },
  key: { title: "Key", of: (row) => row.key_name || row.key_id },
  team: label("Team", "no team"),
  member: label("Member", "no member"),
  environment: label("Environment", "not stated"),
  source: label("Source", "api"),
  provider: { title: "Provider", none: "not served", of: (row) => row.provider_name ?? "not served" },
  day: { title: "Day", of: (row) => row.date },
};
const METRICS = {
  cost: { title: "Spend", of: (sum) => sum.usage, text: usd },
  tokens: { title: "Tokens", of: (sum) => sum.prompt_tokens + sum.completion_tokens, text: count },
  requests: { title: "Requests", of: (sum) => sum.requests, text: count },
  errors: { title: "Errors", of: (sum) => sum.failed, text: count },
};

/** Return the view of the days, groups and figure that the address names. */
export async function render({ params, signal, go }) {
  const range = readRange(params);
  const chosen = (name, of, otherwise) => (Object.hasOwn(of, params.get(name)) ? params.get(name) : otherwise);
  const by = chosen("by", GROUPS, "model") === "day" ? "model" : chosen("by", GROUPS, "model");
  const second = chosen("then", GROUPS, "") === by ? "" : chosen("then", GROUPS, "");
  const show = chosen("show", METRICS, "cost");
  const state = { ...range.address, by, then: second, show: show === "cost" ? "" : show };
  const [activity, pairs, workspace] = await Promise.all([
    sums(range.query, by, signal),
    second && second !== "day" ? getAll("activity", { ...range.query, by: [by, second] }, signal) : null,
    get("workspace", {}, signal).catch(() => null),
  ]);
  const view = { by, second, range, metric: METRICS[show], show };
  const rows = activity.data;
  // Before the first request, show what to do instead of figures that are all 0.
  if (!rows.length) return [controls(state, range, go), await nothing(activity, range, signal)];
  const head = [controls(state, range, go), summary(activity, view, workspace?.data.budget), warnings(activity)];
  const names = legend(activity, view);
  const parts = perDay(activity.daily ?? rows, view, names);
  const budget = show === "cost" && range.month ? workspace?.data.budget : null;
  return [
    head,
    panel(`${view.metric.title} a day by ${GROUPS[by].title.toLowerCase()}`,
      stackedDays(parts, names, {
        label: `${view.metric.title} of ${range.title} a day; the table below has the figures`,
        mark: budget && budget / range.days.length,
        text: view.metric.text,
        // The middle of the axis must be a whole number as well.
        least: show === "cost" ? 0 : 2,
        open: session.workspace ? null : (day) => go("generations", { since: day, until: day }),
      }),
      breakdown(rank((pairs ?? activity).data, view), view, names, activity.total),
      saver("Save as CSV", () => saveCsv("activity", { ...range.query, by: [by, second].filter(Boolean) }, `spend-${range.title.replaceAll(" ", "-")}.csv`))),
  ];
}

/** Return the days that the address names: a range, a month, or a first and a last day. */
function readRange(params) {
  const today = dayOf(Date.now());
  const [since, until] = [params.get("since"), params.get("until")];
  if (DATE.test(since) && DATE.test(until) && since <= until) {
    return daysBetween(since, until, { title: since === until ? since : `${since} to ${until}`, address: { since, until } });
  }
  const month = params.get("month");
  if (/^\d{4}-(0[1-9]|1[0-2])$/.test(month)) return monthOf(month, { address: { month } });
  const name = RANGES.some(([key]) => key === params.get("range")) ? params.get("range") : "month";
  const address = { range: name };
  if (name === "month") return monthOf(today.slice(0, 7), { name, address });
  if (name === "last") return monthOf(dayOf(Date.parse(`${today.slice(0, 7)}-01`) - DAY_MS).slice(0, 7), { name, address });
  const first = name === "today" ? today : dayOf(Date.now() - (parseInt(name, 10) - 1) * DAY_MS);
  return daysBetween(first, today, { name, address, title: name === "today" ? today : `${first} to ${today}` });
}

function monthOf(month, more) {
  const [year, number] = month.split("-").map(Number);
  const last = new Date(Date.UTC(year, number, 0)).getUTCDate();
  return daysBetween(`${month}-01`, `${month}-${last}`, { ...more, month, title: month });
}

function daysBetween(first, last, more) {
  const [begin, end] = [Date.parse(first), Date.parse(last)];
  const days = Array.from({ length: Math.round((end - begin) / DAY_MS) + 1 }, (_, index) => dayOf(begin + index * DAY_MS));
  return { ...more, days, query: { since: `${first}T00:00:00Z`, until: new Date(end + DAY_MS).toISOString() } };
}

const dayOf = (ms) => new Date(ms).toISOString().slice(0, 10);

function controls(state, range, go) {
  const { since, until, month, range: name, ...rest } = state;
  const address = (key) => `#/spend?${new URLSearchParams(Object.entries({ range: key, ...rest }).filter(([, value]) => value))}`;
  const groups = Object.entries(GROUPS).map(([key, { title }]) => [key, title]);
  const days = { since: range.days[0], until: range.days.at(-1) };
  const change = ({ target }) => {
    const { since: first, until: last, ...values } = filled(target.form);
    const isRange = first === days.since && last === days.until;
    if (!isRange && target.name === "since" && last < first) return go("spend", { ...values, since: first, until: first });
    go("spend", isRange ? { ...state, ...values, then: values.then ?? "" } : { ...values, since: first, until: last });
  };
  return h("div", { class: "explorer" },
    choices("Days", RANGES, range.name, address),
    h("form", { class: "filters", onchange: change, onsubmit: (event) => event.preventDefault() },
      field({ name: "since", label: "From (UTC)", type: "date", required: true, value: days.since }),
      field({ name: "until", label: "To (inclusive)", type: "date", required: true, value: days.until }),
      field({ name: "by", label: "By", value: state.by, options: groups.filter(([key]) => key !== "day") }),
      field({ name: "then", label: "Then by", value: state.then, options: [["", "nothing"], ...groups.filter(([key]) => key !== state.by)] }),
      field({ name: "show", label: "Show", value: state.show || "cost", options: Object.entries(METRICS).map(([key, { title }]) => [key, title]) })));
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

function summary({ data: rows, total }, { range }, budget) {
  const now = new Date();
  const current = range.month === now.toISOString().slice(0, 7);
  const begun = current ? (now - new Date(`${range.month}-01`)) / DAY_MS : range.days.length;
  const forecast = current && begun > 0.5 ? (total / begun) * range.days.length : null;
  const sum = sumOf(rows);
  return [
    figures(
      [current ? "Month so far" : "Spend", money(total), range.title],
      forecast !== null && ["Forecast", money(forecast), "at this pace, to the month's end"],
      ["Requests", count(sum.requests), `${count(sum.failed)} failed, ${percent(sum.failed, sum.requests)}`],
      ["A request", sum.requests > sum.failed ? money(total / (sum.requests - sum.failed)) : "–", "on average"],
      ["Tokens in", count(sum.prompt_tokens), `${percent(sum.cached_tokens, sum.prompt_tokens)} from the cache`],
      ["Tokens out", count(sum.completion_tokens), sum.reasoning_tokens > 0 && `${count(sum.reasoning_tokens)} of reasoning`],
    ),
    range.month && budget && h("div", { class: "card" }, limitBar("Budget of the month", { limit: budget, spent: total, left: Math.max(0, budget - total) })),
  ];
}

function warnings({ partial_days: partial, missing_days: missing }) {
  const past = missing.length ? `No figures are available for ${missing.length} days: their records have expired.` : "";
  const counted = partial.length ? `Not every record of ${partial.join(", ")} is counted yet.` : "";
  return (past || counted) && quiet(`${counted} ${past}`);
}

async function nothing({ missing_days: missing }, { title, days }, signal) {
  if (missing.length === days.length) return empty(`The records of ${title} have expired.`, p("Choose later days."));
  if (session.workspace) return empty(`Nothing was spent in ${title}.`, p("Choose other days."));
  const { data: models } = await get("models", { output_modalities: "text" }, signal).catch(() => ({ data: [] }));
  const { id: model } = models.find(({ id }) => id === "test/echo") ?? models[0] ?? { id: "MODEL" };
  const request = `curl ${baseUrl}/chat/completions -H "authorization: Bearer $TOLLGATE_KEY" -H 'content-type: application/json' -d '{"model": "${model}", "messages": [{"role": "user", "content": "Hello"}]}'`;
  return empty(`Nothing was spent in ${title}.`, p("Choose other days, or send a first request from the ", h("a", { href: "#/playground" }, "playground"), " or a terminal:"), copyable(request));
}

/** Return the names that have a colour of their own, the largest first. */
function legend({ data, daily }, { by, metric }) {
  const ranked = rank(data, { by, metric });
  const names = daily ? [] : ranked.slice(0, SHOWN).map(({ name }) => name);
  return ranked.length > names.length ? [...names, OTHERS] : names;
}

function breakdown(sums, view, names, total) {
  const { by, second, range, metric, show } = view;
  const group = GROUPS[by];
  const color = (name) => (names.includes(name) ? names.indexOf(name) : names.length - 1);
  const filter = (key, name) => {
    if (key === "day") return { since: name, until: name };
    return key === "environment" || key === "source" ? { label: `${key}:${name}` } : { [key]: name };
  };
  const link = ({ name, other }) => {
    // The list cannot select records without a group, or records of another workspace.
    if (session.workspace || name === group.none || (second && other === GROUPS[second].none)) return null;
    const query = { since: range.days[0], until: range.days.at(-1), ...filter(by, name), ...(second && filter(second, other)), ...(show === "errors" && { outcome: "error" }) };
    return `#/generations?${new URLSearchParams(query)}`;
  };
  const number = (title, of, cell, more) => sorted(title, of, (sum) => cell(of(sum)), { number: true, ...more });
  const figures = [
    number("Spend", ({ usage }) => usage, money),
    number("Share", ({ usage }) => usage, (usage) => percent(usage, total)),
    number("Requests", ({ requests }) => requests, count),
    number("Errors", ({ failed }) => failed, count),
    number("Error rate", ({ failed, requests }) => failed / requests, (share) => percent(share, 1), { away: show !== "errors" }),
    number("Tokens in", (sum) => sum.prompt_tokens, count),
    number("From cache", (sum) => sum.cached_tokens, count, { away: true }),
    number("Tokens out", (sum) => sum.completion_tokens, count),
    number("Reasoning", (sum) => sum.reasoning_tokens, count, { away: true }),
    number("A request", ({ usage, requests, failed }) => (requests > failed ? usage / (requests - failed) : null), money, { away: true }),
  ];
  const main = metric.title === "Tokens" ? "Tokens in" : metric.title;
  figures.sort((one, other) => (other.title === main) - (one.title === main));
  return sortedTable(`spend.${show}`, `${metric.title} by ${group.title.toLowerCase()}`, [
    sorted(group.title, ({ name }) => name, ({ name }) => [swatch(color(name)), name]),
    ...(second ? [sorted(GROUPS[second].title, ({ other }) => other, ({ other }) => h("span", { class: second === "day" && "number" }, other))] : []),
    ...figures,
  ], sums, { by: main, link });
}

const sumOf = (rows) => Object.fromEntries(SUMMED.map((name) => [name, rows.reduce((sum, row) => sum + row[name], 0)]));

function rank(rows, { by, second, metric }) {
  const found = new Map();
  for (const row of rows) {
    const name = GROUPS[by].of(row, by);
    const other = second ? GROUPS[second].of(row, second) : "";
    const key = JSON.stringify([name, other]);
    const sum = found.get(key) ?? { name, other, ...Object.fromEntries(SUMMED.map((each) => [each, 0])) };
    for (const each of SUMMED) sum[each] += row[each];
    found.set(key, sum);
  }
  return [...found.values()].sort((one, other) => metric.of(other) - metric.of(one) || other.requests - one.requests);
}

function perDay(rows, { by, range, metric }, names) {
  const byDay = new Map(range.days.map((day) => [day, new Map()]));
  for (const row of rows) {
    const parts = byDay.get(row.date);
    const named = GROUPS[by].of(row, by);
    const name = names.includes(named) ? named : OTHERS;
    parts?.set(name, (parts.get(name) ?? 0) + metric.of(row));
  }
  return [...byDay].map(([day, parts]) => ({ day, parts }));
}
