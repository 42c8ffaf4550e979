/** Elements that several views share: states, tables, figures, bars, forms and dialogs. */

import { announce, button, code, h, p, plain, quiet, show, small } from "./dom.js";
import { distance, money, moment, usd } from "./format.js";

/** Names of the faults of a provider's key. */
export const KEY_FAULTS = { absent: "no key", rejected: "key rejected" };

const ADVICE = {
  model_not_found: "Choose a name from the list of models.",
  provider_auth: "Retrying does not help until the provider's key works.",
  400: "Change what the message mentions.",
  0: "Check that the gateway runs and that this page came from it, then try again.",
  401: "The key was disabled, rotated or has expired. Sign in with another one.",
  403: "The key's role does not allow this. Sign in with a key that may.",
  404: "It may have expired, or belong to another workspace.",
  429: "Wait a moment, then try again.",
  503: "The store does not answer. Wait a moment, then try again.",
};

/** Return an error as a notice: what happened, what to do, the request id to quote. */
export function problem(failure, again) {
  return h(
    "div",
    { class: "notice bad", role: "alert" },
    p(h("strong", {}, failure.message)),
    p(ADVICE[failure.code] ?? ADVICE[failure.status] ?? "Try again. If the error persists, give the request id to the gateway's operator."),
    failure.requestId && quiet("Request ", code(failure.requestId)),
    again && button("Try again", again),
  );
}

/** Return a part of a view, with its title. */
export const panel = (title, ...children) => h("section", { class: "card" }, h("h2", {}, title), children);

/** Return a notice in place of a list without entries: what is missing and what to do. */
export const empty = (text, ...more) => h("div", { class: "notice" }, p(text), more);

/** Return a column of a table. */
export const column = (title, cell) => ({ title, cell });

/** Return a column of numbers. */
export const numeric = (title, cell) => ({ title, cell, number: true });

/** Return a table. A column has `cell(row)`; `link(row)` makes rows links; screen readers read the caption. */
export function table(caption, columns, rows, { link } = {}) {
  const head = columns.map(({ title, number }) => h("th", { scope: "col", class: number && "right" }, title));
  const line = (row) =>
    h("tr", { class: link && "link" }, columns.map(({ cell, number }, index) =>
      h(index ? "td" : "th", { scope: index ? null : "row", class: number ? "right number" : null }, link && !index ? h("a", { href: link(row) }, cell(row)) : cell(row))));
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h("table", {}, h("caption", { class: "unseen" }, caption), h("thead", {}, h("tr", {}, head)), h("tbody", {}, rows.map(line))),
  );
}

/** Return a table that has a button for its next page; `load(cursor)` returns a page. */
export async function pagedTable(caption, columns, load, none, options) {
  let first;
  try {
    first = await load(null);
  } catch (failure) {
    // A refused filter stays next to the error, so that it can be changed.
    if (failure.code === "invalid_request" || failure.status === 404) return problem(failure);
    throw failure;
  }
  if (!first.data.length && !first.next_cursor) return none;
  const whole = table(caption, columns, first.data, options);
  const body = whole.querySelector("tbody");
  const more = button("Show more", next, { class: "more" });
  let cursor = first.next_cursor;
  async function next() {
    more.disabled = true;
    try {
      const page = await load(cursor);
      body.append(...table(caption, columns, page.data, options).querySelectorAll("tbody > tr"));
      cursor = page.next_cursor;
      announce(`${page.data.length} more`);
      if (!cursor) more.remove();
    } catch (failure) {
      more.before(problem(failure));
    }
    more.disabled = false;
  }
  return h("div", {}, whole, cursor && more);
}

/** Return a row of figures, each a name over a value, with a note below. */
export const figures = (...each) =>
  h("dl", { class: "figures" }, each.filter(Boolean).map(([name, value, note]) =>
    h("div", {}, h("dt", {}, name), h("dd", {}, value, note && small(note)))));

/** Return names and values, one pair on each line. */
export const facts = (...each) =>
  h("dl", { class: "facts" }, each.filter(([, value]) => value !== false && (value ?? "") !== "").map(([name, value]) =>
    h("div", {}, h("dt", {}, name), h("dd", {}, value))));

/** Return the state of an endpoint: a fault of its key, a rest, or what it is otherwise. */
export function endpointState({ key, key_seen_at: seenAt }, rests, otherwise) {
  if (key) return h("span", { class: "outcome error" }, KEY_FAULTS[key], seenAt && small("last request ", moment(seenAt, { seconds: false })));
  return rests ? h("span", { class: "outcome cancelled" }, rests) : h("span", { class: "outcome ok" }, otherwise);
}

