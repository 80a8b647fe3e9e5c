// A figure of curves, drawn by hand as SVG: lines with bands, axes that may be logarithmic, a range that is kept while data come,
// and a cursor that mouse, finger and keyboard move. Lines are drawn when data, range or size change; a move draws only the cursor.
import { el, svg } from "/dom.mjs";
import { number } from "/words.mjs";

const BANDS = 8; // with more arms bands only hide the lines
const MARGIN = { top: 12, right: 14, bottom: 40, left: 58 };
const FINE = 10; // lines are in tenths of a pixel: whole numbers are written faster

export class Plot {
  /** read(x, said): the cursor is at the step x, or null; said: by the keyboard, so that it is to be spoken. */
  constructor(read) {
    this.read = read;
    this.lines = []; // {name, look, points: [[x, y, low?, high?, n?]…], thin}
    this.range = null; // [from, to] of x; null: all of it
    this.log = { x: false, y: false };
    this.cursor = null;
    this.size = [640, 360];
    this.title = "";
    this.canvas = svg("svg.plot", { role: "img", preserveAspectRatio: "none" });
    this.root = el("div.figure", { tabindex: "0", role: "group", "aria-label": "Curves", onkeydown: (event) => this.press(event) }, this.canvas);
    this.drag = null;
    this.canvas.addEventListener("pointerdown", (event) => this.down(event));
    this.canvas.addEventListener("pointermove", (event) => this.move(event));
    this.canvas.addEventListener("pointerup", (event) => this.up(event));
    this.canvas.addEventListener("pointercancel", () => this.mark((this.drag = null)));
    this.canvas.addEventListener("pointerleave", () => this.drag === null && this.point(null));
    this.canvas.addEventListener("dblclick", () => this.zoom(null));
    new ResizeObserver(() => {
      const size = [Math.max(260, this.root.clientWidth), Math.max(260, Math.min(440, Math.round(this.root.clientWidth * 0.5)))];
      if (size[0] !== this.size[0] || size[1] !== this.size[1]) this.draw((this.size = size));
    }).observe(this.root);
  }

  show(lines, words) {
    this.lines = lines;
    this.words = words;
    this.draw();
  }

  setLog(axis, on) {
    this.log[axis] = on;
    this.draw();
  }

  zoom(range) {
    const [low, high] = this.extent();
    if (range !== null) {
      range = [Math.max(low, Math.min(...range)), Math.min(high, Math.max(...range))];
      if (range[1] - range[0] < (high - low) / 1e5 || (range[0] <= low && range[1] >= high)) range = range[1] > range[0] && range[0] <= low && range[1] >= high ? null : this.range;
    }
    this.range = range;
    this.draw();
  }

  // ── scales ─────────────────────────────────────────────────────────────────────────────────────

  extent() {
    let low = Infinity;
    let high = -Infinity;
    for (const { points } of this.lines) {
      for (const p of points) {
        if (this.log.x && p[0] <= 0) continue;
        low = Math.min(low, p[0]);
        high = Math.max(high, p[0]);
      }
    }
    return low <= high ? [low, high > low ? high : low + 1] : [this.log.x ? 1 : 0, this.log.x ? 10 : 1];
  }

  fit() {
    this.x = this.range ?? this.extent();
    let low = Infinity;
    let high = -Infinity;
    for (const { points } of this.lines) {
      for (const p of points) {
        if (p[0] < this.x[0] || p[0] > this.x[1]) continue;
        for (let i = 1; i < 4 && i < p.length; i++) {
          const v = p[i];
          if (!Number.isFinite(v) || (this.log.y && v <= 0)) continue;
          if (v < low) low = v;
          if (v > high) high = v;
        }
      }
    }
    if (!(low <= high)) [low, high] = this.log.y ? [1, 10] : [0, 1];
    if (this.log.y) this.y = low === high ? [low / 2, high * 2] : [low / (high / low) ** 0.04, high * (high / low) ** 0.04];
    else this.y = low === high ? [low - 0.5, high + 0.5] : [low - (high - low) * 0.05, high + (high - low) * 0.05];
  }

  place(v, [low, high], log, from, to) {
    const share = log ? (Math.log(v) - Math.log(low)) / (Math.log(high) - Math.log(low)) : (v - low) / (high - low);
    return from + share * (to - from);
  }

  atX(v) {
    return this.place(v, this.x, this.log.x, MARGIN.left, this.size[0] - MARGIN.right);
  }

  atY(v) {
    return this.place(v, this.y, this.log.y, this.size[1] - MARGIN.bottom, MARGIN.top);
  }

