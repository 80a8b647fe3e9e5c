// Which page an address means, and the pages that are mostly words: programs, machine, plan, verdict.
import { code, el, facts, figures, notice, table } from "/dom.mjs";
import { capital, cut, Fetched, missing, notices, programHead, sealedNotice, stateBar, to } from "/parts.mjs";
import { bytes, count, duration, number, pauseWords, plural, programState, time } from "/words.mjs";
import { ProgramPage } from "/program.mjs";
import { CurvesPage } from "/curves.mjs";
import { CellPage } from "/cell.mjs";

/** A page: key (equal keys are the same page), site, program?, title(), draw() -> nodes; perhaps open(), after(main), navigate(next), close(). */
export function pageFor(parts, query, ctx) {
  const [first, id, what, ...rest] = parts;
  if (first === "machine") return new MachinePage(ctx);
  if (first === "program" && id !== undefined) {
    switch (what) {
      case undefined: return new ProgramPage(ctx, id);
      case "curves": return new CurvesPage(ctx, id, query);
      case "cell": return new CellPage(ctx, id, rest, query);
      case "plan": return new PlanPage(ctx, id);
      case "verdict": return new VerdictPage(ctx, id);
    }
  }
  return first === undefined ? new ProgramsPage(ctx) : new NoPage(parts.join("/"));
}

class NoPage {
  constructor(path) {
    Object.assign(this, { key: `none/${path}`, path });
  }

  title() {
    return "no such page";
  }

  draw() {
    return el("div.text", null, el("h1", null, "No such page"), el("p", null, "There is nothing at ", code(this.path), ". ", el("a", { href: "#/" }, "All programs")));
  }
}

// ── programs ─────────────────────────────────────────────────────────────────────────────────────

class ProgramsPage {
  constructor(ctx) {
    Object.assign(this, { ctx, key: "programs", site: "programs" });
  }

  title() {
    return "programs";
  }

  draw() {
    const { programs, unloaded, daemon } = this.ctx.live.status;
    if (programs.length === 0 && unloaded.length === 0) return this.none(daemon);
    const names = new Map();
    for (const p of programs) names.set(p.name, (names.get(p.name) ?? 0) + 1);
    const busy = programs.filter((p) => !p.verdict && p.state !== "finished").length;
    return [
      el("div.title", { "data-key": "title" }, el("h1", null, "Programs")),
      el("p.sub", { "data-key": "sub" }, `${plural(programs.length, "program")}, ${busy === 0 ? "none at work" : `${count(busy)} without a verdict`} · `,
        `${count(daemon.slots.used)} of ${plural(daemon.slots.total, "slot")} taken${daemon.queued ? ` · ${count(daemon.queued)} in Slurm` : ""}`),
      unloaded.map((u) => el("p.notice.bad", { "data-key": `unloaded-${u.id}` }, el("b", null, el("a", { href: to("program", u.id) }, u.id), " is damaged and not served. "), capital(`${u.why}.`))),
      el("ul.programs", { "data-key": "list" }, programs.map((p) => this.card(p, names.get(p.name) > 1))),
    ];
  }

  /** named: others have the same name, so that its id tells it apart. */
  card(p, named) {
    const s = programState(p);
    const done = p.tasks.done + p.tasks.blocked + p.tasks.never_run;
    const left = p.verdict ? `took ${duration(p.elapsed_ms)}` : p.eta_ms === null ? "time left not known yet" : `about ${duration(p.eta_ms)} left`;
    const trouble = [p.tasks.blocked > 0 ? `${count(p.tasks.blocked)} blocked` : null, p.state === "paused" ? p.paused_why ?? pauseWords(p.paused_by) : null,
      p.behind ? `behind ${p.behind}` : null].filter(Boolean).join(" · ");
    return el(`li.card.${s.tone}`, { "data-key": p.id },
      el("div.title", null, el("h2", null, el("a", { href: to("program", p.id) }, p.name)), el(`span.pill.${s.tone}`, null, el("span", { "aria-hidden": "true" }, `${s.mark} `), s.word)),
      named ? el("p.sub.id", null, code(p.id)) : null,
      el("p.question", null, p.question),
      stateBar(p.tasks),
      el("p.sub", null, `${count(done)} of ${plural(p.tasks.planned, "task")} · ${plural(p.n_cells, "cell")} · ${left}`),
      trouble ? el("p.trouble", null, trouble) : null);
  }

