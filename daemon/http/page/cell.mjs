// One cell: its stages, why the chosen one is as it is, its attempts over time, the end of its log, its files.
import { code, el, facts, plain, table } from "/dom.mjs";
import { capital, Fetched, missing, programHead, to } from "/parts.mjs";
import { bytes, count, duration, number, percent, plural, stateOf, time } from "/words.mjs";

const LOG_BYTES = 65536;
const FILES = [["stdout", "Output"], ["stderr", "Errors"], ["events", "Events"]];

export class CellPage {
  constructor(ctx, id, [cell = "", stage = ""], query) {
    Object.assign(this, { ctx, key: `cell/${id}/${cell}/${stage}`, site: "programs", program: id, cell, stage });
    this.task = stage === "" ? cell : `${cell}/${stage}`;
    this.chosen = query.get("file"); // null: errors where there are any, else the output
    this.attempt = null; // null: the newest
    this.follow = true;
    const params = { program: id, task: this.task };
    this.explain = new Fetched(ctx, () => ctx.live.json("/api/explain", params), 15000);
    this.files = new Fetched(ctx, () => ctx.live.json("/api/files", params), 10000);
    this.log = new Fetched(ctx, () => ctx.live.text("/api/tail", { ...params, attempt: this.attemptNo(), file: this.file, bytes: LOG_BYTES }), 2000);
    this.pre = el("pre.log", { tabindex: "0", "aria-label": "End of the log" });
    this.pre.addEventListener("scroll", () => (this.follow = this.pre.scrollTop + this.pre.clientHeight >= this.pre.scrollHeight - 8), { passive: true });
  }

  get file() {
    if (this.chosen !== null) return this.chosen;
    const has = (name) => this.files.value?.files.some((f) => f.path === `${name}.log` && f.bytes > 0);
    return !has("stderr") && has("stdout") ? "stdout" : "stderr";
  }

  title() {
    return `${this.task} · ${this.ctx.live.summary(this.program)?.name ?? this.program}`;
  }

  attemptNo() {
    return this.attempt ?? this.explain.value?.attempt_list.at(-1)?.no ?? this.explain.value?.attempts ?? 1;
  }

  gridCell() {
    return this.ctx.live.grid?.cells.find((c) => c?.name === this.cell) ?? null;
  }

  draw() {
    const p = this.ctx.live.summary(this.program);
    if (p === null) return el("div.text", null, missing(this.program, this.ctx.live));
    const state = this.gridCell()?.tasks.find((t) => t?.stage === this.stage);
    const seen = state ? `${state.state} ${state.cause} ${state.attempts} ${state.section}` : "";
    this.explain.refresh(seen !== this.seen);
    this.seen = seen;
    const t = this.explain.value;
    const head = programHead(p, null, this.cell);
    if (t === null) return [head, el("p.quiet", { "data-key": "first" }, this.explain.error?.message ?? "Asking the daemon …")];
    if (t.attempt_list.length > 0) {
      this.files.refresh();
      const live = this.isLive(t);
      if (this.wasLive && !live) this.log.at = 0; // its last words
      this.wasLive = live;
      this.log.every = live ? 2000 : 0;
      if (this.reads !== this.file) this.log.reset((this.reads = this.file));
      this.log.refresh();
    }
    return [head, this.stages(), this.why(t, state ?? t), el("div", { "data-key": "facts" }, this.facts(t)),
      t.attempt_list.length > 0 ? [this.attempts(t), this.logSection(t), this.fileSection()] : null];
  }

  isLive(t) {
    return t.attempt_list.some((a) => a.no === this.attemptNo() && a.live);
  }

  stages() {
    const cell = this.gridCell();
    if (cell === null) return null;
    return el("nav.stages", { "data-key": "stages", "aria-label": "Stages of this cell" }, cell.tasks.map((task) => {
      const { mark, word, tone } = stateOf(task.state);
      const share = percent(task.done, task.total);
      return el(`a.s-${tone}`, { href: to("program", this.program, "cell", this.cell, task.stage), "aria-current": task.stage === this.stage ? "page" : null },
        el("b", null, task.stage), el("span", null, el("span", { "aria-hidden": "true" }, `${mark} `), word, task.cause ? ` (${task.cause.replaceAll("_", " ")})` : "", task.state === "running" && share !== null ? ` ${share} %` : ""));
    }));
  }

  why(t, now) {
    const { word, tone } = stateOf(t.state);
    const share = percent(now.done, now.total);
    const far = share === null || t.state !== "running" ? null : `${number(now.done)} of ${number(now.total)} ${now.unit ?? ""} (${share} %)${now.eta_ms ? `, about ${duration(now.eta_ms)} left` : ""}.`;
    const kind = { bad: "bad", warn: "warn", done: "good" }[tone] ?? "quiet";
    return el(`p.notice.${kind}`, { "data-key": "why" }, el("b", null, `${capital(word)}${t.cause ? ` (${t.cause.replaceAll("_", " ")})` : ""}. `),
      t.why_text && t.why_text !== `is ${word}` && t.why_text !== `is ${word}: ${t.cause}` ? `It ${t.why_text}. ` : "", far,
      t.narrower ? `Lost under narrower limits than others had: ${t.narrower}. ` : "",
      t.may_retry ? ["To give it fresh budgets: ", code(`preregctl retry -p ${this.program} ${this.task}`)] : t.state === "blocked" && t.retry_refusal ? capital(`${t.retry_refusal}.`) : "");
  }

