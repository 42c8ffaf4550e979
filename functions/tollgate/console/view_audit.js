/** The audit log. */

import { get, saveCsv } from "./api.js";
import { code, h, p, small } from "./dom.js";
import { moment } from "./format.js";
import { column, empty, field, filters, pagedTable, saver } from "./parts.js";

const SHOWN_MAX = 4;

/** Return the view, filtered as the address says. */
export async function render({ params, signal, go }) {
  const { since = "", kind = "", actor = "", target = "" } = Object.fromEntries(params);
  const query = { actor, target, kind, since: since && `${since}T00:00:00Z` };
  const none = empty("No changes match.", p("Without a day: the last 30 days."));
  const list = await pagedTable("Changes", COLUMNS, (cursor) => get("audit", { ...query, limit: 50, cursor }, signal), none);
  return [
    filters(go, "audit", [
      field({ name: "since", label: "From (UTC)", type: "date", value: since }),
      field({ name: "kind", label: "Kind", value: kind, options: [["", "All"], ["change", "Changes"], ["access", "Access"]] }),
      field({ name: "actor", label: "By", value: actor, placeholder: "key, process, ARN" }),
      field({ name: "target", label: "Of", value: target, placeholder: "name or id" }),
    ]),
    list,
    saver("Save as CSV", () => saveCsv("audit", { ...query, limit: 1000 }, "audit.csv")),
  ];
}

const COLUMNS = [
  column("Time", (entry) => moment(entry.created_at)),
  column("Change", (entry) => code(entry.action)),
  column("Of", (entry) => [entry.target_name ?? entry.target, entry.target_name && small(entry.target)]),
  column("By", (entry) => [entry.actor_name ?? entry.actor, small([entry.actor_type, entry.origin].filter(Boolean).join(", "))]),
  column("Fields", (entry) => fields(entry)),
];

/** Return each changed field, the old value struck out. */
function fields({ before, after }) {
  const names = Object.keys({ ...before, ...after });
  if (!names.length) return "–";
  const list = h("ul", { class: "changes" }, names.map((name) =>
    h("li", {}, `${name}: `, name in before && [h("del", {}, before[name]), " "], name in after ? h("ins", {}, after[name]) : "removed")));
  return names.length > SHOWN_MAX ? h("details", {}, h("summary", {}, `${names.length} fields`), list) : list;
}
