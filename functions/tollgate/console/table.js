/** A table that a person sorts, and whose columns a person chooses; both choices stay in the tab. */

import { h, quiet, show } from "./dom.js";
import { count } from "./format.js";

const SHOWN_MAX = 200;
const STORED = "tollgate.table.";

/** Return a column: `cell(row)` is shown, `of(row)` sorts, `away` hides it until it is chosen. */
export const sorted = (title, of, cell, more) => ({ title, of, cell: cell ?? of, ...more });

/** Return the table `name` of all rows, sorted by the column `by`; `link(row)` is an address. */
export function sortedTable(name, caption, columns, rows, { by, link }) {
  const kept = { by, down: true, ...read(name) };
  const body = h("div", {});
  const isShown = (column) => kept[column.title] ?? !column.away;
  const chooser = h("details", { class: "chooser" }, h("summary", {}, "Columns"),
    h("div", { class: "choices" }, columns.slice(1).map((column) =>
      h("label", {}, h("input", { type: "checkbox", checked: isShown(column), onchange: ({ target }) => keep({ [column.title]: target.checked }) }), column.title))));
  draw();
  return h("div", { class: "table" }, chooser, body);

  function keep(choice) {
    Object.assign(kept, choice);
    sessionStorage.setItem(STORED + name, JSON.stringify(kept));
    draw();
  }

  function sortBy(title) {
    keep({ by: title, down: kept.by === title ? !kept.down : true });
    body.querySelector("[aria-sort] button").focus();
  }

  function draw() {
    const chosen = columns.filter((column, index) => !index || isShown(column));
    const key = chosen.find(({ title }) => title === kept.by) ?? chosen[0];
    const order = (one, other) => compare(key.of(one), key.of(other)) * (kept.down ? -1 : 1);
    const found = [...rows].sort(order);
    const head = chosen.map(({ title, number }) => {
      const sort = title === key.title ? (kept.down ? "descending" : "ascending") : null;
      return h("th", { scope: "col", class: number && "right", "aria-sort": sort }, h("button", { type: "button", class: "sort", onclick: () => sortBy(title) }, title, h("span", { "aria-hidden": "true" }, sort ? (kept.down ? " ↓" : " ↑") : "")));
    });
    const line = (row) => {
      const address = link(row);
      return h("tr", { class: address && "link" }, chosen.map(({ cell, number }, index) =>
        h(index ? "td" : "th", { scope: index ? null : "row", class: number ? "right number" : null }, index || !address ? cell(row) : h("a", { href: address }, cell(row)))));
    };
    show(body,
      h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
        h("table", {}, h("caption", { class: "unseen" }, caption), h("thead", {}, h("tr", {}, head)), h("tbody", {}, found.slice(0, SHOWN_MAX).map(line)))),
      found.length > SHOWN_MAX && quiet(`The first ${SHOWN_MAX} of ${count(found.length)} rows are shown; the file has all.`));
  }
}

const compare = (one, other) => (typeof one === "string" ? one.localeCompare(other) : (one ?? -1) - (other ?? -1));

function read(name) {
  try {
    return JSON.parse(sessionStorage.getItem(STORED + name)) ?? {};
  } catch {
    return {};
  }
}

/** Return links that choose one of several, as in `[["7d", "7 days"]]`. */
export const choices = (label, options, current, address) =>
  h("div", { class: "presets", role: "group", "aria-label": label }, options.map(([key, text]) =>
    h("a", { href: address(key), "aria-current": key === current ? "true" : null }, text)));
