/** The settings of a key as fields: for a new key, and to change one, with what a change does. */

import { getAll, send, session } from "./api.js";
import { h, quiet, show } from "./dom.js";
import { usd } from "./format.js";
import { dialog, field } from "./parts.js";
import { has, MANAGERS } from "./roles.js";

const PERIODS = { day: "Day", week: "Week", month: "Month", total: "Total" };
const DAYS = ["1", "7", "30", "90"];
const numeric = { type: "number", min: "1", step: "1", write: Number };
const amount = { type: "number", min: "0", step: "any" };
const list = (text) => text.split(",").map((each) => each.trim()).filter(Boolean);

/** Return every setting that a key has: how a form shows it, reads it from a key and sends it. */
function settings({ teams, members }) {
  const chosen = (values, none) => [["", none], ...values.map((value) => [value, value])];
  return [
    { name: "name", label: "Name", required: true, maxlength: "100" },
    teams && { name: "team_id", label: "Team", options: chosen(teams, "none"), hint: "Its limits also apply." },
    members && { name: "member_id", label: "Member", options: chosen(members, "nobody"), hint: "Their limits also apply." },
    { name: "environment", label: "Environment", maxlength: "64", placeholder: "production", of: ({ labels }) => labels.environment, into: (body, value) => { body.labels = { environment: value }; } },
    { name: "models", label: "Models", placeholder: "openai/*, test/echo", hint: "Names, separated by commas; * matches any text. Leave empty for all.", of: ({ models }) => models?.join(", "), write: list },
    { name: "expires_at", label: "Expires (UTC)", type: "date", hint: "At the end of this day. Leave empty for never.", of: ({ expires_at: at }) => at?.slice(0, 10), write: (day) => `${day}T23:59:59Z` },
    has(MANAGERS) && { name: "tier", label: "Tier", maxlength: "64", placeholder: "none", hint: "A tier of the routing file." },
    has(MANAGERS) && { name: "requests_per_minute", label: "Requests per minute", ...numeric, needed: true },
    has(MANAGERS) && { name: "burst", label: "Burst of requests", ...numeric, needed: true, hint: "After a pause." },
    has(MANAGERS) && { name: "tokens_per_minute", label: "Tokens per minute", ...numeric },
    has(MANAGERS) && { name: "concurrency", label: "Concurrent requests", ...numeric },
    has(MANAGERS) && { name: "content_days", label: "Days to store prompts and answers", options: chosen(DAYS, "not stored"), write: Number },
    has(MANAGERS) && { name: "response_days", label: "Days to store responses", options: chosen(DAYS, "as the workspace"), write: Number },
    has(MANAGERS) && { name: "answer_cache", label: "Reused answers", options: chosen(["key", "workspace"], "none"), hint: "On routes with a cache: by this key alone, or by all keys that share." },
    has(MANAGERS) && { name: "allowed_ips", label: "Addresses", placeholder: "10.0.0.0/8", hint: "Networks from which the key may be used. Leave empty for all." },
    has(MANAGERS) && { name: "keep_address", label: "Stored address", options: chosen(["last"], "none"), hint: "Whether the network address of the last use is stored. It is personal data." },
    has(MANAGERS) && { name: "max_cost", label: "Cost of one request, $", ...amount },
    has(MANAGERS) && { name: "session_budget", label: "Cost of one session, $", ...amount },
    has(MANAGERS) && { name: "session_requests", label: "Requests of one session", ...numeric },
    has(MANAGERS) && { name: "guardrails", label: "Guardrails", placeholder: "secrets, harm", hint: "Additional guardrails that judge this key's requests." },
    has(MANAGERS) && { name: "quotas", label: "Quotas", placeholder: "requests/hour=500, usd/day=5@anthropic/*", hint: "Requests, tokens or usd per second, minute, hour, day, week or month, of all models or of some." },
    has(MANAGERS) && { name: "warn_at", label: "Warn at, % of a limit", ...numeric, max: "100" },
    ...Object.entries(PERIODS).map(([period, label]) => ({
      name: `limit_${period}`, label, isLimit: true, type: "number", min: "0", step: "any", write: Number,
      of: ({ limits }) => limits[period],
      into: (body, value) => { body.limits = { ...body.limits, [period]: value }; },
    })),
  ].filter(Boolean);
}

