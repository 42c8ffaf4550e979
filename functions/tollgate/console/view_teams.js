/** Teams and members: their limits, roles and memberships. */

import { getAll, send, session } from "./api.js";
import { button, h, p, plain, quiet } from "./dom.js";
import { moment, uri } from "./format.js";
import { dialog, empty, facts, field, problem } from "./parts.js";
import { has, MANAGERS } from "./roles.js";
import { limitBars, limitFields, limitsOf, rate, rateField, remove } from "./view_keys.js";

const ROLES = ["developer", "viewer", "billing", "admin"];

const ID_RULES = {
  team: { pattern: "[a-z0-9][a-z0-9._\\-]*", title: "Use lower-case letters, digits, . _ -" },
  member: { pattern: "[A-Za-z0-9][A-Za-z0-9._@+\\-]*", title: "Use letters, digits, . _ @ + -" },
};

/** Return the view of the teams, then of the members. */
export async function render({ signal, refresh }) {
  const [{ data: teams }, { data: members }] = await Promise.all(["teams", "members"].map((path) => getAll(path, {}, signal)));
  const manages = has(MANAGERS);
  return [
    section("Teams", teams, (team) => teamCard(team, members, manages, refresh), manages && ["Create a team …", () => edit("teams", null, teams, refresh)],
      empty("There are no teams yet.", p("A team groups keys and members. Its limits apply in addition to theirs."))),
    section("Members", members, (member) => memberCard(member, teams, manages, refresh), manages && ["Add a member …", () => edit("members", null, teams, refresh)],
      empty("There are no members yet.", p("Members sign in and have their own keys, whose spending is counted together."))),
  ];
}

function section(title, entries, card, make, none) {
  return h("section", { "aria-label": title },
    h("div", { class: "bar" }, h("h2", {}, title), make && button(...make)),
    entries.length ? h("div", { class: "cards" }, entries.map(card)) : none);
}

function teamCard(team, members, manages, refresh) {
  const own = members.filter((member) => member.team_id === team.id);
  return card(team, [], [
    ["Members", own.map((member) => member.display_name ?? member.id).join(", ") || "none"],
  ], `label=${uri(`team:${team.id}`)}`, manages && [
    ["Change …", () => edit("teams", team, [], refresh)],
    ["Delete …", () => remove("teams", team, "Its id is never reused. Deletion is refused while it has keys or members.", refresh)],
  ]);
}

function memberCard(member, teams, manages, refresh) {
  const mayChange = manages && (has(["owner"]) || member.role !== "owner");
  const showSessions = async () => (await import("./view_sessions.js")).openSessions(member);
  return card(member, [member.role, member.disabled && "disabled"].filter(Boolean), [
    ["Team", member.team_id ?? "none"],
    ["E-mail", member.email],
    ["Signs in", member.signs_in ? "yes" : "not yet"],
  ], `label=${uri(`member:${member.id}`)}`, [
    (mayChange || session.key.member_id === member.id) && ["Sessions …", showSessions],
    mayChange && ["Change …", () => edit("members", member, teams, refresh)],
    mayChange && [member.disabled ? "Enable" : "Disable", () => turn(member, refresh)],
    mayChange && ["Remove …", () => remove("members", member, "Keys and sessions of this member are refused everywhere within 5 s. The spending stays on record.", refresh)],
  ].filter(Boolean));
}

async function turn(member, refresh) {
  try {
    await send("PATCH", `members/${uri(member.id)}`, { disabled: !member.disabled });
    await refresh();
  } catch (failure) {
    document.querySelector(".view").prepend(problem(failure));
  }
}

function card(of, tags, lines, query, actions) {
  const bars = limitBars(of);
  return h("article", { class: "card", "aria-label": of.display_name ?? of.id },
    h("h2", {}, of.display_name ?? of.id, tags.map((tag) => h("span", { class: "tag" }, tag))),
    facts(
      ["Id", h("code", { class: "long" }, of.id)],
      ...lines,
      ["Models", of.models && of.models.join(", ")],
      ["Tier", of.tier],
      ["Rate", rate(of)],
      ["Since", moment(of.created_at, { seconds: false })],
    ),
    bars.length ? bars : quiet("No limit in dollars."),
    h("div", { class: "buttons" },
      h("a", { class: "button", href: `#/generations?${query}`, "aria-label": `Generations of ${of.id}` }, "Generations"),
      actions && actions.map(([label, work]) => plain(label, work, { "aria-label": `${label} ${of.id}` }))));
}

/** Open the dialog of a team or a member, or of a new one if `of` is null. */
function edit(path, of, teams, refresh) {
  const isMember = path === "members";
  const noun = isMember ? "member" : "team";
  const options = (values) => values.map((value) => [value, value]);
  const save = async (values) => {
    const body = {
      display_name: values.display_name ?? null,
      limits: limitsOf(values, { all: true }),
      requests_per_minute: values.requests_per_minute ? Number(values.requests_per_minute) : null,
      ...(isMember ? { role: values.role, team_id: values.team_id ?? null, email: values.email ?? null } : {}),
    };
    if (of) await send("PATCH", `${path}/${uri(of.id)}`, body);
    else await send("POST", path, { id: values.id, ...body });
    refresh();
  };
  dialog(of ? `Change ${of.id}` : `New ${noun}`, [
    !of && field({ name: "id", label: "Id", required: true, maxlength: isMember ? "128" : "64", placeholder: isMember ? "ada@example.com" : "search", hint: `${ID_RULES[noun].title}; it never changes.`, ...ID_RULES[noun] }),
    field({ name: "display_name", label: "Name", value: of?.display_name ?? "", maxlength: "100" }),
    isMember && [
      field({ name: "role", label: "Role", value: of?.role ?? "developer", options: options(has(["owner"]) ? [...ROLES, "owner"] : ROLES) }),
      field({ name: "team_id", label: "Team", value: of?.team_id ?? "", options: [["", "none"], ...options(teams.map((team) => team.id))] }),
      field({ name: "email", label: "E-mail", type: "email", value: of?.email ?? "" }),
    ],
    limitFields(of?.limits),
    rateField(of, "Leave empty for no limit."),
  ], { action: of ? "Save" : "Create", save });
}
