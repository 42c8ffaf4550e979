/** The statement of a month: opening balance, entries, usage and closing balance. */

import { get, save } from "./api.js";
import { h, quiet, small } from "./dom.js";
import { count, exact, money, moment } from "./format.js";
import { column, empty, field, figures, filters, numeric, panel, saver, table } from "./parts.js";

const ENTRIES = [["Opening balance", "opening_balance"], ["Grants", "grants"], ["Payments", "payments"], ["Refunds", "refunds"], ["Adjustments", "adjustments"], ["Expired", "expiries"], ["Usage", "usage"], ["Closing balance", "closing_balance"]];

/** Return the view of the statement of `month`. */
export async function render({ params, signal, go }) {
  const last = new Date();
  last.setUTCDate(0);
  const month = /^\d{4}-\d{2}$/.test(params.get("month")) ? params.get("month") : last.toISOString().slice(0, 7);
  const { data } = await get("statement", { month }, signal);
  const file = (format) => () => save("statement", { month, format }, `statement-${data.workspace_id}-${month}.${format}`);
  return [
    filters(go, "statement", [field({ name: "month", label: "Month (UTC)", type: "month", value: month, pattern: "\\d{4}-\\d{2}" })]),
    figures(
      ["State", data.status, data.status === "final" ? "these figures stay" : "figures may still change"],
      ["Usage", money(data.usage)],
      ["Closing balance", money(data.closing_balance), data.credit_limit > 0 && ["credit limit ", money(data.credit_limit)]],
    ),
    panel(`Balance of ${month}`, table("Balance", [
        column("Entry", ([name]) => name),
        numeric("Amount, $", ([, key]) => exact(key === "usage" ? -data.usage : data[key])),
      ], ENTRIES),
      h("div", { class: "buttons" },
        saver("Save as PDF", file("pdf")),
        saver("Save as CSV", file("csv")),
        saver("Save as a printable page", file("html"))),
      quiet("Made ", moment(data.made_at))),
    panel("Usage, net of refunds", data.lines.length
      ? table("Usage", [
          column("Team", (line) => line.team ?? "–"),
          column("Member", (line) => line.member ?? "–"),
          column("Model", (line) => [line.model ?? "not served", small([line.provider_name, line.source === "playground" && "playground"].filter(Boolean).join(", "))]),
          numeric("Requests", (line) => count(line.requests)),
          numeric("Cost, $", (line) => exact(line.cost)),
          numeric("Refunded, $", (line) => exact(line.refunded)),
          numeric("Net, $", (line) => exact(line.net)),
        ], data.lines)
      : empty(`Nothing was used in ${month}.`)),
  ];
}
