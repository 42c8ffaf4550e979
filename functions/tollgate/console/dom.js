/** Builds elements. Text becomes text nodes, never markup; links to other hosts and schemes are dropped. */

const SVG = "http://www.w3.org/2000/svg";
const SAFE_ADDRESS = /^(#|\.\.?\/)/;

/** Return an HTML element with attributes, handlers (`onclick`) and children. */
export const h = (tag, attributes, ...children) =>
  fill(document.createElement(tag), attributes, children);

/** Return a remark in small print. */
export const small = (...words) => h("small", {}, words);

/** Return text in the style of code. */
export const code = (...words) => h("code", {}, words);

/** Return a paragraph. */
export const p = (...words) => h("p", {}, words);

/** Return a paragraph in a soft colour. */
export const quiet = (...words) => h("p", { class: "quiet" }, words);

/** Return a button that does not submit a form. */
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

/** Replace the children of an element. */
export function show(element, ...children) {
  element.replaceChildren();
  add(element, children);
  return element;
}

/** Make a screen reader say a text without moving the focus. */
export function announce(text) {
  document.getElementById("announcer").textContent = text;
}
