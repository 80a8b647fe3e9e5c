// Cells × stages. Only the rows in sight are in the document, whatever the number of cells; the table says how many there are
// (aria-rowcount), and one cell of it is in the order of the keyboard, moved by the arrows.
import { el, plain } from "/dom.mjs";
import { count, duration, number, percent, stateOf, STATES } from "/words.mjs";

const ROW = 32; // px, as page.css has it
const BEYOND = 6; // rows kept above and below
const WHOLE = 24; // so many rows are shown without a scrollbar of their own

export class Matrix {
  constructor(address) {
    this.address = address;
    this.state = null;
    this.text = "";
    this.grid = null;
    this.seen = "";
    this.headed = ""; // what the head says
    this.height = 0; // of the view, when rows were laid last
    this.rows = []; // indices of the cells that are shown
    this.drawn = new Map(); // row -> its <tr>
    this.active = [0, 0]; // row, column; column 0 is the name
    this.build();
  }

  build() {
    this.caption = el("caption.hidden", null, "Cells and stages");
    this.head = el("tr");
    this.above = el("tr.space", { "aria-hidden": "true" }, el("td"));
    this.below = el("tr.space", { "aria-hidden": "true" }, el("td"));
    this.body = el("tbody", null, this.above, this.below);
    this.grown = el("table", { role: "grid" }, this.caption, el("thead", null, this.head), this.body);
    this.view = el("div.matrix", { role: "region", "aria-label": "Cells and stages", tabindex: "0", onkeydown: (event) => this.press(event) }, this.grown);
    this.none = el("p.quiet", { hidden: true }, "No cell is like that.");
    this.root = el("div", null, this.view, this.none);
    this.view.addEventListener("scroll", () => this.lay(), { passive: true });
    this.view.addEventListener("focusin", (event) => this.note(event.target));
    new ResizeObserver(() => this.view.clientHeight !== this.height && this.lay()).observe(this.view);
  }

  filter({ state = this.state, text = this.text }) {
    this.state = state;
    this.text = text;
    this.view.scrollTop = 0;
    this.active = [0, 0];
    if (this.grid !== null) this.take();
  }

  show(grid) {
    const seen = `${grid.program} ${grid.version}`;
    if (this.grid === grid && this.seen === seen) return;
    if (this.grid !== grid) {
      this.grid = grid;
      this.factors = factorsOf(grid.cells);
      if (this.pattern?.childElementCount !== grid.stages.length + 1) this.pattern = rowPattern(grid.stages.length);
    }
    this.seen = seen;
    this.take();
  }

  take() {
    const words = this.text.toLowerCase().split(/[\s,]+/).filter(Boolean);
    const { cells } = this.grid;
    this.rows = [];
    const fits = (name) => words.length === 0 || words.every((w) => name.toLowerCase().includes(w));
    for (let i = 0; i < cells.length; i++) {
      if (fits(cells[i].name) && (this.state === null || cells[i].tasks.some((t) => t?.state === this.state))) this.rows.push(i);
    }
    this.drawHead();
    this.view.classList.toggle("tall", this.rows.length > WHOLE);
    this.view.hidden = this.rows.length === 0;
    this.none.hidden = this.rows.length > 0;
    this.grown.setAttribute("aria-rowcount", this.rows.length + 1);
    this.grown.setAttribute("aria-colcount", this.grid.stages.length + 1);
    this.active[0] = Math.max(0, Math.min(this.active[0], this.rows.length - 1));
    this.lay();
  }