  none(daemon) {
    return el("div.text", { "data-key": "none" },
      el("h1", null, "No programs yet"),
      el("p", null, "This daemon has nothing to do. Write a plan, lock it and submit it:"),
      el("pre.command", null, "preregctl init my_grid\npreregctl check my_grid/grid.toml\npreregctl lock my_grid/grid.toml\npreregd submit my_grid/grid.toml"),
      el("p.sub", null, "It appears here by itself. State folder: ", code(daemon.state)));
  }
}

// ── machine ──────────────────────────────────────────────────────────────────────────────────────

function meter(name, used, total, words, more) {
  const share = total > 0 ? Math.min(1, used / total) : 0;
  return el(`div.meter${share > 0.95 ? ".full" : ""}`, null, el("p.name", null, name),
    el("div.track", { role: "img", "aria-label": `${name}: ${words}` }, el("span", { style: { width: `${(100 * share).toFixed(2)}%` } })),
    el("p.words", null, words), more ? el("p.sub", null, more) : null);
}

class MachinePage {
  constructor(ctx) {
    Object.assign(this, { ctx, key: "machine", site: "machine" });
    this.machine = new Fetched(ctx, () => ctx.live.json("/api/machine"), 2000);
    this.disk = new Fetched(ctx, () => ctx.live.json("/api/disk"), 60000);
  }

  open() {
    this.machine.refresh();
    this.disk.refresh();
  }

  title() {
    return "machine";
  }

  draw() {
    this.open();
    const m = this.machine.value;
    if (m === null) return el("p.quiet", { "data-key": "first" }, this.machine.error?.message ?? "Asking the daemon …");
    const memory = m.memory.total_bytes - m.memory.available_bytes;
    return [
      el("div.title", { "data-key": "title" }, el("h1", null, m.host)),
      el("p.sub", { "data-key": "sub" }, `${plural(m.cores, "core")} · preregd ${this.ctx.live.status.daemon.version}, process ${this.ctx.live.status.daemon.pid}, up since ${time(this.ctx.live.status.daemon.started)}`),
      el("div.meters", { "data-key": "meters" },
        meter("Slots", m.slots.used, m.slots.total, `${count(m.slots.used)} of ${count(m.slots.total)} taken`),
        meter("Memory", memory, m.memory.total_bytes, `${bytes(memory)} of ${bytes(m.memory.total_bytes)} used`, `${bytes(m.memory.promised_bytes)} promised to attempts`),
        meter("Disk", m.disk.total_bytes - m.disk.free_bytes, m.disk.total_bytes, `${bytes(m.disk.free_bytes)} of ${bytes(m.disk.total_bytes)} free`, m.disk.path),
        m.gpus.map((g) => meter(`GPU ${g.index ?? "?"}`, g.used_bytes ?? 0, g.memory_bytes, g.used_bytes === null ? `${bytes(g.memory_bytes)}` : `${bytes(g.used_bytes)} of ${bytes(g.memory_bytes)} used`,
          [g.model ?? "", g.tasks.length ? ` · ${g.tasks.join(", ")}` : " · free"]))),
      m.gpus_why ? el("p.notice.warn", { "data-key": "gpus-why" }, m.gpus_why) : null,
      el("section", { "data-key": "holders" }, el("h2", null, "Who holds what"), this.holders(m.holders)),
      el("section", { "data-key": "disk" }, el("h2", null, "What takes the disk"), this.disks()),
    ];
  }

