/** Draws bars stacked by day. */

import { h, svg } from "./dom.js";

/** Window width below which the layout for phones is used. */
export const PHONE = 640;

const HEIGHT = 240;
const LEFT = 64;
const FOOT = 22;

/** Return a chart of `days` ([{ day, parts: Map(name, amount) }]), labelled by `text(amount)`, with a line at `mark`. */
export function stackedDays(days, names, { label, mark = null, text, least = 0, open }) {
  // About as wide as on the page: a narrower picture would shrink its text.
  const width = Math.max(260, Math.min(960, innerWidth - 90));
  const totals = days.map(({ parts }) => [...parts.values()].reduce((sum, each) => sum + each, 0));
  const top = niceTop(Math.max(...totals, mark ?? 0, least));
  const y = (amount) => HEIGHT - FOOT - (amount / top) * (HEIGHT - FOOT - 10);
  const step = (width - LEFT) / days.length;
  const grid = [0, 0.5, 1].map((share) => [
    svg("line", { x1: LEFT, x2: width, y1: y(top * share), y2: y(top * share), class: "grid" }),
    svg("text", { x: LEFT - 8, y: y(top * share) + 4, class: "axis", "text-anchor": "end" }, text(top * share)),
  ]);
  const bars = days.map(({ day, parts }, index) => {
    let base = 0;
    const x = LEFT + index * step + step * 0.14;
    const pieces = names.map((name, color) => {
      const amount = parts.get(name) ?? 0;
      if (!amount) return null;
      base += amount;
      return svg("rect", { x, y: y(base), width: step * 0.72, height: Math.max(0.5, y(base - amount) - y(base)), class: `color-${color}` }, svg("title", {}, `${day} · ${name}: ${text(amount)}`));
    });
    const shown = days.length <= 16 || index % Math.ceil(days.length / 8) === 0;
    return svg("g", open ? { class: "day", onclick: () => open(day) } : {}, pieces,
      shown && svg("text", { x: x + step * 0.36, y: HEIGHT - 5, class: "axis", "text-anchor": "middle" }, day.slice(days.length > 31 ? 5 : 8)));
  });
  const line = mark && svg("line", { x1: LEFT, x2: width, y1: y(mark), y2: y(mark), class: "mark" }, svg("title", {}, `Budget per day: ${text(mark)}`));
  return h("div", { class: "chart" }, svg("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": label }, grid, bars, line));
}

/** Return the round amount above the highest one. */
function niceTop(highest) {
  if (!highest) return 1;
  const size = 10 ** Math.floor(Math.log10(highest));
  return [1, 2, 4, 6, 8, 10].map((each) => each * size).find((each) => each >= highest);
}

/** Return a coloured square for a legend. */
export const swatch = (color) => h("span", { class: `swatch color-${color}`, "aria-hidden": "true" });
