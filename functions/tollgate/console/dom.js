/** Builds elements. Text becomes text nodes, never markup; addresses of other hosts and schemes are left out. */

const SVG = "http://www.w3.org/2000/svg";
const SAFE_ADDRESS = /^(#|\.\.?\/)/;

/** Return an HTML element with attributes, handlers (`onclick`) and children. */
export const h = (tag, attributes, ...children) =>
  fill(document.createElement(tag), attributes, children);

/** Return a remark below what it is of. */
export const small = (...words) => h("small", {}, words);

/** Return what a machine reads. */
export const code = (...words) => h("code", {}, words);

/** Return a paragraph. */
export const p = (...words) => h("p", {}, words);

/** Return a paragraph in a soft colour. */
export const quiet = (...words) => h("p", { class: "quiet" }, words);

/** Return a button that sends no form. */
export const button = (label, onclick, more) => h("button", { type: "button", onclick, ...more }, label);

/** Return a light button. */
export const plain = (label, onclick, more) => button(label, onclick, { class: "plain", ...more });

/** Return an SVG element. */
export const svg = (tag, attributes, ...children) =>
  fill(document.createElementNS(SVG, tag), attributes, children);

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value") element.value = value;
    else if (name === "href" && !SAFE_ADDRESS.test(value)) continue;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  add(element, children);
  return element;
}

/** Append children; arrays are flattened, null and false are left out. */
export function add(element, children) {
  for (const child of [children].flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/** Replace what an element holds. */
export function show(element, ...children) {
  element.replaceChildren();
  add(element, children);
  return element;
}

/** Read a text to a screen reader without moving the focus. */
export function announce(text) {
  document.getElementById("announcer").textContent = text;
}