  stepAt(px) {
    const share = (px - MARGIN.left) / (this.size[0] - MARGIN.right - MARGIN.left);
    const [low, high] = this.x;
    return this.log.x ? Math.exp(Math.log(low) + share * (Math.log(high) - Math.log(low))) : low + share * (high - low);
  }

  // ── drawing ────────────────────────────────────────────────────────────────────────────────────

  draw() {
    const started = performance.now();
    const [w, h] = this.size;
    this.fit();
    this.canvas.setAttribute("viewBox", `0 0 ${w} ${h}`);
    this.canvas.setAttribute("width", w);
    this.canvas.setAttribute("height", h);
    const axes = [];
    for (const v of ticks(this.y, this.log.y, 6)) {
      const y = this.atY(v);
      axes.push(svg("line.grid", { x1: MARGIN.left, x2: w - MARGIN.right, y1: y, y2: y }), svg("text.tick", { x: MARGIN.left - 8, y: y + 4, "text-anchor": "end" }, label(v)));
    }
    for (const v of ticks(this.x, this.log.x, w < 480 ? 4 : 7)) {
      const x = this.atX(v);
      axes.push(svg("line.axis", { x1: x, x2: x, y1: h - MARGIN.bottom, y2: h - MARGIN.bottom + 4 }), svg("text.tick", { x, y: h - MARGIN.bottom + 18, "text-anchor": "middle" }, label(v)));
    }
    axes.push(svg("line.axis", { x1: MARGIN.left, x2: w - MARGIN.right, y1: h - MARGIN.bottom, y2: h - MARGIN.bottom }),
      svg("text.axis-title", { x: (MARGIN.left + w - MARGIN.right) / 2, y: h - 4, "text-anchor": "middle" }, this.words?.x ?? "step"));
    const means = this.lines.filter((l) => !l.thin);
    const bands = means.length > BANDS ? [] : means.map((l) => svg(`path.spread.${l.look.split(" ").join(".")}`, { d: this.band(l.points) }));
    const curves = this.lines.map((l) => svg(`g.${l.look.split(" ").join(".")}`, null, svg(`path.curve.${l.thin ? "thin" : "strong"}`, { d: this.path(l.points) })));
    const clip = svg("clipPath", { id: "plot-clip" }, svg("rect", { x: MARGIN.left, y: MARGIN.top - 4, width: w - MARGIN.left - MARGIN.right, height: h - MARGIN.top - MARGIN.bottom + 8 }));
    this.over = svg("g.over");
    this.canvas.replaceChildren(svg("title", null, this.words?.title ?? ""), svg("desc", null, this.words?.desc ?? ""), svg("defs", null, clip),
      ...axes, svg("g", { "clip-path": "url(#plot-clip)" }, svg("g.fine", { transform: `scale(${1 / FINE})` }, bands, curves)), this.over);
    this.point(this.cursor);
    this.took = performance.now() - started;
  }

  /** The points in range, with one beyond each end, and no two within half a pixel of each other. */
  visible(points) {
    const kept = [];
    let last = -Infinity;
    for (let i = 0; i < points.length; i++) {
      const x = points[i][0];
      const y = points[i][1];
      if (!Number.isFinite(y) || (this.log.y && y <= 0) || (this.log.x && x <= 0)) continue;
      const outside = (points[i + 1] !== undefined && points[i + 1][0] < this.x[0]) || (i > 0 && points[i - 1][0] > this.x[1]);
      if (outside) continue;
      const px = this.atX(x);
      if (px - last < 0.5 && i < points.length - 1) continue;
      last = px;
      kept.push([px, points[i]]);
    }
    return kept;
  }

  path(points) {
    let text = "";
    for (const [px, p] of this.visible(points)) text += `${text === "" ? "M" : "L"}${fine(px)} ${fine(this.atY(p[1]))}`;
    return text;
  }

  band(points) {
    const inside = this.visible(points).filter(([, p]) => Number.isFinite(p[2]) && Number.isFinite(p[3]) && (!this.log.y || p[2] > 0));
    if (inside.length < 2 || inside.every(([, p]) => p[2] === p[3])) return "";
    const up = inside.map(([px, p]) => `${fine(px)} ${fine(this.atY(p[3]))}`);
    const down = inside.map(([px, p]) => `${fine(px)} ${fine(this.atY(p[2]))}`).reverse();
    return `M${up.join("L")}L${down.join("L")}Z`;
  }

  // ── cursor and range ───────────────────────────────────────────────────────────────────────────

