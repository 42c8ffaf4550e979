/** Writes amounts, counts, durations and moments with their units. */

import { h } from "./dom.js";

const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

/** Return dollars: cents from one dollar on, below it as many digits as the amount needs. */
export function usd(amount) {
  if (amount === null || amount === undefined) return "–";
  const size = Math.abs(amount);
  const sign = amount < 0 ? "−" : "";
  if (size === 0) return "$0.00";
  if (size >= 1) {
    return `${sign}$${size.toLocaleString("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`;
  }
  const digits = Math.min(9, Math.max(2, 1 - Math.floor(Math.log10(size)) + 1));
  return `${sign}$${size.toFixed(digits).replace(/(\.\d\d\d*?)0+$/, "$1")}`;
}

/** Return an amount whose exact value, to the nano-dollar, is shown on hover. */
export const money = (amount) =>
  h("span", { class: "number", title: amount === null || amount === undefined ? null : `$${exact(amount)}` }, usd(amount));

/** Return an amount with all its digits. */
export const exact = (amount) => Number(amount).toFixed(9).replace(/(\.\d\d\d*?)0+$/, "$1");

/** Return a number with separators. */
export const count = (number) => (number === null || number === undefined ? "–" : whole.format(number));

/** Return a share in percent. */
export const percent = (part, total) => (total ? `${Math.round((part / total) * 100)} %` : "–");

/** Return a duration in ms, or in s from one second on. */
export function duration(ms) {
  if (ms === null || ms === undefined) return "–";
  return ms < 1000 ? `${ms} ms` : `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`;
}

/** Return a moment in UTC with the local one on hover. */
export function moment(text, { seconds = true } = {}) {
  if (!text) return "–";
  const at = new Date(text);
  const utc = at.toISOString().slice(0, seconds ? 19 : 16).replace("T", " ");
  return h("time", { datetime: text, title: `${at.toLocaleString()} here`, class: "number" }, h("span", { class: "year" }, utc.slice(0, 5)), utc.slice(5), h("span", { class: "unit" }, " UTC"));
}

/** Return the time from now to a moment, such as `in 3 h`. */
export function distance(text, now = Date.now()) {
  const s = Math.round((new Date(text) - now) / 1000);
  const steps = [["d", 86_400], ["h", 3600], ["min", 60], ["s", 1]];
  const [unit, size] = steps.find(([, each]) => Math.abs(s) >= each) ?? steps[3];
  const number = Math.round(Math.abs(s) / size);
  return s >= 0 ? `in ${number} ${unit}` : `${number} ${unit} ago`;
}

/** Return the price of a million units from the price of one. */
export const perMillion = (rate) => (rate === null || rate === undefined ? "–" : usd(Number(rate) * 1e6));

/** Return a text encoded for an address. */
export const uri = encodeURIComponent;
