// Words and figures: states, causes, times, sizes. One place, so that the pages agree, and agree with preregctl.

/** Every state of a task, in the order in which bars show them: its mark, its word, its tone. */
export const STATES = {
  done: { mark: "✓", word: "done", tone: "done" },
  running: { mark: "▸", word: "running", tone: "work" },
  starting: { mark: "▹", word: "starting", tone: "work" },
  queued: { mark: "◷", word: "in Slurm", tone: "work" },
  backoff: { mark: "↻", word: "backing off", tone: "warn" },
  ready: { mark: "○", word: "ready", tone: "wait" },
  waiting: { mark: "·", word: "waiting", tone: "wait" },
  blocked: { mark: "✕", word: "blocked", tone: "bad" },
  never_run: { mark: "–", word: "never run", tone: "off" },
};

export const stateOf = (name) => STATES[name] ?? { mark: "?", word: name, tone: "wait" };

/** Why tasks do not run, as preregctl says it. */
const WAITS = {
  slots: "wait for a free slot or cores",
  memory: "wait for memory",
  queue: "wait for a place in Slurm",
  priority: "wait behind a program of higher priority",
  gpus: "wait for GPUs",
  dependency: "wait for an earlier stage",
  backoff: "wait before the next attempt",
  paused: "wait because the program is paused",
  disk: "wait for disk space",
  apparatus: "wait until the apparatus check holds",
};

export const waitWords = (why) => WAITS[why] ?? `wait (${why})`;

const PAUSES = {
  user: "paused by a person",
  no_space: "paused: the disk is full",
  lock: "paused: the lock does not fit any more",
  apparatus: "paused: an apparatus check does not hold",
  failures: "paused: a stage fails in every cell",
  data: "paused: its data are away",
  host: "paused: this host is not fit",
  cancel: "ending",
  state: "paused: the state folder is not usable",
  folder: "paused: its folder is not usable",
};

export const pauseWords = (by) => PAUSES[by] ?? `paused (${by})`;

/** What ends a pause: [sentence, command]; without a command it ends by itself. */
export function pauseEnd(program) {
  const resume = `preregctl resume ${program.id}`;
  switch (program.paused_by) {
    case "data": return ["It continues by itself when they are back.", null];
    case "no_space": return ["It continues by itself when there is room again.", null];
    case "host":
    case "folder": return ["It is tried again by itself; this tries at once:", resume];
    case "failures": return ["No cell is given up. This tries the cells again:", resume];
    case "cancel": return ["It ends by itself.", null];
    default: return ["To continue:", resume];
  }
}

/** The one word for a program, and its tone. */
export function programState(p) {
  if (p.verdict) {
    if (p.verdict.kind === "void") return { word: "VOID", tone: "bad", mark: "✕" };
    if (p.verdict.kind === "indeterminate") return { word: "indeterminate", tone: "warn", mark: "?" };
    return { word: p.verdict.outcome ?? "bound", tone: "good", mark: "✓" };
  }
  if (p.removed) return { word: "removed", tone: "off", mark: "–" };
  if (p.state === "paused") return { word: "paused", tone: "warn", mark: "‖" };
  if (p.state === "finishing") return { word: "finishing", tone: "work", mark: "▸" };
  return { word: p.state, tone: p.state === "running" ? "work" : "off", mark: p.state === "running" ? "▸" : "·" };
}

export const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;
export const count = (n) => (n === null || n === undefined ? "–" : grouped(n));

/** A whole number with commas; toLocaleString() takes a hundred times as long. */
const grouped = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, ",");

/** "1 h 12 min", two units at most. */
export function duration(ms) {
  if (ms === null || ms === undefined) return "–";
  const s = Math.max(0, Math.round(ms / 1000));
  if (s < 1) return "< 1 s";
  if (s < 60) return `${s} s`;
  const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const i = units.findIndex(([size]) => s >= size);
  const [size, name] = units[i];
  const whole = Math.floor(s / size);
  const rest = Math.floor((s % size) / units[i + 1][0]);
  return rest > 0 && whole < 100 ? `${whole} ${name} ${rest} ${units[i + 1][1]}` : `${whole} ${name}`;
}

export function bytes(n) {
  if (n === null || n === undefined) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let i = 0;
  while (n >= 1024 && i < units.length - 1) {
    n /= 1024;
    i++;
  }
  return `${i === 0 || n >= 100 ? Math.round(n) : n.toFixed(1)} ${units[i]}`;
}

/** A number as a person reads it: four digits that matter. */
export function number(v) {
  if (v === null || v === undefined || !Number.isFinite(v)) return "–";
  const size = Math.abs(v);
  if (v === 0) return "0";
  if (size >= 1e6 || size < 1e-4) return v.toExponential(2).replace("e+", "e");
  if (Number.isInteger(v)) return grouped(v);
  return String(Number(v.toPrecision(4)));
}

/** Local time of day, with the date where it is another day. */
export function time(text) {
  if (!text) return "–";
  const t = new Date(text);
  const day = t.toDateString() === new Date().toDateString() ? "" : `${t.getFullYear()}-${two(t.getMonth() + 1)}-${two(t.getDate())} `;
  return `${day}${two(t.getHours())}:${two(t.getMinutes())}:${two(t.getSeconds())}`;
}

const two = (n) => String(n).padStart(2, "0");

export function percent(done, total) {
  if (!total || done === null || done === undefined) return null;
  return Math.min(100, Math.floor((100 * done) / total));
}
