// Curves of one program: a metric of a stage, by arm (mean over the cells of a condition, with their least and greatest), single
// cells on demand. Range, scales and what is hidden stay as they are while new points arrive.
import { code, draw, el, notice, say, svg, table } from "/dom.mjs";
import { Fetched, missing, programHead, sealedNotice, to } from "/parts.mjs";
import { nearest, Plot } from "/plot.mjs";
import { count, number, plural } from "/words.mjs";

const EVERY_MS = 3000;
const LOOKS = 8;

export class CurvesPage {
  constructor(ctx, id, query) {
    Object.assign(this, { ctx, key: `curves/${id}`, site: "programs", program: id });
    this.hidden = new Set();
    this.cells = new Set(); // arms whose cells are drawn
    this.metrics = new Fetched(ctx, () => ctx.live.json("/api/curves", { program: id }), 15000);
    this.plot = new Plot((x, said) => this.read(x, said));
    this.readout = el("div");
    this.choose(query.get("stage"), query.get("metric"));
  }

  choose(stage, metric) {
    if (stage === this.stage && metric === this.metric && this.curves) return;
    this.stage = stage;
    this.metric = metric;
    this.curves = null;
    this.plot.zoom(null);
  }

  navigate(next) {
    this.choose(next.stage, next.metric);
  }

  title() {
    return `curves of ${this.ctx.live.summary(this.program)?.name ?? this.program}`;
  }

  /** Which curves are asked for: those of the address (null: there are none), without one the first that may be seen. */
  pick(list) {
    if (this.stage !== null || this.metric !== null) return list.find((m) => m.stage === this.stage && m.metric === this.metric) ?? null;
    return list.find((m) => !m.sealed && m.metric.includes("loss")) ?? list.find((m) => !m.sealed) ?? list[0];
  }

  fetch(m, every) {
    const cells = this.cells.size > 0 ? 1 : 0;
    const key = `${m.stage} ${m.metric} ${cells}`;
    if (this.curves === null || this.curves.key !== key) {
      const before = this.curves?.key.startsWith(`${m.stage} ${m.metric} `) ? this.curves.value : null;
      this.curves = new Fetched(this.ctx, () => this.ctx.live.json("/api/curves", { program: this.program, stage: m.stage, metric: m.metric, ...(cells ? { cells } : {}) }));
      this.curves.key = key;
      this.curves.value = before;
    }
    if (this.curves.every > 0 && every === 0) this.curves.at = 0; // for what was added since the last time
    this.curves.every = every;
    this.curves.refresh();
    return this.curves;
  }

  draw() {
    const p = this.ctx.live.summary(this.program);
    if (p === null) return el("div.text", null, missing(this.program, this.ctx.live));
    const head = programHead(p, "curves", "Curves");
    this.metrics.refresh();
    const list = this.metrics.value?.metrics;
    if (!list) return [head, el("p.quiet", { "data-key": "first" }, this.metrics.error?.message ?? "Asking the daemon …")];
    if (list.length === 0) return [head, notice("quiet", "No worker has reported a point yet. Curves appear here by themselves.")];
    const m = this.pick(list);
    const choice = this.choice(list, m);
    if (m === null) return [head, choice, notice("warn", "No worker has reported points of ", code(this.metric ?? "?"), " in the stage ", code(this.stage ?? "?"), " yet. Above is what there is.")];
    if (m.sealed) return [head, choice, el("div", { "data-key": "sealed" }, sealedNotice("Curves of this stage"))];
    const curves = this.fetch(m, p.verdict ? 0 : EVERY_MS); // nothing is added after the verdict
    if (curves.sealed) return [head, choice, el("div", { "data-key": "sealed" }, sealedNotice("Curves of this stage"))];
    if (curves.value === null) return [head, choice, el("p.quiet", { "data-key": "first" }, curves.error?.message ?? "Reading points …")];
    return [head, choice, el("div", { "data-own": "plot" }), el("div", { "data-own": "readout" }),
      el("p.sub", { "data-key": "how" }, "Line: mean of the cells of an arm; band (up to eight arms): their least and greatest. Drag to zoom, double-click to see all; with the keyboard ← → read, + − 0 zoom."),
      el("section", { "data-key": "arms" }, el("h2", null, "Arms"), el("div", { "data-own": "arms" }))];
  }