  holders(list) {
    if (list.length === 0) return el("p.quiet", null, "No attempt is at work.");
    return table("Attempts at work, and what they were given", [{ title: "task" }, { title: "program" }, { title: "attempt", kind: "num" }, { title: "slots", kind: "num" },
      { title: "memory", kind: "num" }, { title: "GPUs" }, { title: "where" }, { title: "since", kind: "time" }],
    list.map((h) => {
      const [cell, stage] = cut(h.task);
      return [el("a", { href: to("program", h.program, "cell", cell, stage) }, h.task), h.program, count(h.attempt), count(h.slots), h.memory_bytes ? bytes(h.memory_bytes) : "–",
        h.gpus?.length ? h.gpus.map((g) => g?.index ?? g).join(", ") : "–", h.node ?? h.executor ?? "here", time(h.since)];
    }), { wide: true });
  }

  disks() {
    const d = this.disk.value;
    if (d === null) return el("p.quiet", null, this.disk.error?.message ?? "Counting files …");
    const rows = d.programs.map((p) => {
      const free = (p.freeable ?? []).reduce((most, f) => Math.max(most, f.bytes), 0);
      return [el("a", { href: to("program", p.id) }, p.id), bytes(p.bytes.cells), bytes(p.bytes.journal), bytes(p.bytes.report), `${bytes(p.bytes.all)}${p.bytes.partial ? " or more" : ""}`, free ? bytes(free) : "–"];
    });
    return [table("By program; preregctl disk says how to free some of it", [{ title: "program" }, ...["cells", "journal", "report", "all", "could be freed"].map((title) => ({ title, kind: "num" }))], rows, { wide: true }),
      facts([["Database", bytes(d.database_bytes)], ["Copies of workers and data", bytes(d.objects_bytes)], ["Log", bytes(d.log_bytes)]])];
  }
}

// ── plan ─────────────────────────────────────────────────────────────────────────────────────────

class PlanPage {
  constructor(ctx, id) {
    Object.assign(this, { ctx, key: `plan/${id}`, site: "programs", program: id });
    this.plan = new Fetched(ctx, () => ctx.live.json("/api/plan", { program: id }));
    this.verdict = new Fetched(ctx, () => ctx.live.json("/api/verdict", { program: id }));
  }

  open() {
    this.plan.refresh();
  }

  title() {
    return `plan of ${this.ctx.live.summary(this.program)?.name ?? this.program}`;
  }

  draw() {
    const p = this.ctx.live.summary(this.program);
    if (p === null) return el("div.text", null, missing(this.program, this.ctx.live));
    this.plan.refresh();
    if (p.verdict) this.verdict.refresh();
    const fired = this.verdict.value?.verdict?.rows_fired ?? []; // counted from 1
    const head = programHead(p, "plan", "Plan");
    const plan = this.plan.value;
    if (plan === null) return [head, el("p.quiet", { "data-key": "first" }, this.plan.error?.message ?? "Reading the plan …")];
    const named = (caption, list, first, second) => list.length ? table(caption, [{ title: first }, { title: second }], list.map((x) => [x.name, x.text])) : el("p.quiet", null, "None.");
    return [head, el("div", { "data-key": "body" },
      facts([["Root", code(plan.root)], ["Lock", code(plan.lock)], ["Amendments", plan.amendments ? count(plan.amendments) : "none"]]),
      el("h2", null, "Factors"),
      table(`${plural(plan.n_cells ?? p.n_cells, "cell")}: every combination of levels${plan.replicates > 1 ? `, ${count(plan.replicates)} replicates of each condition` : ""}`,
        [{ title: "factor" }, { title: "levels" }, { title: "" }], plan.factors.map((f) => [f.name, f.levels.join(", "), f.replicate ? "replicates" : ""])),
      el("h2", null, "Stages"),
      table("What runs in every cell, in this order", [{ title: "stage" }, { title: "command" }, { title: "after" }, { title: "results" }],
        plan.stages.map((s) => [s.name, code(s.command), (s.after ?? []).join(", ") || "–", s.seals ? "sealed until the verdict" : "open"]), { wide: true }),
      el("h2", null, "Truth table"),
      plan.table.inputs?.length ? table("Inputs, and when each has which level", [{ title: "input" }, { title: "level" }, { title: "condition" }],
        plan.table.inputs.flatMap((input) => input.levels.map((l, i) => [i === 0 ? input.name : el("span.hidden", null, input.name), l.name, code(l.text)]))) : null,
      table(`Rows: every combination of levels has one outcome${plan.table.n_rows > plan.table.rows.length ? ` (${count(plan.table.rows.length)} of ${count(plan.table.n_rows)} are shown)` : ""}`,
        [{ title: "row", kind: "num" }, ...plan.table.columns.map((title) => ({ title })), { title: "outcome" }],
        plan.table.rows.map((r, i) => Object.assign([count(i + 1), ...r.cells, el("b", null, r.outcome)], { tone: fired.includes(i + 1) ? "lit" : undefined }))),
      table("Outcomes, with how probable they were held to be", [{ title: "outcome" }, { title: "prior", kind: "num" }, { title: "meaning" }],
        plan.outcomes.map((o) => [o.name, o.prior === null ? "–" : number(o.prior), o.text])),
      el("h2", null, "Gates"), named("What a score must clear, and what must hold for a verdict", plan.gates, "gate", "rule"),
      el("h2", null, "Contrasts"), named("What is compared", plan.contrasts, "contrast", "arms"),
      el("h2", null, "Held fixed"), this.fixed(plan.held_fixed),
      el("h2", null, "Scope"), this.scope(plan.scope))];
  }

