// What several pages have: addresses, the head of a program's pages, notices, the bar of states, and things that are fetched.
import { code, el, notice } from "/dom.mjs";
import { bytes, count, pauseEnd, pauseWords, plural, programState, stateOf, STATES } from "/words.mjs";

export const to = (...parts) => `#/${parts.map(encodeURIComponent).join("/")}`;

/** Head of a program's pages: where one is, its name and state, the question, and its pages. */
export function programHead(p, page, heading) {
  const s = programState(p);
  const tabs = [["overview", "Overview", to("program", p.id)], ["curves", "Curves", to("program", p.id, "curves")],
    ["plan", "Plan", to("program", p.id, "plan")], ["verdict", "Verdict", to("program", p.id, "verdict")]];
  return el("header.banner", { "data-key": "head", class: `banner ${s.tone}` },
    el("p.eyebrow", null, el("a", { href: "#/" }, "Programs"), " / ", heading ? el("a", { href: to("program", p.id) }, p.name) : p.name, heading ? ` / ${heading}` : ""),
    el("div.title", null, el("h1", null, heading ?? p.name), el(`span.pill.${s.tone}`, null, el("span", { "aria-hidden": "true" }, `${s.mark} `), s.word)),
    heading && page !== "verdict" ? null : el("p.question", null, p.question),
    el("nav.tabs", { "aria-label": `Pages of ${p.name}` }, tabs.map(([name, words, href]) =>
      el("a", { href, "aria-current": name === page ? "page" : null }, words))));
}

/** A bar of all tasks by state, with the same in words for those who do not see it. */
export function stateBar(tasks) {
  const total = tasks.planned || 1;
  const shown = Object.keys(STATES).filter((name) => tasks[name] > 0);
  const words = shown.map((name) => `${count(tasks[name])} ${stateOf(name).word}`).join(", ");
  return el("div.statebar", { role: "img", "aria-label": words || "no tasks" },
    shown.map((name) => el(`span.s-${stateOf(name).tone}`, { title: `${count(tasks[name])} ${stateOf(name).word}`, style: { flexGrow: tasks[name] / total } })));
}

/** What a reader must know about a program before anything else. */
export function notices(p) {
  const list = [];
  if (p.state === "paused" || (p.paused_by && p.paused_by !== "cancel")) {
    const [sentence, command] = pauseEnd(p);
    list.push(notice("warn", el("b", null, `${capital(pauseWords(p.paused_by))}. `), p.paused_why ? `${capital(p.paused_why)}. ` : "", sentence, command ? [" ", code(command)] : null));
  }
  if (p.verdict?.kind === "void") {
    list.push(notice("bad", el("b", null, "VOID: "), "a condition of validity or a check of the apparatus does not hold, so nothing is bound. ", el("a", { href: to("program", p.id, "verdict") }, "What failed")));
  }
  if (p.tasks.blocked > 0) {
    const causes = Object.entries(p.causes ?? {}).map(([cause, n]) => `${count(n)} ${cause.replaceAll("_", " ")}`).join(", ");
    list.push(notice("bad", el("b", null, `${plural(p.tasks.blocked, "task")} blocked${p.tasks.never_run ? `, ${count(p.tasks.never_run)} never run` : ""}`), causes ? ` (${causes}). ` : ". ",
      p.verdict ? "" : ["They are not tried again by themselves. ", code(`preregctl explain -p ${p.id} TASK`), " says why, ", code(`preregctl retry -p ${p.id}`), " gives them fresh budgets."]));
  }
  if (p.history === "unverified") list.push(notice("bad", el("b", null, "Unverified history. "), p.history_why ?? "Rows of the journal were missing, cut off or changed."));
  if (p.history === "checking") list.push(notice("warn", el("b", null, "Its journal is being checked. "), "Verdict and report wait for that. ", p.history_why ?? ""));
  if (p.unblinded) list.push(notice("warn", el("b", null, "Unblinded early. "), "Its scores were opened before the verdict; the report says so."));
  if (p.clock) list.push(notice("warn", p.clock));
  if (p.report_why) list.push(notice("bad", el("b", null, "No report yet. "), p.report_why));
  if (p.hashing) list.push(notice("quiet", `Reading the pinned files again before the verdict: ${bytes(p.hashing.done_bytes)} of ${bytes(p.hashing.total_bytes)}.`));
  if (p.superseded_by?.length) list.push(notice("quiet", `Superseded by ${p.superseded_by.join(", ")}.`));
  return list.map((n, i) => (n.dataset.key = `notice-${i}`, n));
}