  choice(list, m) {
    const option = (x) => el("option", { value: `${x.stage}\n${x.metric}`, selected: x === m }, `${x.stage} · ${x.metric}${x.unit ? ` (${x.unit})` : ""}${x.sealed ? " — sealed" : ""}`);
    const toggle = (axis, words) => el("button.chip", { type: "button", "aria-pressed": String(this.plot.log[axis]), onclick: () => { this.plot.setLog(axis, !this.plot.log[axis]); this.ctx.redraw(); } }, words);
    const zoom = (words, name, key) => el("button.chip", { type: "button", "aria-label": name, onclick: () => this.plot.press(new KeyboardEvent("keydown", { key })) }, words);
    return el("div.filters", { "data-key": "choice" },
      el("label.find", null, el("span", null, "Show "), el("select", { onchange: (event) => {
        const [stage, metric] = event.target.value.split("\n");
        location.hash = `${to("program", this.program, "curves")}?${new URLSearchParams({ stage, metric })}`;
      } }, m === null ? el("option", { selected: true, disabled: true }, `${this.stage ?? "?"} · ${this.metric ?? "?"}`) : null, list.map(option))),
      el("div.chips", { role: "group", "aria-label": "Scales and range" }, toggle("y", "log y"), toggle("x", "log x"), zoom("+", "Zoom in", "+"), zoom("−", "Zoom out", "-"), zoom("all", "Show the whole range", "0")));
  }

  after(main) {
    const slot = main.querySelector("[data-own=plot]");
    const value = this.curves?.value;
    if (slot === null || !value) return;
    if (slot.firstChild !== this.plot.root) slot.replaceChildren(this.plot.root);
    const under = main.querySelector("[data-own=readout]");
    if (under.firstChild !== this.readout) under.replaceChildren(this.readout);
    const drawn = `${[...this.hidden].join("\n")}|${[...this.cells].join("\n")}`;
    const legend = main.querySelector("[data-own=arms]");
    if (this.shown === value && this.drawn === drawn && legend.firstChild !== null) return;
    draw(legend, this.legend(value));
    this.shown = value;
    this.drawn = drawn;
    const arms = value.arms.map((arm, i) => ({ name: arm.name, look: look(i), points: arm.points, thin: false }));
    const looks = new Map(arms.map((a) => [a.name, a.look]));
    const cells = (value.cells ?? []).filter((c) => this.cells.has(c.arm)).map((c) => ({ name: c.name, look: looks.get(c.arm) ?? "s7", points: c.points, thin: true }));
    const open = [...cells, ...arms].filter((l) => !this.hidden.has(l.name));
    this.plot.show(open, { x: value.x ?? "step", title: `${value.stage} ${value.metric}`, desc: arms.map((a) => `${a.name}: ${a.points.length ? `last ${number(a.points.at(-1)[1])} at ${number(a.points.at(-1)[0])}` : "no point"}`).slice(0, 12).join("; ") });
  }

  legend(value) {
    const last = (arm) => arm.points.at(-1) ?? [null, null, null, null, null];
    return table(`${value.stage} ${value.metric}, last point of each arm`,
      [{ title: "arm" }, { title: "shown" }, ...["step", "mean", "least", "greatest", "cells"].map((title) => ({ title, kind: "num" }))],
      value.arms.map((arm, i) => {
        const [step, mean, low, high, n] = last(arm);
        const set = (group, on) => { if (on) group.add(arm.name); else group.delete(arm.name); this.ctx.redraw(); };
        const box = (words, checked, change) => el("label.box", null, el("input", { type: "checkbox", checked, onchange: (event) => change(event.target.checked) }), ` ${words}`);
        return [[swatch(i), arm.name], [box("mean", !this.hidden.has(arm.name), (on) => set(this.hidden, !on)), box("cells", this.cells.has(arm.name), (on) => set(this.cells, on))],
          number(step), number(mean), number(low), number(high), n === null ? "–" : `${count(n)} of ${count(arm.n_cells)}`];
      }), { wide: true });
  }

  read(x, said) {
    const value = this.curves?.value;
    if (!value) return;
    if (x === null) {
      draw(this.readout, el("p.readout", null, el("span.quiet", null, "Point at the curves to read them.")));
      return;
    }
    const arms = value.arms.map((arm, i) => ({ i, name: arm.name, p: nearest(arm.points, x) })).filter((a) => a.p !== null && !this.hidden.has(a.name));
    const words = ({ p }) => `${number(p[1])}${p[2] !== p[3] ? ` (${number(p[2])} to ${number(p[3])})` : ""}`;
    const shown = arms.slice(0, 12);
    draw(this.readout, el("p.readout", null, el("b", null, `${value.x ?? "step"} ${number(Math.round(x))}`),
      shown.map((a) => el("span", null, swatch(a.i), `${a.name} `, el("b", null, words(a)))), arms.length > shown.length ? el("span", null, `and ${plural(arms.length - shown.length, "arm")}`) : null));
    if (said) say(`${value.x ?? "step"} ${number(Math.round(x))}: ${shown.map((a) => `${a.name} ${words(a)}`).join(", ")}`);
  }
}

const look = (i) => `s${i % LOOKS} d${i % 4}`;

const swatch = (i) => svg(`svg.swatch.${look(i).replace(" ", ".")}`, { "aria-hidden": "true", viewBox: "0 0 26 8" }, svg("path.curve.strong", { d: "M0 4H26" }));
