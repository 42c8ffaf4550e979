/** The form that takes a key. */

import { baseUrl, get, keepSecret, session } from "./api.js";
import { button, code, h, p, quiet, show } from "./dom.js";
import { hasIssuer, leaveForIssuer } from "./issuer.js";

/** Return the page that signs in, and calls `done` once the gateway knows the key. */
export function signIn(message, done, { failed = true } = {}) {
  const field = h("input", { id: "secret", type: "password", autocomplete: "off", spellcheck: "false", required: true, placeholder: "sk-tg-…" });
  const note = h("div", { role: "alert" });
  const say = (text, isFailure) => show(note, text && h("div", { class: isFailure ? "notice bad" : "notice" }, text));
  say(message, failed);
  const submitter = h("button", { type: "submit" }, "Sign in");
  async function submit(event) {
    event.preventDefault();
    submitter.disabled = true;
    keepSecret(field.value.trim());
    try {
      session.key = null;
      await get("key");
      await done();
    } catch (failure) {
      keepSecret(null);
      say(failure.message, true);
      submitter.disabled = false;
      field.focus();
    }
  }
  const issuer = h("div", {});
  hasIssuer().then((has) => has && show(issuer, button("Sign in with your organisation", leaveForIssuer), quiet("Or:")));
  return h(
    "form",
    { class: "card narrow", onsubmit: submit },
    h("h1", {}, "Sign in"),
    issuer,
    p("Paste a key of this gateway. A management or read key shows a workspace; an inference key shows its own generations and limits, the models and the playground."),
    h("label", { for: "secret" }, "Key"),
    field,
    note,
    submitter,
    quiet("The key stays in this tab and is gone when you close it. It is sent to ", code(baseUrl), " alone."),
  );
}