export const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** Instead of a program that the daemon does not serve: why, and what to do. */
export function missing(id, live) {
  const all = el("p", null, el("a", { href: "#/" }, "All programs"));
  const damaged = live.status.unloaded.find((u) => u.id === id);
  if (damaged || live.removed === "damaged") return [el("h1", null, "This program is damaged"), el("p.sub", null, code(id)), ...damage(damaged?.why), all];
  if (live.removed === "removed") return [el("h1", null, "This program was removed"), all];
  return [el("h1", null, "No such program"), el("p", null, "The daemon knows no program ", code(id), "."), all];
}

function damage(why) {
  const commands = ["preregctl stop", why?.includes("preregctl rebuild") ? "preregctl rebuild" : null, "preregd serve --http"];
  return [notice("bad", el("b", null, "The daemon does not serve it. "), why ? capital(`${why}.`) : "The daemon's log says why."),
    el("p", null, "None of its tasks is started. Attempts that already run go on, and its folder stays as it is. Other programs are not affected."),
    el("p", null, commands[1] ? "To repair it:" : "To repair it, correct what is named above, then restart the daemon:"), el("pre.command", null, commands.filter(Boolean).join("\n"))];
}

const REST = 20; // times what an answer took: a tab asks for at most a 20th of the time,
const REST_MAX_MS = 60000; // and once a minute, however long the machine slept meanwhile
const AGAIN_MS = 1000; // after a failure that may pass

/** Something that is fetched: once, or again when `every` ms have passed. value, error and whether it is sealed. */
export class Fetched {
  constructor(ctx, ask, every = 0) {
    Object.assign(this, { ctx, ask, every, value: null, error: null, busy: false, at: 0, took: 0, turn: 0 });
  }

  /** Something else is asked for from now on: what is under way is dropped. */
  reset() {
    Object.assign(this, { value: null, error: null, busy: false, at: 0, turn: this.turn + 1 });
  }

  get sealed() {
    return this.error?.name === "sealed";
  }

  /** How long after the last question the next one may be asked. */
  get rest() {
    if (this.error !== null && !(this.error.status < 500)) return AGAIN_MS;
    return this.every === 0 ? Infinity : Math.max(this.every, Math.min(REST * this.took, REST_MAX_MS));
  }

  async refresh(force = false) {
    if (this.busy || this.ctx.live.state === "gone" || document.hidden) return;
    const began = Date.now();
    if (!force && this.at > 0 && began - this.at < this.rest) return;
    this.busy = true;
    this.at = began;
    const turn = this.turn;
    try {
      const value = await this.ask();
      if (turn !== this.turn) return;
      this.value = value;
      this.error = null;
    } catch (error) {
      if (turn !== this.turn) return;
      this.error = error;
    }
    this.busy = false;
    this.took = Date.now() - began;
    this.ctx.redraw();
  }
}

export const sealedNotice = (what) => notice("seal", el("b", null, "Sealed until the verdict. "), `${what} are not shown before the whole plan has run, so that nobody can stop, retry or choose by them.`);

/** "CELL/STAGE" -> [CELL, STAGE]; a check of an apparatus has no stage. */
export function cut(task) {
  const at = task.lastIndexOf("/");
  return at < 0 ? [task, ""] : [task.slice(0, at), task.slice(at + 1)];
}