  drawHead() {
    const { stages, cells } = this.grid;
    const named = this.factors === null ? "cell" : this.factors.join(" · ");
    const text = `${count(this.rows.length)} of ${count(cells.length)} cells, ${count(stages.length)} stages. Arrows move, Enter opens a task.`;
    if (this.caption.textContent !== text) this.caption.replaceChildren(el("span", null, text));
    const bars = stages.map((_, s) => {
      const n = {};
      for (const cell of cells) n[cell.tasks[s]?.state] = (n[cell.tasks[s]?.state] ?? 0) + 1;
      return n;
    });
    const headed = JSON.stringify([named, stages, cells.length, bars]);
    if (this.headed === headed) return;
    this.headed = headed;
    this.head.replaceChildren(el("th.name", { scope: "col", title: named }, named), ...stages.map((stage, s) => el("th", { scope: "col", title: stage },
      el("span.stage", null, stage), el("span.sub", null, `${count(bars[s].done ?? 0)} / ${count(cells.length)}`),
      el("span.statebar", { "aria-hidden": "true" }, Object.keys(STATES).filter((k) => bars[s][k]).map((k) => el(`span.s-${stateOf(k).tone}`, { style: { flexGrow: bars[s][k] } })))))) ;
    this.grown.style.minWidth = `${7.6 + 4.3 * stages.length}rem`;
  }

  /** Puts the rows in sight into the document, and takes the others out. */
  lay() {
    if (this.grid === null) return;
    const started = performance.now();
    const tall = this.rows.length > WHOLE;
    const first = tall ? Math.max(0, Math.floor(this.view.scrollTop / ROW) - BEYOND) : 0;
    this.height = this.view.clientHeight;
    const last = tall ? Math.min(this.rows.length, first + Math.ceil((this.height || 640) / ROW) + 2 * BEYOND) : this.rows.length;
    for (const [row, tr] of this.drawn) {
      if (row >= first && row < last) continue;
      if (tr.contains(document.activeElement)) this.view.focus({ preventScroll: true });
      tr.remove();
      this.drawn.delete(row);
    }
    this.space(this.above, first);
    this.space(this.below, this.rows.length - last);
    let before = this.above;
    for (let row = first; row < last; row++) {
      let tr = this.drawn.get(row);
      if (tr === undefined || tr.pattern !== this.pattern) {
        tr?.remove();
        tr = this.pattern.cloneNode(true);
        tr.pattern = this.pattern;
        this.drawn.set(row, tr);
      }
      if (before.nextSibling !== tr) before.after(tr);
      this.drawRow(tr, row);
      before = tr;
    }
    this.took = performance.now() - started;
  }

  space(tr, rows) {
    tr.firstChild.colSpan = this.grid.stages.length + 1;
    tr.style.height = `${rows * ROW}px`;
    tr.hidden = rows === 0;
  }

  drawRow(tr, row) {
    const { stages, cells } = this.grid;
    const cell = cells[this.rows[row]];
    if (tr.row !== row) tr.setAttribute("aria-rowindex", (tr.row = row) + 2);
    const name = tr.firstChild.firstChild;
    if (name.dataset.cell !== cell.name) {
      name.dataset.cell = cell.name;
      name.title = plain(cell.name);
      name.href = this.address(cell.name, stages[0]);
      name.setAttribute("aria-label", plain(cell.name));
      name.textContent = plain(this.factors === null ? cell.name : cell.name.split(",").map((part) => part.slice(part.indexOf("=") + 1)).join(" · "));
    }
    this.reach(name, row, 0);
    for (let s = 0; s < stages.length; s++) this.drawTask(tr.children[s + 1], cell, s, row);
  }

  drawTask(td, cell, s, row) {
    const task = cell.tasks[s];
    const a = td.firstChild;
    this.reach(a, row, s + 1);
    if (task === undefined || (a.task === task && a.cell === cell.name)) return;
    a.task = task;
    a.cell = cell.name;
    const { mark, word, tone } = stateOf(task.state);
    const share = percent(task.done, task.total);
    const shown = task.state === "running" && share !== null ? `${share} %` : task.cause ?? word;
    td.className = `task s-${tone}`;
    a.href = this.address(cell.name, this.grid.stages[s]);
    a.children[0].textContent = mark;
    a.children[1].textContent = shown.replaceAll("_", " ") + (task.attempts > 1 ? ` ×${task.attempts}` : "");
    a.children[2].style.width = task.state === "running" && share !== null ? `${share}%` : "0";
    const words = describe(task, word, share);
    a.setAttribute("aria-label", plain(`${this.grid.stages[s]} of ${cell.name}: ${words}`));
    a.title = words;
  }

