/** Keys with their limits: spent, held and left. Keys are created, rotated, disabled and deleted here. */

import { get, getAll, send, session } from "./api.js";
import { add, button, code, h, p, plain, quiet, show, small } from "./dom.js";
import { count, distance, moment, money, uri } from "./format.js";
import { changeKey, createKey } from "./key_dialog.js";
import { copyable, dialog, empty, facts, field, limitBar, panel, problem } from "./parts.js";
import { EVERYBODY, has, KEEPERS_OF_KEYS, MANAGERS } from "./roles.js";

const SHOWN_MAX = 200;
const PERIODS = { day: "Day", week: "Week", month: "Month", total: "Total" };

/** Return the view of all keys; a key that may not list them sees itself. */
export async function render({ params, signal, refresh }) {
  const mayChange = has(KEEPERS_OF_KEYS);
  if (session.key.role === "inference") {
    const { data } = await get("key", {}, signal);
    const above = data.levels.map((level) => panel(`Limits of the ${level.level} ${level.display_name ?? level.id}`, limitBars(level), quiet(rate(level) || "These limits apply to this key as well.")));
    return [h("div", { class: "cards" }, card(data, {})), above];
  }
  const { data: keys } = await getAll("keys", {}, signal);
  const text = (params.get("find") ?? "").toLowerCase();
  const list = h("div", { class: "cards" });
  const narrow = (words) => {
    const found = keys.filter((key) => `${key.name} ${key.id} ${key.role} ${Object.values(key.labels).join(" ")}`.toLowerCase().includes(words));
    const some = found.slice(0, SHOWN_MAX);
    show(list, found.length > some.length && quiet(`The first ${SHOWN_MAX} of ${count(found.length)} keys are shown.`));
    add(list, found.length ? some.map((key) => card(key, { mayChange, refresh })) : keys.length ? empty("No keys match.", p("Change the filter above, or create a key.")) : empty("No keys yet."));
  };
  const oninput = ({ target }) => {
    // The address keeps the filter when a changed key reloads the view.
    history.replaceState(null, "", `#/keys?find=${uri(target.value)}`);
    narrow(target.value.toLowerCase());
  };
  const find = field({ name: "find", label: "Find by name, label or role", type: "search", value: text, oninput });
  narrow(text);
  return [
    h("div", { class: "bar" }, find, mayChange && button("Create a key …", () => createKey((made) => secretShown(made, refresh)))),
    list,
  ];
}

/** Return the bars of the limits of a key, a team or a member. */
export const limitBars = (of) =>
  Object.keys(PERIODS).filter((period) => period in of.limits).map((period) =>
    limitBar(PERIODS[period], {
      limit: of.limits[period],
      spent: of.limits_usage[period],
      held: toNano(of.limits[period] - of.limits_usage[period] - of.limits_remaining[period]),
      left: of.limits_remaining[period],
      resets: of.limits_reset_at[period],
    }));

/** Return an amount without rounding errors of floats below a nano-dollar. */
const toNano = (amount) => Math.max(0, Math.round(amount * 1e9) / 1e9);

function quota({ unit, per, models, limit, used }) {
  const show = unit === "usd" ? money : count;
  return p(`${show(used)} of ${show(limit)} ${unit === "usd" ? "" : `${unit} `}per ${per}${models ? ` of ${models}` : ""}`);
}

