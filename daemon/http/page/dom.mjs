// Elements, and how a page that is drawn again keeps what a person holds: focus, scroll, selection.
// Text from workers and files becomes text nodes here, never markup.

const SVG = "http://www.w3.org/2000/svg";
const HANDLERS = ["onclick", "onchange", "oninput", "onkeydown", "ontoggle"];

/** Text as it is, with control characters and those that turn the direction of reading shown by their number, never obeyed. */
export const plain = (text) => String(text).replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g,
  (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** el("td.num", {title}, "text", child, …): a falsy child is left out, an `on…` property is a handler, an attribute that is null,
 * undefined or false is not set. */
export function el(what, props, ...children) {
  return build(document.createElement.bind(document), what, props, children);
}

export function svg(what, props, ...children) {
  return build((name) => document.createElementNS(SVG, name), what, props, children);
}

function build(create, what, props, children) {
  const [name, ...classes] = what.split(".");
  const node = create(name);
  if (classes.length > 0) node.setAttribute("class", classes.join(" "));
  for (const [key, value] of Object.entries(props ?? {})) {
    if (HANDLERS.includes(key)) node[key] = value;
    else if (key === "style") Object.assign(node.style, value);
    else if (value === true) node.setAttribute(key, "");
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(key, plain(value));
  }
  append(node, children);
  return node;
}

export function append(node, children) {
  for (const child of children.flat(3)) {
    if (child === null || child === undefined || child === false || child === "") continue;
    node.append(child instanceof Node ? child : document.createTextNode(plain(child)));
  }
}

const keyOf = (node) => node.dataset?.key ?? node.dataset?.own ?? null;

/** Makes `old` look like `fresh` and changes only what differs. An element with data-own keeps its inside: its maker draws it. */
export function morph(old, fresh) {
  if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName || keyOf(old) !== keyOf(fresh)) {
    old.replaceWith(fresh);
    return;
  }
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  for (const { name, value } of [...fresh.attributes]) {
    if (old.getAttribute(name) === value) continue;
    if (name === "style") old.style.cssText = value; // as an attribute the policy refuses it
    else old.setAttribute(name, value);
  }
  for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name) && name !== "open") old.removeAttribute(name);
  for (const handler of HANDLERS) if (old[handler] !== fresh[handler]) old[handler] = fresh[handler];
  if (old.hasAttribute("data-own")) return;
  morphChildren(old, [...fresh.childNodes]);
  if (old.nodeName === "SELECT" && document.activeElement !== old) old.value = fresh.value;
}

/** Children with a key (data-key, data-own) stay themselves when others come or go around them; their order does not change. */
function morphChildren(old, wanted) {
  const keys = new Set(wanted.map(keyOf));
  let at = old.firstChild;
  for (const node of wanted) {
    const key = keyOf(node);
    let found = key === null ? null : at;
    while (found !== null && keyOf(found) !== key) found = found.nextSibling;
    while (found !== null && at !== found) {
      const next = at.nextSibling;
      at.remove();
      at = next;
    }
    if (at === null || (keyOf(at) !== key && keys.has(keyOf(at)) && keyOf(at) !== null)) {
      old.insertBefore(node, at);
      continue;
    }
    const next = at.nextSibling;
    morph(at, node);
    at = next;
  }
  while (at !== null) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

/** Draws `children` into `root`, as morph() does. */
export function draw(root, ...children) {
  const holder = document.createElement("div");
  append(holder, children);
  morphChildren(root, [...holder.childNodes]);
}

export function say(text) {
  document.getElementById("spoken").textContent = text;
}

/** A table with its caption; wide ones scroll inside a region that the keyboard reaches.
 * columns: {title, kind?: "num"}; rows: arrays of text or nodes, the first of which is the row's heading. */
export function table(caption, columns, rows, options = {}) {
  const cell = (row, i) => {
    const kind = columns[i].kind ?? "text";
    return i === 0 ? el(`th.${kind}`, { scope: "row" }, row[i]) : el(`td.${kind}`, null, row[i]);
  };
  const made = el("table", null,
    el("caption", null, el("span", null, caption)),
    el("thead", null, el("tr", null, columns.map((c) => el(`th.${c.kind ?? "text"}`, { scope: "col" }, c.title)))),
    el("tbody", null, rows.map((row) => el("tr", { class: row.tone }, columns.map((_, i) => cell(row, i))))));
  const words = typeof caption === "string" ? caption : caption.textContent;
  return el(`div.scroll${options.wide ? ".wide" : ""}${options.short ? ".short" : ""}`, { role: "region", tabindex: "0", "aria-label": words }, made);
}

/** Names and values: [name, value, tone?]; without a value the line is left out. */
export function facts(list) {
  const kept = list.filter((item) => item && item[1] !== null && item[1] !== undefined && item[1] !== "");
  return el("dl.facts", null, kept.map(([name, value, tone]) => el(`div${tone ? `.${tone}` : ""}`, null, el("dt", null, name), el("dd", null, value))));
}

export function figures(list) {
  return el("dl.figures", null, list.filter(Boolean).map(([name, value, tone]) =>
    el(`div${tone ? `.${tone}` : ""}`, null, el("dt", null, name), el("dd", null, value))));
}

export function notice(tone, ...children) {
  return el(`p.notice.${tone}`, null, ...children);
}

export const code = (text) => el("code", null, text);
