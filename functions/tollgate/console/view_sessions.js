/** The dialog of a member's sessions, which are ended here one by one or all together. */

import { getAll, send } from "./api.js";
import { h, plain, quiet, show, small } from "./dom.js";
import { distance, moment, uri } from "./format.js";
import { dialog, problem } from "./parts.js";

/** Open the dialog of the sessions of a member. */
export async function openSessions(member) {
  const path = `members/${uri(member.id)}/sessions`;
  const { data } = await getAll(path);
  const list = h("ul", {}, data.map((each) => line(each, path)));
  dialog(`Sessions of ${member.id}`, data.length ? list : quiet("There are no sessions."), {
    action: "End all",
    danger: true,
    save: () => send("DELETE", path),
  });
}

function line(each, path) {
  const from = each.origin ? ` from ${each.origin}` : "";
  const end = async () => {
    try {
      await send("DELETE", `${path}/${uri(each.id)}`);
      item.remove();
    } catch (failure) {
      show(item, problem(failure));
    }
  };
  const item = h("li", {}, moment(each.opened_at), `${from} `, small(`used ${distance(each.renewed_at)} `),
    plain("End", end, { "aria-label": `End the session ${each.id}` }));
  return item;
}