/** Return a bar of what is spent, held and left of a limit, also as text. */
export function limitBar(name, { limit, spent, held = 0, left, resets }) {
  const rest = left < 0 ? `${usd(-left)} over` : `${usd(left)} left`;
  const words = `${usd(spent)} spent, ${held ? `${usd(held)} held, ` : ""}${rest}, of ${usd(limit)}`;
  const share = limit ? spent / limit : 0;
  return h(
    "div",
    { class: "limit" },
    h("div", { class: "limit-head" },
      h("span", {}, name),
      h("span", { class: "number" }, money(spent), " of ", money(limit)),
    ),
    meter([["spent", spent], ["held", held]], limit, `${name}: ${words}`, share >= 1 ? "full" : share >= 0.75 ? "near" : ""),
    small(rest, held ? `, ${usd(held)} held` : "", resets ? h("span", { title: resets }, `, resets ${distance(resets)}`) : ""),
  );
}

/** Return a bar of parts of a whole; the rest stays empty. */
export function meter(parts, whole, label, state = "") {
  const bar = h("div", { class: `meter ${state}`, role: "img", "aria-label": label, title: label });
  for (const [name, size] of parts) {
    const part = h("span", { class: name });
    part.style.width = `${Math.max(0, Math.min(100, whole ? (size / whole) * 100 : 0))}%`;
    bar.append(part);
  }
  return bar;
}

/** Return a labelled field: `{ name, label, type, value, hint, options, … }`. */
export function field({ name, label, hint, options, type = "text", value = "", ...more }) {
  const id = `field-${name}`;
  const isArea = type === "textarea";
  const described = hint ? { "aria-describedby": `${id}-hint` } : {};
  const control = options
    ? h("select", { id, name, ...described, ...more }, options.map(([key, text]) => h("option", { value: key, selected: String(key) === String(value) }, text)))
    : h(isArea ? type : "input", { id, name, type: isArea ? null : type, value, autocomplete: "off", ...described, ...more });
  return h("div", { class: "field" }, h("label", { for: id }, label), control, hint && h("small", { id: `${id}-hint` }, hint));
}

/** Return the values of a form's fields that are filled in. */
export const filled = (form) =>
  Object.fromEntries([...new FormData(form)].map(([name, value]) => [name, value.trim()]).filter(([, value]) => value !== ""));

/** Return a form of filters, each of which changes the address of its view at once. */
export function filters(go, view, fields) {
  const apply = (event) => {
    event.preventDefault();
    const form = event.target.closest("form");
    if (form.reportValidity()) go(view, filled(form));
  };
  return h("form", { class: "filters", onchange: apply, onsubmit: apply }, fields);
}

/** Open a dialog with a form; `save(values)` is called, an error is shown next to the buttons. */
export function dialog(title, fields, { action = "Save", save, danger = false }) {
  const note = h("div", { role: "alert" });
  const submitter = h("button", { type: "submit", class: danger && "danger" }, action);
  const form = h(
    "form",
    { onsubmit: submit },
    h("h2", { id: "dialog-title" }, title),
    fields,
    note,
    h("div", { class: "buttons" }, plain("Cancel", () => box.close()), submitter),
  );
  const box = h("dialog", { "aria-labelledby": "dialog-title" }, form);
  async function submit(event) {
    event.preventDefault();
    submitter.disabled = true;
    show(note);
    try {
      const next = await save(filled(form));
      if (!(next instanceof Node)) return box.close();
      // Escape must not lose a secret that is shown only once.
      box.oncancel = (pressed) => pressed.preventDefault();
      show(box, next);
      box.querySelector("button").focus();
    } catch (failure) {
      show(note, problem(failure));
    }
    submitter.disabled = false;
  }
  box.addEventListener("close", () => box.remove());
  document.body.append(box);
  box.showModal();
  return box;
}

/** Return a button that saves a file, and shows an error below itself. */
export function saver(label, work) {
  const note = h("div", {});
  const press = plain(label, async () => {
    press.disabled = true;
    await work().then(() => show(note), (failure) => show(note, problem(failure)));
    press.disabled = false;
  });
  return h("div", {}, press, note);
}

/** Return a text with a button that copies it. */
export function copyable(text, label = "Copy") {
  const copier = plain(label, copy);
  async function copy() {
    await navigator.clipboard.writeText(text).catch(() => null);
    show(copier, "Copied");
    announce("Copied");
  }
  return h("div", { class: "copyable" }, code(text), copier);
}