  facts(t) {
    const budget = (b) => `${count(b.used)} of ${count(b.limit)}`;
    return facts([
      ["Results", t.sealed ? "sealed until the verdict" : "open"], ["Counted", t.counted ? "yes" : "no"],
      t.waits_for.length ? ["Waits for", t.waits_for.map((w) => `${w.stage} (${stateOf(w.state).word}${w.cause ? `, ${w.cause}` : ""})`).join(", ")] : null,
      t.not_before_ms ? ["Next attempt in", duration(t.not_before_ms)] : null,
      t.deadline_left_ms ? ["Deadline in", duration(t.deadline_left_ms)] : null,
      ["Used of its budgets", `crashes ${budget(t.budgets.crashes)}, attempts ${budget(t.budgets.attempts)}, without progress ${budget(t.budgets.no_progress)}`],
      t.on_disk ? ["On disk", t.on_disk.as_accepted === true ? `as accepted, ${plural(t.on_disk.artifacts, "artifact")}` : t.on_disk.why ?? "cannot be read now", t.on_disk.as_accepted === false ? "bad" : null] : null,
      t.garbage_lines ? ["Lines that are not events", count(t.garbage_lines), "warn"] : null,
    ]);
  }

  // ── attempts ───────────────────────────────────────────────────────────────────────────────────

  attempts(t) {
    const list = t.attempt_list;
    const ended = (a) => (a.ended ? new Date(a.ended) : new Date());
    const how = (a) => (a.live ? el("b", null, "at work") : [a.cause ? a.cause.replaceAll("_", " ") : a.code === 0 ? "✓ done" : a.reason ?? "ended", a.signal ? `, signal ${a.signal}` : a.code ? `, exit ${a.code}` : "", a.detail ? el("span.sub", null, ` ${a.detail}`) : ""]);
    return el("section", { "data-key": "attempts" }, el("h2", null, "Attempts"), this.timeline(list),
      table(plural(list.length, "attempt"), [{ title: "no", kind: "num" }, { title: "started", kind: "time" }, { title: "took", kind: "num" }, { title: "how it ended" }, { title: "went on from", kind: "num" }, { title: "where" }],
        list.map((a) => [el("button.plain", { type: "button", "aria-pressed": String(a.no === this.attemptNo()), title: "Show its log", onclick: () => this.choose({ attempt: a.no }) }, count(a.no)), time(a.started), duration(ended(a) - new Date(a.started)), how(a),
          a.resumed_from === null ? "the start" : number(a.resumed_from), [a.node ?? a.executor ?? "here", a.gpus?.length ? ` · GPU ${a.gpus.map((g) => g?.index ?? "?").join(", ")}` : ""]]), { wide: true }));
  }

  timeline(list) {
    const from = Math.min(...list.map((a) => new Date(a.started)));
    const until = Math.max(...list.map((a) => (a.ended ? new Date(a.ended) : new Date())), from + 1000);
    const at = (t) => (100 * (t - from)) / (until - from);
    return el("div.timeline", { role: "img", "aria-label": `${plural(list.length, "attempt")} over ${duration(until - from)}` },
      list.map((a) => {
        const left = at(new Date(a.started));
        const tone = a.live ? "work" : a.code === 0 && !a.cause ? "done" : "bad";
        return el(`span.s-${tone}`, { title: `attempt ${a.no}`, style: { left: `${left.toFixed(2)}%`, width: `max(3px, ${(at(a.ended ? new Date(a.ended) : new Date()) - left).toFixed(2)}%)` } });
      }),
      el("span.from", null, time(list.find((a) => +new Date(a.started) === from)?.started)), el("span.until", null, duration(until - from)));
  }

  // ── log and files ──────────────────────────────────────────────────────────────────────────────

  choose({ attempt = this.attempt, file = this.file }) {
    Object.assign(this, { attempt, chosen: file, follow: true });
    this.log.reset();
    this.ctx.redraw();
  }

  logSection(t) {
    const live = this.isLive(t);
    const empty = this.log.value === "" ? "Nothing was written there." : this.log.value === null ? this.log.error?.message ?? "Reading …" : null;
    return el("section", { "data-key": "log" }, el("h2", null, `Log of attempt ${count(this.attemptNo())}`),
      el("div.filters", null, el("div.chips", { role: "group", "aria-label": "Which file" }, FILES.map(([file, words]) =>
        el("button.chip", { type: "button", "aria-pressed": String(file === this.file), onclick: () => this.choose({ file }) }, words))),
        el("p.sub", null, live ? (this.follow ? "● follows" : "‖ scrolled back; scroll to the end to follow") : "ended", this.file === "events" && t.sealed ? " · what it measured is left out: sealed" : "")),
      empty ? el("p.quiet", { "data-key": "empty" }, empty) : null, el("div", { "data-own": "log", hidden: empty !== null }));
  }

  fileSection() {
    const f = this.files.value;
    return el("section", { "data-key": "files" }, el("h2", null, "Files of the newest attempt"),
      f === null ? el("p.quiet", null, this.files.error?.message ?? "Reading …") : table(f.folder, [{ title: "file" }, { title: "size", kind: "num" }, { title: "changed", kind: "time" }],
        f.files.map((x) => [code(x.path), bytes(x.bytes), time(x.modified)])));
  }

  after(main) {
    const slot = main.querySelector("[data-own=log]");
    if (slot === null) return;
    if (slot.firstChild !== this.pre) slot.replaceChildren(this.pre);
    const text = this.log.value ?? "";
    if (this.pre.shown === text) return;
    this.pre.shown = text;
    this.pre.textContent = plain(text);
    if (this.follow) this.pre.scrollTop = this.pre.scrollHeight;
  }
}