  // ── keyboard ───────────────────────────────────────────────────────────────────────────────────

  reach(a, row, column) {
    a.at = [row, column];
    const index = row === this.active[0] && column === this.active[1] ? 0 : -1;
    if ((a.reached ?? -1) !== index) a.tabIndex = a.reached = index;
  }

  note(target) {
    if (!target.at) return;
    const [row, column] = this.active;
    const before = this.drawn.get(row)?.children[column]?.firstChild;
    this.active = [...target.at];
    if (before) this.reach(before, row, column);
    this.reach(target, ...this.active);
  }

  press(event) {
    const last = this.rows.length - 1;
    const page = Math.max(1, Math.floor(this.view.clientHeight / ROW) - 2);
    const moves = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1], PageDown: [page, 0], PageUp: [-page, 0] };
    let [row, column] = this.active;
    if (event.altKey || event.metaKey || (event.ctrlKey && !["Home", "End"].includes(event.key))) return;
    if (event.key === "Home") [row, column] = event.ctrlKey ? [0, 0] : [row, 0];
    else if (event.key === "End") [row, column] = event.ctrlKey ? [last, this.grid.stages.length] : [row, this.grid.stages.length];
    else if (moves[event.key]) [row, column] = [row + moves[event.key][0], column + moves[event.key][1]];
    else return;
    event.preventDefault();
    this.go(Math.max(0, Math.min(last, row)), Math.max(0, Math.min(this.grid.stages.length, column)));
  }

  go(row, column) {
    this.active = [row, column];
    if (this.rows.length > WHOLE) {
      const head = this.head.parentElement.offsetHeight;
      const top = row * ROW;
      if (top < this.view.scrollTop) this.view.scrollTop = top;
      else if (top + ROW + head > this.view.scrollTop + this.view.clientHeight) this.view.scrollTop = top + ROW + head - this.view.clientHeight;
    }
    this.lay();
    this.drawn.get(row)?.children[column]?.firstChild?.focus({ preventScroll: this.rows.length > WHOLE });
  }
}

/** An empty row, of which every row is a copy. */
function rowPattern(nStages) {
  const task = () => el("td", null, el("a", { tabindex: "-1" }, el("span.mark", { "aria-hidden": "true" }), el("span.word"), el("span.fill")));
  return el("tr", null, el("th.name", { scope: "row" }, el("a", { tabindex: "-1" })), Array.from({ length: nStages }, task));
}

/** The factors' names, when every cell is made of the same ones in the same order; else null. */
function factorsOf(cells) {
  if (cells.length === 0) return null;
  const factors = cells[0].name.split(",").map((part) => part.slice(0, Math.max(0, part.indexOf("="))));
  const fits = (parts) => parts.length === factors.length && factors.every((f, i) => f !== "" && parts[i].startsWith(`${f}=`));
  return cells.every((c) => fits(c.name.split(","))) ? factors : null;
}

function describe(task, word, share) {
  const parts = [task.cause ? `${word} (${task.cause.replaceAll("_", " ")})` : word];
  if (share !== null && task.state === "running") parts.push(`${share} %, ${number(task.done)} of ${number(task.total)} ${task.unit ?? ""}`.trim());
  else if (task.section) parts.push(task.section);
  if (task.eta_ms !== null && task.eta_ms !== undefined && task.state === "running") parts.push(`about ${duration(task.eta_ms)} left`);
  if (task.attempts > 1) parts.push(`attempt ${task.attempts}`);
  return parts.join(", ");
}