  fixed(f) {
    if (!f || f.rows.length === 0) return el("p.quiet", null, "Nothing is declared about the workers' sizes.");
    const equal = f.columns.map((_, i) => f.rows.every((r) => r[i] === f.rows[0][i]));
    return table("What every condition has; columns that are the same throughout are marked =", f.columns.map((title, i) => ({ title: i > 0 && equal[i] && f.rows.length > 1 ? `${title} =` : title.replaceAll("_", " "), kind: i > 0 ? "num" : "text" })),
      f.rows.map((r) => r.map((v, i) => (i > 0 && v !== "" && Number.isFinite(Number(v)) ? number(Number(v)) : v || "–"))), { wide: true });
  }

  scope(s) {
    if (s === null || s === undefined) return el("p.quiet", null, "The plan declares no scope.");
    const list = (title, items) => (items?.length ? [el("h3", null, title), el("ul", null, items.map((i) => el("li", null, typeof i === "string" ? i : [el("b", null, i.name), `: ${i.text}`])))] : null);
    return [list("It claims", s.claims), list("It does not claim", s.not_claimed), list("Confounds", s.confounds), s.mechanism ? [el("h3", null, "Mechanism"), el("p", null, s.mechanism)] : null, list("What would follow", s.forward_work)];
  }
}

// ── verdict ──────────────────────────────────────────────────────────────────────────────────────

const KINDS = { bound: "VERDICT", indeterminate: "INDETERMINATE", void: "VOID" };

class VerdictPage {
  constructor(ctx, id) {
    Object.assign(this, { ctx, key: `verdict/${id}`, site: "programs", program: id });
    this.verdict = new Fetched(ctx, () => ctx.live.json("/api/verdict", { program: id }));
    this.seen = null;
  }

  title() {
    return `verdict of ${this.ctx.live.summary(this.program)?.name ?? this.program}`;
  }

  draw() {
    const p = this.ctx.live.summary(this.program);
    if (p === null) return el("div.text", null, missing(this.program, this.ctx.live));
    const state = `${p.verdict?.kind} ${p.report} ${p.history}`;
    this.verdict.refresh(state !== this.seen);
    this.seen = state;
    const head = programHead(p, "verdict", "Verdict");
    if (!p.verdict) return [head, notices(p), el("div", { "data-key": "pending" }, this.pending(p))];
    const v = this.verdict.value;
    if (v === null) return [head, el("p.quiet", { "data-key": "first" }, this.verdict.error?.message ?? "Reading the verdict …")];
    return [head, el("div", { "data-key": "body" }, this.computed(p, v))];
  }

