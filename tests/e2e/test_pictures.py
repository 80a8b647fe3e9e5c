#!/usr/bin/env python3
"""Reports as a browser shows them: nothing overflows, every text has contrast, headings and tables are in order, on wide and
narrow screens, light and dark, and on paper, where the verdict stands on the first page.

usage: test_pictures.py BIN [REPORT.html ...]

Drives headless Chromium through its debugging pipe (Python's standard library alone). Part of ops/check --long: skipped
without PREREGD_LONG=1 or files to look at, and where there is no Chromium. PREREGD_PICTURES=FOLDER keeps the pictures.
"""

import os
import shutil
import subprocess
import sys
import tempfile

from lib.browser import CONTRAST, Chromium, find_chromium

SKIPPED = 77
SCHEMES = ("light", "dark")
WIDTHS = (1280, 390)
PAPER_PX = 672  # 178 mm of A4 between its margins, in CSS pixels

# What is wrong with the page, as a list of sentences.
LAYOUT = """(() => {
  const wrong = [];
  const root = document.documentElement;
  const name = e => e.tagName.toLowerCase() + (e.id ? '#' + e.id : '') + ' "' + e.textContent.trim().slice(0, 40) + '"';
  if (root.scrollWidth > root.clientWidth) wrong.push(`the page is ${root.scrollWidth} wide, the window ${root.clientWidth}`);
  for (const e of document.querySelectorAll('main *:not(svg *)')) {
    if (e.closest('.scroll') && !matchMedia('print').matches) continue;
    const box = e.getBoundingClientRect();
    if (box.width > 0 && box.right > root.clientWidth + 1) wrong.push(`${name(e)} ends at ${Math.round(box.right)}`);
  }
  for (const e of document.querySelectorAll('caption > span'))
    if (e.getBoundingClientRect().width > root.clientWidth) wrong.push(`${name(e)} is wider than the window`);
  const verdict = document.querySelector('.verdict');
  const gap = verdict.nextElementSibling.getBoundingClientRect().top - verdict.getBoundingClientRect().bottom;
  if (gap < 8) wrong.push(`${gap} px between the verdict and what follows it`);
  for (const e of document.querySelectorAll('svg text')) {
    const box = e.getBoundingClientRect(), of = e.ownerSVGElement.getBoundingClientRect();
    if (box.left < of.left - 2 || box.right > of.right + 2 || box.top < of.top - 2 || box.bottom > of.bottom + 2)
      wrong.push(`${name(e)} leaves its figure`);
  }
  return wrong.slice(0, 8);
})()"""

STRUCTURE = """(() => {
  const wrong = [], all = s => [...document.querySelectorAll(s)];
  for (const [s, n] of [['main', 1], ['main > header', 1], ['main > nav', 1], ['h1', 1], ['script', 0], ['img', 0], ['link', 0]])
    if (all(s).length !== n) wrong.push(`${all(s).length} of ${s}`);
  let level = 0;
  for (const h of all('h1, h2, h3, h4')) {
    const now = Number(h.tagName[1]);
    if (now > level + 1) wrong.push(`"${h.textContent}" skips a level of headings`);
    level = now;
  }
  for (const t of all('table')) {
    if (!t.caption || !t.caption.textContent.trim()) wrong.push('a table without a caption');
    if (t.querySelector('th:not([scope])')) wrong.push('a heading of a table without a scope');
  }
  for (const r of all('[role=region]'))
    if (r.tabIndex !== 0 || !r.getAttribute('aria-label')) wrong.push('a region out of reach of the keyboard');
  for (const s of all('svg'))
    if (!s.querySelector('title').textContent || !s.querySelector('desc').textContent) wrong.push('a figure without words');
  const ids = all('[id]').map(e => e.id);
  for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) wrong.push(`two elements are called ${id}`);
  for (const a of all('a[href^="#"]'))
    if (!document.getElementById(a.getAttribute('href').slice(1))) wrong.push(`${a.getAttribute('href')} leads nowhere`);
  return [...new Set(wrong)].slice(0, 8);
})()"""


def first_page(pdf):
    if shutil.which("pdftotext") is None:
        return None
    text = subprocess.run(["pdftotext", "-f", "1", "-l", "1", pdf, "-"], capture_output=True, text=True, check=True)
    return " ".join(text.stdout.split())


def look_at(browser, page, name, out):
    """What is wrong with one page, in every way in which it is looked at."""
    wrong = []
    browser.show(WIDTHS[0], "light")
    browser.open(page)
    wrong += [f"{name}: {w}" for w in browser.ask(STRUCTURE)]
    papers = set()
    for width in WIDTHS:
        for scheme in SCHEMES:
            browser.show(width, scheme)
            where = f"{name}, {width} px, {scheme}"
            wrong += [f"{where}: {w}" for w in browser.ask(LAYOUT) + browser.ask(CONTRAST)]
            papers.add((scheme, browser.ask("getComputedStyle(document.body).backgroundColor")))
            browser.picture(os.path.join(out, f"{name}-{width}-{scheme}.png"))
    if len(papers) != 2 or len({colour for _, colour in papers}) != 2:
        wrong.append(f"{name}: light and dark look alike: {sorted(papers)}")
    browser.show(PAPER_PX, "light", "print")
    wrong += [f"{name}, on paper: {w}" for w in browser.ask(LAYOUT) + browser.ask(CONTRAST)]
    verdict = " ".join(browser.ask("document.querySelector('h1').innerText").split())
    browser.show(WIDTHS[0], "dark", "")
    pdf = os.path.join(out, f"{name}.pdf")
    browser.print(pdf)
    text = first_page(pdf)
    if text is not None and verdict not in text:
        wrong.append(f"{name}: \"{verdict}\" is not on the first page of paper")
    return wrong


def main():
    program = find_chromium()
    pages = [(f"page-{i}", os.path.abspath(p)) for i, p in enumerate(sys.argv[2:])]
    if os.environ.get("PREREGD_LONG") != "1" and not pages:
        print("skipped: pictures are looked at by ops/check --long (PREREGD_LONG=1)")
        return SKIPPED
    if program is None:
        print("skipped: there is no Chromium here")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="prereg-pictures-") as scratch:
        out = os.environ.get("PREREGD_PICTURES") or os.path.join(scratch, "pictures")
        os.makedirs(out, exist_ok=True)
        if not pages:
            made = os.path.join(scratch, "pages")
            os.mkdir(made)
            subprocess.run([os.path.join(sys.argv[1], "../tests/report_pages"), made], check=True)
            pages = [(n, os.path.join(made, n, "report.html")) for n in sorted(os.listdir(made))]
        if not pages:
            print("report_pages made no page")
            return 1
        browser = Chromium(program, os.path.join(scratch, "home"))
        try:
            wrong = [w for name, page in pages for w in look_at(browser, page, name, out)]
        finally:
            browser.close()
    for w in wrong:
        print(w)
    print(f"{len(pages)} pages, {len(wrong)} faults")
    return 1 if wrong else 0


sys.exit(main())
