// One program: how far it is, what needs a person, the matrix, and what waits for what.
import { code, el, facts, figures, notice, table } from "/dom.mjs";
import { Matrix } from "/matrix.mjs";
import { capital, missing, notices, programHead, stateBar, to } from "/parts.mjs";
import { count, duration, number, percent, plural, stateOf, STATES, time, waitWords } from "/words.mjs";

export class ProgramPage {
  constructor(ctx, id) {
    Object.assign(this, { ctx, key: `program/${id}`, site: "programs", program: id });
    this.matrix = new Matrix((cell, stage) => to("program", id, "cell", cell, stage));
  }

  title() {
    const p = this.ctx.live.summary(this.program);
    if (p === null) return this.program;
    const share = percent(p.tasks.done, p.tasks.planned);
    return p.verdict ? p.name : `${share} % · ${p.name}`;
  }

  draw() {
    const p = this.ctx.live.summary(this.program);
    if (p === null) return el("div.text", null, missing(this.program, this.ctx.live));
    return [
      programHead(p, "overview"),
      this.verdict(p),
      notices(p),
      el("section.how-far", { "data-key": "how-far" }, stateBar(p.tasks), this.figures(p)),
      el("section", { "data-key": "grid", "aria-label": "Cells and stages" },
        el("div.filters", { "data-key": "filters" }, this.filters(p)), el("div", { "data-own": "matrix" })),
      this.waits(p),
      p.apparatus.length ? this.apparatus(p) : null,
      el("section", { "data-key": "facts" }, el("h2", null, "Record"), facts([
        ["Scores", p.sealed ? "sealed until the verdict" : p.unblinded ? "opened early" : "open"],
        ["Submitted", time(p.submitted)], ["Finished", p.finished ? time(p.finished) : null],
        ["Root", code(p.root)], ["Amendments", p.amendments ? plural(p.amendments, "amendment") : null], ["Folder", code(p.folder)],
        ["Priority", p.priority !== 0 ? count(p.priority) : null], ["Lines of workers that are not events", p.garbage_lines ? count(p.garbage_lines) : null]])),
    ];
  }

  after(main) {
    const slot = main.querySelector("[data-own=matrix]");
    if (slot === null) return;
    if (slot.firstChild !== this.matrix.root) slot.replaceChildren(this.matrix.root);
    const grid = this.ctx.live.grid;
    if (grid !== null) this.matrix.show(grid);
  }

  verdict(p) {
    if (!p.verdict || p.verdict.kind === "void") return null;
    const bound = p.verdict.kind === "bound";
    return el(`div.verdict.${bound ? "good" : "warn"}`, { "data-key": "verdict" }, el("p.kind", null, bound ? "VERDICT" : "INDETERMINATE"),
      el("p.lead", null, el("b.outcome", null, p.verdict.outcome ?? "no outcome is bound"), " ", el("a", { href: to("program", p.id, "verdict") }, "What it rests on"),
        p.report ? [" · ", el("a", { href: `/report/${encodeURIComponent(p.id)}/report.html` }, "Report")] : null));
  }

  figures(p) {
    const t = p.tasks;
    const work = t.running + t.starting + t.queued;
    const c = p.counted;
    return figures([
      ["Done", `${count(t.done)} of ${count(t.planned)}`],
      p.verdict ? null : ["At work", count(work)],
      t.blocked + t.never_run > 0 ? ["Blocked, never run", `${count(t.blocked)}, ${count(t.never_run)}`, "bad"] : null,
      [p.verdict ? "Took" : "So far", duration(p.elapsed_ms)],
      p.verdict ? null : ["Left", p.eta_ms === null ? "not known yet" : `about ${duration(p.eta_ms)}`],
      ["Attempts", count(p.attempts)],
      ["Excluded", `${count(c.excluded)} of ${count(c.budget)} allowed`, c.excluded > c.budget ? "bad" : null],
    ]);
  }

  /** The legend, which is the filter as well. */
  filters(p) {
    const chosen = this.matrix.state;
    const button = (name, words, n) => el(`button.chip${name === null ? "" : `.s-${stateOf(name).tone}`}`, { type: "button", "aria-pressed": String(chosen === name),
      onclick: () => { this.matrix.filter({ state: name }); this.ctx.redraw(); } }, words, el("b", null, ` ${count(n)}`));
    return [
      el("div.chips", { role: "group", "aria-label": "Which cells are shown: those with a task that is" },
        button(null, "all cells", p.n_cells), Object.keys(STATES).filter((name) => p.tasks[name] > 0 || chosen === name).map((name) =>
          button(name, [el("span", { "aria-hidden": "true" }, `${stateOf(name).mark} `), stateOf(name).word], p.tasks[name]))),
      p.n_cells > 12 ? el("label.find", null, el("span", null, "Find "), el("input", { type: "search", "aria-label": "Find cells by name", placeholder: "arch=moe, seed=3",
        oninput: (event) => { this.matrix.filter({ text: event.target.value }); this.ctx.redraw(); } })) : null,
    ];
  }

  waits(p) {
    if (p.verdict) return null;
    const rows = p.not_running.map((w) => [waitWords(w.why), count(w.tasks)]);
    const more = [p.behind ? `Program ${p.behind} has a higher priority and is served first.` : null, p.gpus_why,
      ...p.elsewhere.map((e) => `${plural(e.attempts, "attempt")} in ${capital(e.executor)}: ${e.state}`),
      ...p.gpus.map((g) => `GPU ${g.index ?? g.uuid}${g.model ? ` (${g.model})` : ""}: ${g.tasks.join(", ")}`)].filter(Boolean);
    if (rows.length === 0 && more.length === 0) return null;
    return el("section", { "data-key": "waits" }, el("h2", null, "What waits, and why"),
      rows.length ? table("Tasks that are not at work", [{ title: "they" }, { title: "tasks", kind: "num" }], rows, { short: true }) : null,
      more.map((text) => notice("quiet", text)));
  }

  apparatus(p) {
    const rows = p.apparatus.map((a) => [a.name, `${number(a.expected)} ± ${number(a.within)}`, a.value === null ? "–" : number(a.value),
      a.holds === null ? stateOf(a.state).word : a.holds ? "✓ holds" : "✕ does not hold", a.declared ? a.why ?? a.cause ?? "" : "removed by an amendment"]);
    return el("section", { "data-key": "apparatus" }, el("h2", null, "Apparatus"),
      table("What a reference must score before anything counts", [{ title: "check" }, { title: "expected", kind: "num" }, { title: "scored", kind: "num" }, { title: "holds" }, { title: "" }], rows));
  }
}
