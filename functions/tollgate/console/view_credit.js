/** Credit: what was granted, is held, was spent and is left, and the ledger of entries. */

import { get, send, session } from "./api.js";
import { button, h } from "./dom.js";
import { exact, money, moment, percent, usd } from "./format.js";
import { dialog, empty, field, figures, meter, numeric, pagedTable, panel } from "./parts.js";

/** Return the view of a workspace's credit. */
export async function render({ signal, refresh }) {
  const [{ data }, ledger] = await Promise.all([
    get("credits", {}, signal),
    pagedTable("Ledger", COLUMNS, (cursor) => get("credits/ledger", { limit: 50, cursor }, signal), empty("No credit was granted yet.", h("p", {}, "The operator grants it here, or with ", h("code", {}, "tollgate credits add"), "."))),
  ]);
  const label = `${usd(data.total_usage)} spent, ${usd(data.held)} held, ${usd(data.available)} left of ${usd(data.total_credits)}`;
  const state = data.available <= 0 ? "full" : data.available < data.total_credits / 4 ? "near" : "";
  return [
    figures(
      ["Available", money(data.available), `${percent(data.available, data.total_credits)} of what was granted`],
      ["Held", money(data.held), "by requests that run"],
      ["Spent", money(data.total_usage)],
      ["Granted", money(data.total_credits), "with refunds and adjustments"],
    ),
    panel("Balance", meter([["spent", data.total_usage], ["held", data.held]], data.total_credits, label, state),
      h("small", {}, label),
      data.available <= 0 && h("p", { class: "notice bad" }, "Nothing is left: requests are refused until credit is granted."),
      session.operator && button("Grant credit …", () => grant(refresh))),
    panel("Ledger", ledger),
  ];
}

const COLUMNS = [
  { title: "Time", cell: (entry) => moment(entry.created_at) },
  { title: "Kind", cell: (entry) => entry.type },
  numeric("Amount, $", (entry) => h("span", { class: entry.amount < 0 ? "bad" : "good" }, entry.amount < 0 ? "−" : "+", exact(Math.abs(entry.amount)))),
  { title: "Id", cell: (entry) => (entry.generation_id ? h("a", { href: `#/generation?id=${encodeURIComponent(entry.generation_id)}` }, entry.generation_id) : h("code", { class: "long" }, entry.id)) },
  { title: "Note", cell: (entry) => entry.note || "–" },
];

function grant(refresh) {
  dialog("Grant credit", [
    field({ name: "amount", label: "Amount, $", type: "number", min: "0", step: "any", required: true }),
    field({ name: "id", label: "Id", required: true, maxlength: "100", pattern: "[A-Za-z0-9._:\\-]+", placeholder: "PO-1187", hint: "Sent twice, the same id adds nothing." }),
    field({ name: "workspace_id", label: "Workspace", placeholder: "this one", maxlength: "63" }),
    field({ name: "note", label: "Note", maxlength: "200" }),
  ], {
    action: "Grant",
    save: async (values) => {
      await send("POST", "credits/grants", values);
      refresh();
    },
  });
}
