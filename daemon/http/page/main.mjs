// Starts the page: the token becomes a session, the address chooses a page, and what the daemon says is drawn once a frame.
import { code, draw, el, notice, plain } from "/dom.mjs";
import { Live } from "/live.mjs";
import { duration, time } from "/words.mjs";
import { pageFor } from "/views.mjs";

const main = document.getElementById("main");
const link = document.getElementById("link");
const live = new Live();
let page = null;
let drawing = false;

const LINKS = {
  connecting: () => ["◌", "connecting", "wait"],
  live: () => ["●", "live", "good"],
  hidden: () => ["‖", "resting", "wait"],
  gone: () => ["✕", `no answer since ${time(live.since)}`, "bad"],
  refused: () => ["✕", "no session", "bad"],
};

function drawLink() {
  const [mark, words, tone] = LINKS[live.state]();
  link.className = `link ${tone}`;
  draw(link, el("span", { "aria-hidden": "true" }, `${mark} `), words);
}

function refused() {
  return [
    el("h1", null, "This browser has no session"),
    notice("warn", "The daemon shows this page only to those who have its token. On the machine where it runs, type"),
    el("pre.command", null, "preregctl open"),
    el("p", null, "and open the address that it prints. Over ssh it prints the tunnel to type, too. If it worked before: the token was renewed (",
      code("preregctl open --new-token"), "), or the browser forgot the cookie."),
  ];
}

function gone() {
  const ago = duration(Date.now() - live.since);
  return el("p.bar", { role: "alert", "data-key": "gone" }, el("b", null, "The daemon does not answer"), ` since ${time(live.since)} (${ago}). `,
    "Attempts that run go on without it. Trying again. ", live.status ? "What you see is from then." : "", " To start it: ", code("preregd serve --http"), ".");
}

function drawNow() {
  drawing = false;
  drawLink();
  if (live.state === "refused") {
    draw(main, el("div.text", { "data-key": "refused" }, refused()));
    document.title = "no session · preregd";
    return;
  }
  const body = live.status === null ? [el("p.quiet", { "data-key": "first" }, live.state === "gone" ? "" : "Asking the daemon …")] : page.draw();
  draw(main, live.state === "gone" ? gone() : null, el("div", { "data-key": page.key }, body));
  if (live.status !== null) page.after?.(main);
  const title = plain(`${page.title()} · preregd`);
  if (document.title !== title) document.title = title;
}

export function redraw() {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(drawNow);
}

function route(event) {
  const token = /^#token=([\w-]+)$/.exec(location.hash);
  if (token) {
    history.replaceState(null, "", `${location.pathname}#/`);
    live.session(token[1]).then(() => show(event), () => live.refuse());
  } else if (!location.hash.startsWith("#main")) {
    show(event);
  }
}

function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function show(event) {
  const [path, query] = location.hash.replace(/^#/, "").split("?");
  const parts = path.split("/").filter(Boolean).map(decode);
  const next = pageFor(parts, new URLSearchParams(query ?? ""), { live, redraw });
  if (page !== null && page.key === next.key && page.navigate) {
    page.navigate(next);
    redraw();
    return;
  }
  page?.close?.();
  page = next;
  live.watch(page.program ?? null);
  for (const a of document.querySelectorAll(".site a")) {
    if (a.dataset.page === page.site) a.setAttribute("aria-current", "page");
    else a.removeAttribute("aria-current");
  }
  page.open?.();
  drawNow();
  if (event !== null) {
    scrollTo(0, 0);
    main.focus({ preventScroll: true });
  }
}

live.onchange = redraw;
addEventListener("hashchange", route);
setInterval(() => !document.hidden && redraw(), 1000);
document.querySelector(".skip").onclick = (event) => {
  event.preventDefault();
  main.focus();
};
route(null);