  pending(p) {
    const left = p.tasks.planned - p.tasks.done - p.tasks.blocked - p.tasks.never_run;
    return [
      p.sealed ? sealedNotice("Scores, curves of sealed stages and what the table would read now") : null,
      el("p", null, `The verdict is computed by the locked table once the last task has ended: ${plural(left, "task")} ${left === 1 ? "is" : "are"} left`, p.eta_ms === null ? "." : `, about ${duration(p.eta_ms)}.`),
      p.open.length ? el("p", null, `Read by the table and not sealed by any stage: ${p.open.join(", ")}.`) : null,
    ];
  }

  computed(p, v) {
    const kind = v.kind ?? p.verdict.kind;
    const tone = kind === "bound" ? "good" : kind === "void" ? "bad" : "warn";
    const d = v.verdict;
    const failed = (d?.validity ?? []).filter((x) => x.holds === false);
    return [
      el(`div.verdict.${tone}`, null, el("p.kind", null, KINDS[kind] ?? kind),
        el("h2", null, v.outcome ? el("span.outcome", null, v.outcome) : null, d?.title ?? (kind === "void" ? "Nothing is bound" : "")),
        d?.why ? el("p.lead", null, d.why) : null,
        failed.map((f) => el("p.lead", null, el("b", null, f.name), " does not hold: ", code(f.condition), f.why ? ` (${f.why})` : "")),
        d?.first_error ? el("p.lead", null, typeof d.first_error === "string" ? d.first_error : d.first_error.what ?? "") : null),
      p.report ? el("p.report", null, el("a.button", { href: `/report/${encodeURIComponent(p.id)}/report.html` }, "Open the report"), " with every table, figure and limitation.")
        : el("p.quiet", null, p.report_why ?? "The report is being written …"),
      v.history === "unverified" ? notice("bad", el("b", null, "Unverified history. "), v.history_why ?? "") : null,
      d === null || d === undefined ? el("p.quiet", null, "verdict.json cannot be read now; the next start of the daemon writes it again.") : this.details(d),
    ];
  }

  details(d) {
    const c = d.coverage?.counted;
    const range = (low, high) => (low === undefined || low === null ? "–" : `${number(low)} to ${number(high)}`);
    return [
      figures([["Prior", d.prior === null || d.prior === undefined ? null : number(d.prior)], ["Surprise", d.surprisal_bits === null || d.surprisal_bits === undefined ? null : `${number(d.surprisal_bits)} ${d.surprisal_bits === 1 ? "bit" : "bits"}`],
        c ? ["Counted tasks", `${count(c.done)} of ${count(c.planned)}`] : null, c ? ["Excluded", `${count(c.excluded)} of ${count(c.budget)} allowed`, c.excluded > c.budget ? "bad" : null] : null,
        ["Rows that fire", d.rows_fired?.length ? d.rows_fired.join(", ") : "none"]].filter((f) => f && f[1] !== null)),
      table("What the table read", [{ title: "input" }, { title: "level" }, { title: "possible" }], d.inputs.map((i) => [i.name, i.level ?? el("i", null, "open"), i.possible.join(", ")])),
      d.effects?.length ? table("What these inputs rest on", [{ title: "effect" }, { title: "value", kind: "num" }, { title: "interval", kind: "num" }, { title: "n", kind: "num" }, { title: "unit" }],
        d.effects.map((e) => [e.name, number(e.value), range(e.low, e.high), count(e.n), e.unit ?? ""]), { wide: true }) : null,
      d.validity?.length ? table("What must hold for the comparison to be valid", [{ title: "check" }, { title: "condition" }, { title: "holds" }],
        d.validity.map((x) => [x.name, code(x.condition), x.holds === null ? `open: ${x.why ?? ""}` : x.holds ? "✓ yes" : "✕ no"])) : null,
    ];
  }
}