/** Return the names that a dialog offers; lists that the role may not read are left out. */
async function choices() {
  const ids = (path) => getAll(path).then(({ data }) => data.map(({ id }) => id), () => null);
  const [teams, members] = await Promise.all([ids("teams"), has(MANAGERS) ? ids("members") : null]);
  return { teams, members };
}

const before = (setting, key) => String((setting.of ? setting.of(key) : key[setting.name]) ?? "");

/** Return the body that carries the settings whose value differs from the one of `key`. */
function bodyOf(all, values, key) {
  const body = {};
  for (const setting of all) {
    const text = values[setting.name] ?? "";
    if (text === (key ? before(setting, key) : "")) continue;
    const value = text === "" ? null : (setting.write ?? String)(text);
    if (setting.into) setting.into(body, value);
    else body[setting.name] = value;
  }
  return body;
}

const shown = (all, key) => {
  const one = ({ of, into, write, needed, isLimit, ...rest }) =>
    field({ ...rest, value: key ? before({ of, ...rest }, key) : "", required: rest.required || (needed && Boolean(key)) });
  return [
    h("div", { class: "pairs" }, all.filter(({ isLimit }) => !isLimit).map(one)),
    h("fieldset", {}, h("legend", {}, "Limits, $ (empty for none)"), all.filter(({ isLimit }) => isLimit).map(one)),
  ];
};

/** Open the dialog of a new key; `done(reply)` returns what is shown once it is made. */
export async function createKey(done) {
  const all = settings(await choices());
  const roles = ["inference", "read", "management"].map((role) => [role, role]);
  dialog("Create a key", [
    session.key.role !== "developer" && field({ name: "role", label: "Role", options: roles, value: "inference" }),
    shown(all, null),
  ], {
    action: "Create",
    save: async ({ role = "inference", ...values }) => done(await send("POST", "keys", { role, ...bodyOf(all, values, null) })),
  });
}

/** Open the dialog that changes a key, and lists each change and its effect before it is saved. */
export async function changeKey(key, refresh) {
  const all = settings(await choices());
  const changes = h("div", { role: "status" }, quiet("No changes yet."));
  const review = ({ target }) => {
    const values = Object.fromEntries(new FormData(target.form));
    const changed = all.filter((setting) => (values[setting.name] ?? "").trim() !== before(setting, key));
    const line = (setting) => {
      const text = (values[setting.name] ?? "").trim();
      const label = setting.isLimit ? `Limit of the ${setting.label.toLowerCase()}, $` : setting.label;
      return h("li", {}, `${label}: `, h("del", {}, before(setting, key) || "none"), " ", h("ins", {}, text || "none"), effect(setting, text, key));
    };
    show(changes, changed.length ? h("ul", { class: "changes" }, changed.map(line)) : quiet("No changes yet."));
  };
  dialog(`Change ${key.name}`, h("div", { oninput: review }, shown(all, key), h("h3", {}, "What changes"), changes), {
    save: async (values) => {
      const body = bodyOf(all, values, key);
      if (Object.keys(body).length) await send("PATCH", `keys/${encodeURIComponent(key.id)}`, body);
      refresh();
    },
  });
}

/** Return what a new value does at once, where that is not plain. */
function effect({ name, isLimit }, text, key) {
  const note = (words) => h("small", {}, words);
  if (isLimit && text) {
    const period = name.slice("limit_".length);
    const spent = key.limits_usage[period] ?? (period === "total" ? key.usage : null);
    if (spent === null) return note("Earlier spending counts from the next request on.");
    return spent >= Number(text) ? note(`${usd(spent)} are spent already: the key is refused at once.`) : note(`${usd(spent)} of it are spent.`);
  }
  if (name === "expires_at" && text && Date.parse(`${text}T23:59:59Z`) < Date.now()) return note("This day is over: the key is refused at once.");
  if (name === "models" && text) return note("Requests to other models are refused within five seconds.");
  if (name === "content_days") return note(text ? `Prompts and answers of new requests are stored for ${text} days.` : "New requests store no text; stored text stays until it expires.");
  return null;
}
