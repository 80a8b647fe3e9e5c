// What the daemon says, kept up to date: one stream for the tab, closed while the tab is hidden, opened again from where it was.

const TRY_AGAIN_MS = [20, 500, 1000, 2000, 4000];
const SILENCE_MS = 45000; // the daemon says something every 15 s

/** An answer that is not what was asked for: status, name and message of the daemon. */
export class Refusal extends Error {
  constructor(status, name, message) {
    super(message);
    this.status = status;
    this.name = name;
  }
}

async function fetchChecked(path, options) {
  const answer = await fetch(path, { credentials: "same-origin", cache: "no-store", ...options });
  if (answer.ok) return answer;
  const what = await answer.json().catch(() => ({}));
  throw new Refusal(answer.status, what.error?.code ?? "failed", what.error?.message ?? `the daemon answered ${answer.status}`);
}

const address = (path, params) => `${path}${params ? `?${new URLSearchParams(params)}` : ""}`;

export class Live {
  constructor() {
    this.state = "connecting"; // connecting, live, hidden, gone, refused
    this.since = Date.now();
    this.heard = null; // when anything came last
    this.status = null;
    this.grid = null; // of the program that is watched: {program, stages, cells: [{name, tasks}], version}
    this.removed = null; // why the program that is watched is not served: "removed", "damaged", "unknown"; its stream has only summaries
    this.program = null;
    this.onchange = () => {};
    this.source = null;
    this.last = null;
    this.tries = 0;
    this.timer = null;
    document.addEventListener("visibilitychange", () => (document.hidden ? this.close("hidden") : this.open()));
    addEventListener("pagehide", () => this.close("hidden"));
    addEventListener("pageshow", (event) => event.persisted && this.open());
    setInterval(() => this.state === "live" && Date.now() - this.heard > SILENCE_MS && this.lose(), 5000);
  }

  async session(token) {
    await fetchChecked("/session", { headers: { Authorization: `Bearer ${token}` } });
    this.state = "connecting";
  }

  async json(path, params) {
    return this.guard(async () => (await fetchChecked(address(path, params))).json());
  }

  async text(path, params) {
    return this.guard(async () => (await fetchChecked(address(path, params))).text());
  }

  /** Whatever is asked for: without a session the whole page has to say so. */
  async guard(ask) {
    try {
      return await ask();
    } catch (error) {
      if (error.status === 401) this.refuse();
      throw error;
    }
  }

  /** Which program's cells are wanted besides the summaries of all; null: none. */
  watch(program) {
    if (program === this.program && this.source !== null) return;
    this.program = program;
    this.grid = null;
    this.removed = null;
    this.last = null;
    if (this.state !== "refused") this.open();
  }

  open() {
    this.shut();
    if (document.hidden) {
      this.enter("hidden");
      return;
    }
    if (this.state === "hidden" || this.state === "refused") this.enter("connecting");
    const params = new URLSearchParams();
    if (this.program !== null) params.set("program", this.program);
    if (this.last !== null) params.set("last", this.last);
    const source = new EventSource(`/api/stream?${params}`);
    this.source = source;
    const hear = (event, take) => {
      if (this.source !== source) return;
      if (event.lastEventId) this.last = event.lastEventId;
      this.tries = 0;
      this.heard = Date.now();
      if (this.state !== "live") this.enter("live");
      if (take) take(JSON.parse(event.data));
      this.onchange();
    };
    source.onopen = () => hear({}, null);
    source.addEventListener("status", (event) => hear(event, (data) => this.takeStatus(data)));
    source.addEventListener("cells", (event) => hear(event, (data) => this.takeCells(data)));
    source.addEventListener("gone", (event) => hear(event, (data) => this.takeGone(data)));
    source.onerror = () => this.source === source && this.lose();
  }

  takeStatus(data) {
    this.status = data;
    if (this.removed === null || this.summary(this.program) === null) return;
    this.removed = null; // it is back
    this.open();
  }

  takeGone(data) {
    this.removed = data.why;
    this.grid = null;
    this.last = null;
  }

  takeCells(data) {
    if (data.full || this.grid === null || this.grid.program !== data.program) {
      this.grid = { program: data.program, stages: data.stages, cells: [], version: 0 };
    }
    for (const { cell, name, stage, task } of data.changed) {
      (this.grid.cells[cell] ??= { name, tasks: [] }).tasks[stage] = task;
    }
    this.grid.version++;
  }

  /** The stream broke: ask plainly what is the matter, and try again for as long as the tab is open. */
  lose() {
    this.shut();
    const wait = TRY_AGAIN_MS[Math.min(this.tries++, TRY_AGAIN_MS.length - 1)];
    this.timer = setTimeout(async () => {
      try {
        this.takeStatus(await (await fetchChecked("/api/status")).json());
        this.open();
      } catch (error) {
        if (error.status === 401) this.refuse();
        else if (this.state !== "hidden") {
          if (this.state !== "gone") this.enter("gone");
          this.lose();
        }
      }
    }, wait);
  }

  refuse() {
    this.shut();
    this.enter("refused");
  }

  enter(state) {
    this.state = state;
    this.since = state === "gone" && this.heard !== null ? this.heard : Date.now();
    this.onchange();
  }

  shut() {
    clearTimeout(this.timer);
    this.source?.close();
    this.source = null;
  }

  close(state) {
    this.shut();
    if (this.state !== "refused") this.state = state;
  }

  summary(id) {
    return this.status?.programs.find((p) => p.id === id) ?? null;
  }
}
