/** The command palette: views, models, keys and workspaces by name, a generation by its id. */

import { get, getAll, session, useWorkspace } from "./api.js";
import { h, show, small } from "./dom.js";
import { count, uri } from "./format.js";
import { EVERYBODY, has } from "./roles.js";

const SHOWN_MAX = 12;
const GENERATION = /^(gen-|resp_|msg_)?([-0-9A-Z_a-z]{15})$/;
const LISTS_KEYS = EVERYBODY.filter((role) => role !== "billing" && role !== "inference");

/** Open the palette over the current view; `views` are those that the caller may see. */
export function openPalette(views, go) {
  if (document.querySelector("dialog[open]")) return;
  const commands = views.map(({ name, title }) => ({ kind: "View", text: title, run: () => go(name) }));
  let found = [];
  let chosen = 0;
  const list = h("ul", { id: "palette-list", role: "listbox", "aria-label": "Commands" });
  const note = h("div", { role: "status", class: "quiet" }, "Loading keys and models …");
  const input = h("input", {
    role: "combobox", "aria-label": "Go to a view, model or key, or to a generation by id", "aria-expanded": "true",
    "aria-controls": "palette-list", "aria-autocomplete": "list", autocomplete: "off", spellcheck: "false",
    placeholder: "A view, model or key, or a generation’s id", oninput: () => { chosen = 0; draw(); }, onkeydown: press,
  });
  const box = h("dialog", { class: "palette", "aria-label": "Go to", onclick: ({ target }) => target === box && box.close() }, input, list, note);
  box.addEventListener("close", () => box.remove());
  document.body.append(box);
  box.showModal();
  draw();
  Promise.all([models(go), has(LISTS_KEYS) ? keys(go) : [], workspaces()]).then((lists) => {
    commands.push(...lists.flat());
    show(note);
    draw();
  });

  function draw() {
    const text = input.value.trim();
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const named = commands.filter((each) => words.every((word) => `${each.kind} ${each.text} ${each.more ?? ""}`.toLowerCase().includes(word)));
    const id = GENERATION.exec(text)?.[2];
    const direct = id ? [{ kind: "Generation", text: `gen-${id}`, run: () => go("generation", { id: `gen-${id}` }) }] : [];
    found = [...direct, ...named].slice(0, SHOWN_MAX);
    chosen = Math.min(chosen, Math.max(0, found.length - 1));
    show(list, found.map((each, index) =>
      h("li", { id: `palette-${index}`, role: "option", "aria-selected": String(index === chosen), onclick: () => run(each) }, each.text, small(each.kind, each.more && `, ${each.more}`))));
    input.setAttribute("aria-activedescendant", found.length ? `palette-${chosen}` : "");
    list.children[chosen]?.scrollIntoView({ block: "nearest" });
    if (text) show(note, found.length ? `${count(direct.length + named.length)} found` : "Nothing has this name. The id of a generation has 15 characters.");
  }

  function press(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && found.length) {
      event.preventDefault();
      chosen = (chosen + step + found.length) % found.length;
      draw();
    } else if (event.key === "Enter" && found[chosen]) {
      event.preventDefault();
      run(found[chosen]);
    }
  }

  function run(command) {
    box.close();
    command.run();
  }
}

async function models(go) {
  const { data } = await get("models", { output_modalities: "all" }).catch(() => ({ data: [] }));
  return data.map((model) => ({ kind: model.kind === "model" ? "Model" : model.kind === "route" ? "Route" : "Alias", text: model.id, run: () => go("models", { id: model.canonical_slug }) }));
}

async function keys(go) {
  const { data } = await getAll("keys").catch(() => ({ data: [] }));
  return data.map((key) => ({ kind: "Key", text: key.name, more: key.id, run: () => (location.hash = `#/keys?find=${uri(key.id)}`) }));
}

function workspaces() {
  return session.workspaces.map((id) => ({ kind: "Workspace", text: id, run: () => useWorkspace(id) }));
}
