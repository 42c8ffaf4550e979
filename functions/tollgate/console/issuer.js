/** Signs in with the identity provider, which returns to this page with a code (PKCE). */

const CLIENT = "tollgate-console";
const STORED = "tollgate.sign-in";
const PAGE = new URL("./", location.href);
const at = (path) => new URL(`../${path}`, PAGE);

/** Return whether the gateway has sign-in with an identity provider. */
export async function hasIssuer() {
  const reply = await fetch(at(".well-known/oauth-authorization-server"), { credentials: "omit" }).catch(() => null);
  return reply?.ok ?? false;
}

/** Go to the identity provider's sign-in page. */
export async function leaveForIssuer() {
  const verifier = randomText();
  const state = randomText();
  sessionStorage.setItem(STORED, JSON.stringify({ verifier, state }));
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier));
  const url = at("oauth/authorize");
  url.search = new URLSearchParams({
    response_type: "code",
    client_id: CLIENT,
    redirect_uri: PAGE.href,
    code_challenge: base64url(new Uint8Array(digest)),
    code_challenge_method: "S256",
    state,
  });
  location.assign(url);
}

/** Return tokens for the code in the address, null without one; raise if it is refused. */
export async function takeTokens() {
  const query = new URLSearchParams(location.search);
  if (!query.has("state")) return null;
  const { verifier, state } = JSON.parse(sessionStorage.getItem(STORED) ?? "{}");
  sessionStorage.removeItem(STORED);
  history.replaceState(null, "", PAGE.href + location.hash);
  if (!state || query.get("state") !== state) throw new Error("This sign-in did not begin in this tab. Begin again.");
  if (query.has("error")) throw new Error(`The identity provider refused: ${query.get("error_description") ?? query.get("error")}.`);
  return ask({ grant_type: "authorization_code", code: query.get("code"), code_verifier: verifier, redirect_uri: PAGE.href });
}

/** Return new tokens for a refresh token. */
export const refreshTokens = (token) => ask({ grant_type: "refresh_token", refresh_token: token });

/** End the session at the gateway; the tab deletes it even if that fails. */
export async function endSession(secret, refreshToken) {
  const headers = { authorization: `Bearer ${secret}` };
  await fetch(at("v1/session"), { method: "DELETE", headers }).catch(() => null);
  if (refreshToken) await fetch(at("oauth/revoke"), { method: "POST", body: new URLSearchParams({ token: refreshToken, client_id: CLIENT }) }).catch(() => null);
}

async function ask(body) {
  const reply = await fetch(at("oauth/token"), { method: "POST", body: new URLSearchParams({ ...body, client_id: CLIENT }), credentials: "omit" });
  const answer = await reply.json().catch(() => ({}));
  if (!reply.ok) throw new Error(answer.error_description ?? answer.error?.message ?? "The sign-in was refused.");
  return answer;
}

const randomText = () => base64url(crypto.getRandomValues(new Uint8Array(32)));

const base64url = (bytes) => btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
