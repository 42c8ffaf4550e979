/** Calls the public API. The secret stays in this tab: no cookie, no shared storage. */

const BASE = new URL("../v1/", location.href);
const STORED = "tollgate.secret";
const REFRESH = "tollgate.refresh";
const WORKSPACE = "tollgate.workspace";
const PAGES_MAX = 100;
// Lists of another workspace that an operator may read.
const OF_WORKSPACES = /^(activity|credits|statement|workspace|keys(\/[^/]+)?)$/;

/** The address that clients use as their base URL. */
export const baseUrl = BASE.href.replace(/\/$/, "");

/** An error reply of the API, with its status, code and message. */
export class ApiError extends Error {
  constructor(status, error, headers) {
    super(error?.message ?? `The gateway answered ${status}.`);
    this.status = status;
    this.code = error?.code ?? "";
    this.limit = error?.limit ?? null;
    this.requestId = error?.request_id ?? headers?.get("x-request-id") ?? "";
  }
}

/** This tab's session: the secret, the key as `GET /key` returns it, and workspaces of an operator. */
export const session = { secret: sessionStorage.getItem(STORED), key: null, operator: false, workspaces: [], workspace: sessionStorage.getItem(WORKSPACE) };

/** Show another workspace, or with null the caller's own, and draw the view again. */
export function useWorkspace(id) {
  session.workspace = id === session.own ? null : id;
  if (session.workspace) sessionStorage.setItem(WORKSPACE, id);
  else sessionStorage.removeItem(WORKSPACE);
  dispatchEvent(new Event("hashchange"));
}

/** Store a secret for this tab, or delete it with null; a session also has a refresh token. */
export function keepSecret(secret, refreshToken = "") {
  session.secret = secret;
  if (secret) {
    sessionStorage.setItem(STORED, secret);
    sessionStorage.setItem(REFRESH, refreshToken ?? "");
  } else {
    sessionStorage.clear();
    Object.assign(session, { key: null, operator: false, workspaces: [], workspace: null });
  }
}

/** Delete the secret; a session is also ended at the gateway. */
export async function signOut() {
  const { secret } = session;
  endPlayground();
  const refreshToken = sessionStorage.getItem(REFRESH);
  keepSecret(null);
  if (refreshToken) await (await import("./issuer.js")).endSession(secret, refreshToken);
}

/** Return the JSON of a GET, without empty query values. */
export const get = async (path, query = {}, signal = undefined) =>
  (await call("GET", address(path, query), { signal })).json();

/** Return the first page of a list, extended by the items of all later pages. */
export async function getAll(path, query, signal) {
  const whole = await get(path, query, signal);
  for (let cursor = whole.next_cursor; cursor; ) {
    const page = await get(path, { ...query, cursor }, signal);
    for (const item of page.data) whole.data.push(item);
    cursor = page.next_cursor;
  }
  return whole;
}

/** Send a JSON body and return the JSON of the reply. */
export const send = async (method, path, body = undefined) =>
  (await call(method, address(path), { body: body && JSON.stringify(body) })).json();

/** Save a list as a CSV file, with the rows of all its pages. */
export const saveCsv = (path, query, name) => save(path, { ...query, format: "csv" }, name);

/** Save an answer as a file. */
export async function save(path, query, name) {
  const pages = [];
  let cursor = null;
  do {
    if (pages.length === PAGES_MAX) throw new ApiError(400, { message: "There are too many rows for one file: choose fewer days." });
    const reply = await call("GET", address(path, { ...query, cursor }));
    const page = await reply.text();
    // Each page of a table begins with the names of the columns.
    pages.push(cursor ? page.slice(page.indexOf("\n") + 1) : page);
    cursor = reply.headers.get("x-next-cursor");
  } while (cursor);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(pages));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** Yield the JSON frames that the playground streams; raise ApiError for a refusal, also in-band. */
export async function* stream(path, body, { signal }) {
  const ask = async () => call("POST", address(path), { body: JSON.stringify(body), secret: await playgroundSecret(), signal });
  const reply = await ask().catch((failure) => {
    // When a session is renewed, the playground secret that the old session opened ends.
    if (failure.status !== 401 || !playground) throw failure;
    playground = null;
    return ask();
  });
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      if (!line.startsWith("data: ") || line === "data: [DONE]") continue;
      const frame = JSON.parse(line.slice(6));
      if (frame.error) throw new ApiError(reply.status, frame.error, reply.headers);
      yield { frame, headers: reply.headers };
    }
  }
}

let playground = null;

/** Return the secret with which the playground generates; a new one is opened if necessary. */
async function playgroundSecret() {
  if (!playground || playground.untilMs < Date.now() + 60_000) {
    const made = await send("POST", "playground");
    playground = { secret: made.key, untilMs: Date.now() + made.expires_in * 1000 };
  }
  return playground.secret;
}

/** End the playground's secret at the gateway. */
export function endPlayground() {
  if (!playground) return;
  const headers = { authorization: `Bearer ${playground.secret}` };
  playground = null;
  fetch(address("playground"), { method: "DELETE", headers, keepalive: true, credentials: "omit" }).catch(() => null);
}

addEventListener("pagehide", endPlayground);

function address(path, query = {}) {
  const url = new URL(session.workspace && OF_WORKSPACES.test(path) ? elsewhere(path) : path, BASE);
  for (const [name, value] of Object.entries(query)) {
    for (const each of [value].flat()) {
      if ((each ?? "") !== "") url.searchParams.append(name, each);
    }
  }
  return url;
}

function elsewhere(path) {
  const [name, ...rest] = path.split("/");
  return ["workspaces", encodeURIComponent(session.workspace), ...(name === "workspace" ? [] : [name]), ...rest].join("/");
}

async function call(method, url, { body, secret, signal } = {}) {
  const used = secret ?? session.secret;
  const headers = { authorization: `Bearer ${used}` };
  if (body) headers["content-type"] = "application/json";
  let reply;
  try {
    reply = await fetch(url, { method, headers, body, signal, cache: "no-store", credentials: "omit" });
  } catch (failure) {
    if (failure.name === "AbortError") throw failure;
    throw new ApiError(0, { message: "The gateway cannot be reached." });
  }
  if (reply.ok) return reply;
  if (reply.status === 401 && !secret && (used !== session.secret || (await renews()))) return call(method, url, { body, signal });
  const refusal = await reply.json().catch(() => null);
  throw new ApiError(reply.status, refusal?.error, reply.headers);
}

let renewing = null;

/** Renew an expired session, once for all waiting calls; return whether that worked. */
function renews() {
  renewing ??= renew().finally(() => {
    renewing = null;
  });
  return renewing;
}

async function renew() {
  const token = sessionStorage.getItem(REFRESH);
  if (!token) return false;
  sessionStorage.setItem(REFRESH, "");
  try {
    const { refreshTokens } = await import("./issuer.js");
    const made = await refreshTokens(token);
    keepSecret(made.access_token, made.refresh_token);
    return true;
  } catch {
    return false;
  }
}
