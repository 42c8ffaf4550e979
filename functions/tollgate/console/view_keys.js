/** Keys with their limits: spent, held and left. Keys are created, rotated, disabled and deleted here. */

import { get, getAll, send, session } from "./api.js";
import { add, button, code, h, p, plain, quiet, show, small } from "./dom.js";
import { count, distance, moment, money, uri, usd } from "./format.js";
import { copyable, dialog, empty, facts, field, limitBar, problem } from "./parts.js";
import { has, KEEPERS_OF_KEYS, MANAGERS } from "./roles.js";

const SHOWN_MAX = 200;
const PERIODS = { day: "Day", week: "Week", month: "Month", total: "Total" };

/** Return the view of all keys; a key that may not list them sees itself. */
export async function render({ params, signal, refresh }) {
  const mayChange = has(KEEPERS_OF_KEYS);
  if (session.key.role === "inference") {
    const { data } = await get("key", {}, signal);
    return card(data, {});
  }
  const { data: keys } = await getAll("keys", {}, signal);
  const text = (params.get("find") ?? "").toLowerCase();
  const list = h("div", { class: "cards" });
  const narrow = (words) => {
    const found = keys.filter((key) => `${key.name} ${key.id} ${key.role} ${Object.values(key.labels).join(" ")}`.toLowerCase().includes(words));
    const some = found.slice(0, SHOWN_MAX);
    show(list, found.length > some.length && quiet(`The first ${SHOWN_MAX} of ${count(found.length)} keys are shown.`));
    add(list, found.length ? some.map((key) => card(key, { mayChange, refresh })) : empty("No key matches.", p("Change the words above, or create a key.")));
  };
  const oninput = ({ target }) => {
    // The address keeps the words when a changed key reloads the view.
    history.replaceState(null, "", `#/keys?find=${uri(target.value)}`);
    narrow(target.value.toLowerCase());
  };
  const find = field({ name: "find", label: "Find by name, label or role", type: "search", value: text, oninput });
  narrow(text);
  return [
    h("div", { class: "bar" }, find, mayChange && button("Create a key …", () => create(refresh))),
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
      ["Warns from", key.warn_at && `${key.warn_at} % of a limit`],
      ["One session", [key.session_budget && usd(key.session_budget), key.session_requests && `${count(key.session_requests)} requests`].filter(Boolean).join(", ")],
      ["Spent in all", [money(key.usage), key.held > 0 && small(money(key.held), " held")]],
      ["Last used", key.last_used_at ? h("span", { title: key.last_used_at }, distance(key.last_used_at)) : "never"],
      ["Expires", key.expires_at && moment(key.expires_at)],
      ["Old secret", key.old_secret && [key.old_secret.label, " works until ", moment(key.old_secret.expires_at)]],
    ),
    bars.length ? bars : quiet("No limit in dollars."),
    h("div", { class: "buttons" },
      h("a", { class: "button", href: `#/generations?key=${uri(key.id)}`, "aria-label": `Generations of ${key.name}` }, "Generations"),
      mayChange && !isOfSessions && [
        has(MANAGERS) && act("Limits …", () => limits(key, refresh)),
        act("Rotate …", () => rotate(key, refresh)),
        (has(MANAGERS) || !key.disabled) && act(key.disabled ? "Enable" : "Disable", () => change(key, { disabled: !key.disabled }, refresh)),
        act("Delete …", () => remove("keys", key, "It is refused for good. Its records and what it spent stay.", refresh)),
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
  h("fieldset", {}, h("legend", {}, "Limits, $ (empty is none)"),
    Object.entries(PERIODS).map(([period, label]) => field({ name: `limit_${period}`, label, type: "number", min: "0", step: "any", value: limits[period] ?? "" })));

/** Return the field of the rate. */
export const rateField = (of, hint) =>
  field({ name: "requests_per_minute", label: "Requests a minute", type: "number", min: "1", value: of?.requests_per_minute ?? "", hint });

/** Return the limits that a form states; with `all`, null for those that it leaves empty. */
export const limitsOf = (values, { all: every = false } = {}) =>
  Object.fromEntries(Object.keys(PERIODS).filter((period) => every || values[`limit_${period}`]).map((period) => [period, values[`limit_${period}`] ?? null]));

const ceilings = (values) => ({
  max_cost: values.max_cost ?? null,
  session_budget: values.session_budget ?? null,
  session_requests: values.session_requests ? Number(values.session_requests) : null,
  warn_at: values.warn_at ? Number(values.warn_at) : null,
});

function limits(of, refresh) {
  dialog(`Limits of ${of.name}`, [
    limitFields(of.limits),
    field({ name: "max_cost", label: "Cost of one request, $", type: "number", min: "0", step: "any", value: of.max_cost ?? "" }),
    field({ name: "session_budget", label: "Cost of one session, $", type: "number", min: "0", step: "any", value: of.session_budget ?? "" }),
    field({ name: "session_requests", label: "Requests of one session", type: "number", min: "1", value: of.session_requests ?? "" }),
    field({ name: "warn_at", label: "Warn from, % of a limit", type: "number", min: "1", max: "100", value: of.warn_at ?? "" }),
    rateField(of),
  ], {
    save: async (values) => {
      const rpm = values.requests_per_minute;
      await send("PATCH", `keys/${uri(of.id)}`, { limits: limitsOf(values, { all: true }), ...ceilings(values), ...(rpm ? { requests_per_minute: Number(rpm) } : {}) });
      refresh();
    },
  });
}

async function create(refresh) {
  const teams = await getAll("teams").then(({ data }) => data, () => []);
  const roles = ["inference", "read", "management"].map((role) => [role, role]);
  dialog("Create a key", [
    field({ name: "name", label: "Name", required: true, maxlength: "100" }),
    session.key.role !== "developer" && field({ name: "role", label: "Role", options: roles, value: "inference" }),
    teams.length > 0 && field({ name: "team_id", label: "Team", options: [["", "none"], ...teams.map(({ id }) => [id, id])], hint: "Its limits hold too." }),
    field({ name: "environment", label: "Environment", maxlength: "64", placeholder: "production" }),
    field({ name: "models", label: "Models", placeholder: "openai/*, test/echo", hint: "Globs, separated by commas; empty allows all." }),
    limitFields(),
  ], {
    action: "Create",
    save: async (values) => {
      const made = await send("POST", "keys", {
        name: values.name,
        role: values.role ?? "inference",
        labels: values.environment ? { environment: values.environment } : {},
        ...(values.team_id ? { team_id: values.team_id } : {}),
        limits: limitsOf(values),
        models: values.models ? values.models.split(",").map((each) => each.trim()).filter(Boolean) : null,
      });
      return secretShown(made, refresh);
    },
  });
}

function rotate(key, refresh) {
  dialog(`Rotate ${key.name}`, [
    p("The key gets a new secret. Its id, limits and spend stay."),
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
    p("Copy it now: it is shown this once."), copyable(made.key),
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
