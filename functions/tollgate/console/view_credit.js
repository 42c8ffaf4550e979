/** Credit: what was granted, is held, was spent and is left, and the ledger of entries. */

import { get, send, session } from "./api.js";
import { button, code, h, p, small } from "./dom.js";
import { distance, exact, money, moment, percent, usd } from "./format.js";
import { column, dialog, empty, field, figures, meter, numeric, pagedTable, panel, table } from "./parts.js";

/** Return the view of a workspace's credit. */
export async function render({ signal, refresh }) {
  const [{ data }, ledger] = await Promise.all([
    get("credits", {}, signal),
    session.workspace ? null : pagedTable("Ledger", COLUMNS, (cursor) => get("credits/ledger", { limit: 50, cursor }, signal), empty("No credit has been granted yet.", p("The operator grants it here, or with ", code("tollgate credits add"), "."))),
  ]);
  const label = `${usd(data.total_usage)} spent, ${usd(data.held)} held, ${usd(data.available)} left of ${usd(data.total_credits)}`;
  const state = data.available <= 0 ? "full" : data.available < data.total_credits / 4 ? "near" : "";
  return [
    figures(
      ["Available", money(data.available), data.total_credits > 0 && `${percent(data.available, data.total_credits)} of all credit`],
      ["Held", money(data.held), "by requests that run"],
      ["Spent", money(data.total_usage)],
      ["Granted", money(data.total_credits - data.credit_limit), "with payments, refunds and adjustments"],
      data.credit_limit > 0 && ["Credit limit", money(data.credit_limit), `${usd(data.owed)} owed`],
    ),
    panel("Balance", meter([["spent", data.total_usage], ["held", data.held]], data.total_credits, label, state),
      small(label),
      data.available <= 0 && h("p", { class: "notice bad" }, "Nothing is left: requests are refused until credit is granted."),
      session.operator && button("Grant credit …", () => grant(refresh))),
    data.expiring.length > 0 && panel("Credit that expires", table("Credit that expires", EXPIRING, data.expiring)),
    ledger && panel("Ledger", ledger),
  ];
}

const EXPIRING = [
  column("Grant", (grant) => code(grant.id)),
  column("Expires", (grant) => [moment(grant.expires_at), small(distance(grant.expires_at))]),
  numeric("Granted", (grant) => money(grant.amount)),
  numeric("Left", (grant) => money(grant.left)),
];

const COLUMNS = [
  column("Time", (entry) => moment(entry.created_at)),
  column("Kind", (entry) => entry.type),
  numeric("Amount, $", (entry) => h("span", { class: entry.amount < 0 ? "bad" : "good" }, entry.amount < 0 ? "−" : "+", exact(Math.abs(entry.amount)))),
  column("Id", (entry) => (entry.generation_id ? h("a", { href: `#/generation?id=${encodeURIComponent(entry.generation_id)}` }, entry.generation_id) : h("code", { class: "long" }, entry.id))),
  column("Note", (entry) => entry.note || "–"),
];

function grant(refresh) {
  dialog("Grant credit", [
    field({ name: "amount", label: "Amount, $", type: "number", min: "0", step: "any", required: true }),
    field({ name: "id", label: "Id", required: true, maxlength: "100", pattern: "[A-Za-z0-9._:\\-]+", placeholder: "PO-1187", hint: "A repeated id adds nothing." }),
    field({ name: "workspace_id", label: "Workspace", placeholder: "this one", maxlength: "63", value: session.workspace ?? "" }),
    field({ name: "note", label: "Note", maxlength: "200" }),
  ], {
    action: "Grant",
    save: async (values) => {
      await send("POST", "credits/grants", values);
      refresh();
    },
  });
}
