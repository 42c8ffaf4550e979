/** Shows the view that the address names (`#/spend?month=2026-11`) to the signed-in caller. */

import { ApiError, get, getAll, keepSecret, session, signOut, useWorkspace } from "./api.js";
import { announce, h, plain, quiet, show } from "./dom.js";
import { takeTokens } from "./issuer.js";
import { problem } from "./parts.js";
import { ACCOUNTANTS, CALLERS, EVERYBODY, has, MANAGERS, PEOPLE } from "./roles.js";
import { signIn } from "./view_signin.js";

/** Each view: its name (in address and module), title, roles, and whether it shows other workspaces. */
const VIEWS = [
  { name: "spend", title: "Spend", roles: PEOPLE, elsewhere: true },
  { name: "generations", title: "Generations", roles: EVERYBODY },
  { name: "generation", title: "Generation", roles: EVERYBODY, hidden: true },
  { name: "keys", title: "Keys", roles: EVERYBODY.filter((role) => role !== "billing"), elsewhere: true },
  { name: "batches", title: "Batches", roles: [...CALLERS, "management"] },
  { name: "teams", title: "Teams", roles: PEOPLE },
  { name: "credit", title: "Credit", roles: ACCOUNTANTS, elsewhere: true },
  { name: "statement", title: "Statement", roles: ACCOUNTANTS, elsewhere: true },
  { name: "models", title: "Models", roles: EVERYBODY, elsewhere: true },
  { name: "routing", title: "Routing", roles: EVERYBODY, elsewhere: true },
  { name: "playground", title: "Playground", roles: [...CALLERS, "management"] },
  { name: "audit", title: "Audit", roles: ACCOUNTANTS },
];

const main = document.getElementById("main");
const nav = document.getElementById("nav");
const account = document.getElementById("account");
let leaving = new AbortController();
let isFirst = true;
let served = [];

async function open() {
  leaving.abort();
  leaving = new AbortController();
  const { signal } = leaving;
  if (!session.secret) return showSignIn();
  try {
    await learnKey();
    const [name, query] = location.hash.slice(2).split("?");
    served = VIEWS.filter((view) => has(view.roles) && (!session.workspace || view.elsewhere));
    const view = served.find((each) => each.name === name);
    if (!view) return location.replace(`#/${served.find((each) => !each.hidden).name}`);
    showFrame(served, view);
    const params = new URLSearchParams(query);
    const focused = main.contains(document.activeElement) && document.activeElement.name;
    const heading = h("h1", { tabindex: "-1" }, view.title);
    const body = h("div", { class: "view", "aria-busy": "true" }, quiet("Loading …"));
    show(main, heading, body);
    // Screen readers start at the top of a new page, but at the heading after a change of view.
    if (!isFirst && (document.activeElement === document.body || nav.contains(document.activeElement))) heading.focus({ preventScroll: true });
    isFirst = false;
    document.title = `${view.title} · Tollgate`;
    const { render } = await import(`./view_${view.name}.js`);
    const content = await render({ params, signal, go, refresh: open });
    if (signal.aborted) return;
    show(body, content);
    body.removeAttribute("aria-busy");
    // A filter that changed the view keeps the focus.
    if (focused) body.querySelector(`[name="${CSS.escape(focused)}"]`)?.focus();
    announce(`${view.title} is shown`);
  } catch (failure) {
    if (!signal.aborted) refuse(failure);
  }
}

/** Change the query of a view, or the view; empty values are left out. */
function go(name, query = {}) {
  const kept = Object.entries(query).filter(([, value]) => (value ?? "") !== "");
  const text = new URLSearchParams(kept).toString();
  const hash = `#/${name}${text ? `?${text}` : ""}`;
  if (location.hash === hash) open();
  else location.hash = hash;
}

async function learnKey() {
  if (session.key) return;
  const { data } = await get("key");
  if (data.name.startsWith("session:")) {
    const signedIn = (await get("session")).data;
    Object.assign(data, { role: signedIn.role, name: signedIn.member_id });
  }
  session.key = data;
  if (!has(MANAGERS)) return;
  const kept = session.workspace;
  session.workspace = null;
  const found = await getAll("workspaces").then(({ data: all }) => all, () => []);
  session.operator = found.length > 0;
  session.workspaces = found.map(({ id }) => id);
  if (found.length > 1) session.own = (await get("workspace")).data.id;
  // The stored workspace is forgotten if it is not in the list any more.
  session.workspace = session.workspaces.includes(kept) ? kept : null;
}

function refuse(failure) {
  if (failure instanceof ApiError && failure.status === 401) {
    keepSecret(null);
    return showSignIn(`${failure.message} Sign in again.`);
  }
  show(main, h("h1", {}, "This cannot be shown"), problem(failure, open));
}

function showFrame(served, current) {
  const link = ({ name, title }) =>
    h("a", { href: `#/${name}`, "aria-current": name === current.name ? "page" : null }, title);
  show(nav, served.filter((view) => !view.hidden).map(link));
  const here = nav.querySelector("[aria-current]");
  if (here) nav.scrollLeft = here.offsetLeft - nav.offsetLeft - 40;
  show(
    account,
    session.workspaces.length > 1 && switcher(),
    h("span", { class: "who", title: `${session.key.role}, ${session.key.label}` }, session.key.name),
    plain(["Go to ", h("kbd", {}, "Ctrl K")], palette, { "aria-keyshortcuts": "Control+K Meta+K" }),
    plain("Sign out", leave),
  );
}

/** Return the choice of the workspace that is shown. */
function switcher() {
  const current = session.workspace ?? session.own;
  return h("select", { "aria-label": "Workspace", class: session.workspace && "away", onchange: ({ target }) => useWorkspace(target.value) },
    session.workspaces.map((id) => h("option", { value: id, selected: id === current }, id)));
}

async function palette() {
  const { openPalette } = await import("./palette.js");
  openPalette(served.filter((view) => !view.hidden), go);
}

function showSignIn(message = "", options = {}) {
  show(nav);
  show(account);
  document.title = "Sign in · Tollgate";
  show(main, signIn(message, open, options));
  document.getElementById("secret").focus();
}

async function leave() {
  await signOut();
  history.replaceState(null, "", "#/");
  showSignIn("You are signed out; this tab has forgotten the key.", { failed: false });
}

/** Open the first view, after completing a sign-in that returns to this page. */
async function begin() {
  addEventListener("hashchange", open);
  addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.shiftKey || event.altKey || !session.key) return;
    event.preventDefault();
    palette();
  });
  // The link that skips to the content moves the focus, not the view.
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    main.focus();
  });
  try {
    const made = await takeTokens();
    if (made) keepSecret(made.access_token, made.refresh_token);
  } catch (failure) {
    return showSignIn(failure.message);
  }
  open();
}

begin();