function card(key, { mayChange, refresh }) {
  const state = key.disabled ? "disabled" : key.expires_at && new Date(key.expires_at) < new Date() ? "expired" : "active";
  const isOfSessions = key.name.startsWith("session:");
  const bars = limitBars(key);
  const act = (label, work) => plain(label, work, { "aria-label": `${label} ${key.name}` });
  return h(
    "article",
    { class: "card", "aria-label": `Key ${key.name}` },
    h("h2", {}, key.name, h("span", { class: `tag ${state}` }, state), h("span", { class: "tag" }, key.role)),
    facts(
      ["Secret", code(key.label)],
      ["Id", code(key.id)],
      ["Team", key.team_id ?? key.labels.team],
      ["Member", key.member_id ?? key.labels.member],
      ["Environment", key.labels.environment],
      ["Models", key.models && key.models.join(", ")],
      ["Tier", key.tier],
      ["Rate", rate(key)],
      ["One request", key.max_cost && [money(key.max_cost), " at most"]],
      ["Quotas", key.quotas_usage.length > 0 && key.quotas_usage.map(quota)],
      ["Reused answers", key.answer_cache && (key.answer_cache === "key" ? "of this key" : "of the workspace")],
      ["Guardrails", key.guardrails],
      ["Prompt policy", key.prompt_policy],
      ["Warns from", key.warn_at && `${key.warn_at} % of a limit`],
      ["One session", (key.session_budget || key.session_requests) && [key.session_budget && money(key.session_budget), key.session_budget && key.session_requests && ", ", key.session_requests && `${count(key.session_requests)} requests`]],
      ["Spent in all", [money(key.usage), key.held > 0 && small(money(key.held), " held")]],
      ["Last used", key.last_used_at ? h("span", { title: key.last_used_at }, distance(key.last_used_at)) : "never"],
      ["Last address", key.last_address],
      ["Expires", key.expires_at && moment(key.expires_at)],
      ["Old secret", key.old_secret && [key.old_secret.label, " works until ", moment(key.old_secret.expires_at)]],
    ),
    bars.length ? bars : quiet("No limit in dollars."),
    h("div", { class: "buttons" },
      has(EVERYBODY) && !session.workspace && h("a", { class: "button", href: `#/generations?key=${uri(key.id)}`, "aria-label": `Generations of ${key.name}` }, "Generations"),
      mayChange && !isOfSessions && [
        has(MANAGERS) && act("Change …", () => changeKey(key, refresh)),
        !session.workspace && act("Rotate …", () => rotate(key, refresh)),
        (has(MANAGERS) || !key.disabled) && act(key.disabled ? "Enable" : "Disable", () => change(key, { disabled: !key.disabled }, refresh)),
        !session.workspace && act("Delete …", () => remove("keys", key, "It is refused permanently. Its records and spending stay.", refresh)),
      ]),
  );
}

/** Return the rates of a key, a team or a member. */
export const rate = (key) =>
  [
    key.requests_per_minute && `${count(key.requests_per_minute)} requests/min`,
    key.tokens_per_minute && `${count(key.tokens_per_minute)} tokens/min`,
    key.concurrency && `${count(key.concurrency)} at once`,
  ].filter(Boolean).join(", ");

/** Return the form fields for limits, filled with existing values. */
export const limitFields = (limits = {}) =>
  h("fieldset", {}, h("legend", {}, "Limits, $ (empty for none)"),
    Object.entries(PERIODS).map(([period, label]) => field({ name: `limit_${period}`, label, type: "number", min: "0", step: "any", value: limits[period] ?? "" })));

/** Return the field of the rate. */
export const rateField = (of, hint) =>
  field({ name: "requests_per_minute", label: "Requests per minute", type: "number", min: "1", value: of?.requests_per_minute ?? "", hint });

/** Return the limits that a form states; with `all`, null for those that it leaves empty. */
export const limitsOf = (values, { all: every = false } = {}) =>
  Object.fromEntries(Object.keys(PERIODS).filter((period) => every || values[`limit_${period}`]).map((period) => [period, values[`limit_${period}`] ?? null]));

function rotate(key, refresh) {
  dialog(`Rotate ${key.name}`, [
    p("The key gets a new secret. Its id, limits and spending stay."),
    field({ name: "grace", label: "Hours for which the old secret still works", type: "number", min: "0", max: "720", value: "24" }),
  ], {
    action: "Rotate",
    save: async ({ grace }) => secretShown(await send("POST", `keys/${uri(key.id)}/rotate`, { grace_s: Math.round(Number(grace ?? 0) * 3600) }), refresh),
  });
}

function secretShown(made, refresh) {
  const close = (event) => {
    event.target.closest("dialog").close();
    refresh();
  };
  return h("div", {}, h("h2", { id: "dialog-title" }, `The secret of ${made.data.name}`),
    p("Copy it now: it is shown only once."), copyable(made.key),
    h("div", { class: "buttons" }, button("Done", close)));
}

async function change(key, body, refresh) {
  try {
    await send("PATCH", `keys/${uri(key.id)}`, body);
    await refresh();
  } catch (failure) {
    document.querySelector(".view").prepend(problem(failure));
  }
}

/** Open the dialog that deletes a key or a team, or removes a member, for good. */
export function remove(path, of, text, refresh) {
  const action = path === "members" ? "Remove" : "Delete";
  dialog(`${action} ${of.name ?? of.id}?`, p(text), {
    action,
    danger: true,
    save: async () => {
      await send("DELETE", `${path}/${uri(of.id)}`);
      refresh();
    },
  });
}