  point(x, said = false) {
    this.cursor = x;
    const marks = [];
    if (x !== null && x >= this.x[0] && x <= this.x[1]) {
      const px = this.atX(x);
      marks.push(svg("line.cursor", { x1: px, x2: px, y1: MARGIN.top, y2: this.size[1] - MARGIN.bottom }));
      for (const line of this.lines) {
        const p = line.thin ? null : nearest(line.points, x);
        if (p && Number.isFinite(p[1]) && (!this.log.y || p[1] > 0)) {
          marks.push(svg(`g.${line.look.split(" ").join(".")}`, null, svg("circle.dot", { cx: this.atX(p[0]), cy: this.atY(p[1]), r: 4 })));
        }
      }
    }
    this.over.replaceChildren(...marks);
    this.read(x, said);
  }

  px(event) {
    const box = this.canvas.getBoundingClientRect();
    const px = ((event.clientX - box.left) / box.width) * this.size[0];
    return Math.max(MARGIN.left, Math.min(this.size[0] - MARGIN.right, px));
  }

  down(event) {
    if (event.button !== 0) return;
    this.drag = { from: this.px(event), touch: event.pointerType === "touch" };
    if (!this.drag.touch) this.canvas.setPointerCapture(event.pointerId);
  }

  move(event) {
    const px = this.px(event);
    this.point(this.stepAt(px));
    if (this.drag !== null && !this.drag.touch && Math.abs(px - this.drag.from) > 3) {
      this.over.append(svg("rect.range", { x: Math.min(px, this.drag.from), y: MARGIN.top, width: Math.abs(px - this.drag.from), height: this.size[1] - MARGIN.top - MARGIN.bottom }));
    }
  }

  up(event) {
    const drag = this.drag;
    const px = this.px(event);
    this.drag = null;
    if (drag !== null && !drag.touch && Math.abs(px - drag.from) > 6) this.zoom([this.stepAt(drag.from), this.stepAt(px)]);
    else this.point(this.stepAt(px));
  }

  mark() {
    this.point(this.cursor);
  }

  /** ← → move the cursor (Shift: ten at a time), + − 0 the range around it. */
  press(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const steps = this.lines.find((l) => !l.thin && l.points.length > 0)?.points.map((p) => p[0]) ?? [];
    const [low, high] = this.x;
    const middle = this.cursor ?? (low + high) / 2;
    const inside = steps.filter((x) => x >= low && x <= high);
    const go = (by) => {
      if (inside.length === 0) return;
      const at = this.cursor === null ? (by > 0 ? -1 : inside.length) : inside.findLastIndex((x) => x <= this.cursor);
      this.point(inside[Math.max(0, Math.min(inside.length - 1, at + by))], true);
    };
    const around = (f) => this.zoom([middle - (middle - low) * f, middle + (high - middle) * f]);
    const keys = { ArrowRight: () => go(event.shiftKey ? 10 : 1), ArrowLeft: () => go(event.shiftKey ? -10 : -1), Home: () => inside.length && this.point(inside[0], true),
      End: () => inside.length && this.point(inside.at(-1), true), "+": () => around(0.5), "=": () => around(0.5), "-": () => around(2), 0: () => this.zoom(null), Escape: () => this.point(null) };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  }
}

const fine = (px) => Math.round(px * FINE);

/** The point that is nearest to x, by halving; null: there is none. */
export function nearest(points, x) {
  let low = 0;
  let high = points.length - 1;
  if (high < 0) return null;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (points[middle][0] < x) low = middle + 1;
    else high = middle;
  }
  return low > 0 && x - points[low - 1][0] < points[low][0] - x ? points[low - 1] : points[low];
}

function ticks([low, high], log, wanted) {
  const list = [];
  if (log && high / low > 8) {
    for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); e++) {
      for (const m of high / low > 1000 ? [1] : [1, 2, 5]) list.push(m * 10 ** e);
    }
    return list.filter((v) => v >= low && v <= high);
  }
  const raw = (high - low) / wanted;
  const size = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * size).find((s) => s >= raw);
  for (let v = Math.ceil(low / step) * step; v <= high + step * 1e-9; v += step) list.push(Math.abs(v) < step * 1e-9 ? 0 : v);
  return list;
}

function label(v) {
  const size = Math.abs(v);
  for (const [unit, name] of [[1e9, "G"], [1e6, "M"], [1e4, "k"]]) if (size >= unit) return `${Number((v / (name === "k" ? 1e3 : unit)).toPrecision(4))}${name}`;
  return number(v);
}

