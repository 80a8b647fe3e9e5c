#!/usr/bin/env python3
"""What preregctl says of its commands, held against what the completion offers and what the manual page tells."""

import os
import re
import shutil
import subprocess

from lib import lab
from lib.lab import equal, expect

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
COMPLETIONS = os.path.join(ROOT, "ops", "completions")
COMPLETION = os.path.join(COMPLETIONS, "preregctl.bash")
MANUAL = os.path.join(ROOT, "ops", "man", "preregctl.1")


def commands(place):
    """name -> (arguments of the usage line, {option: (letter or None, operand or None)})"""
    found = {}
    for name in re.findall(r"^  ([a-z]+) ", place.ctl("help").stdout, re.M):
        text = place.ctl("help", name).stdout
        usage = re.match(rf"usage: preregctl {name}( .*)? \[OPTION…\]\n", text)
        options = re.findall(r"^  (?:-(.), |    )--([a-z-]+) ([A-Z]+ )?", text, re.M)
        found[name] = ((usage[1] or "").split(), {o: (letter or None, value.strip() or None) for letter, o, value in options})
    expect(len(found) > 20, f"{len(found)} commands")
    return found


def test_columns(place):
    """The list of commands has its third column in one place, whatever the second holds."""
    rows = [line for line in place.ctl("help").stdout.splitlines() if re.match(r"  [a-z]+ ", line)]
    expect(len(rows) > 20 and any("…" in row for row in rows), "\n".join(rows))
    for row in rows:
        expect(row[37] == " " and row[38] != " ", f"the summary begins elsewhere: {row}")


def test_workers(place):
    """--help is answered wherever it is on the command line."""
    for words in (["prereg-eval", "show"], ["prereg-eval", "tasks"], ["prereg-eval", "export-harness"], ["prereg-eval", "show", "arc_easy"],
                  ["prereg-eval", "--plan"], ["prereg-train", "generate"], ["prereg-data", "demo"], ["prereg-eval"]):
        said = place.must(lab.OK, *words, "--help")
        expect(said.stdout.startswith(f"usage: {words[0]} ") and said.stderr == "", f"{words}: {said.stdout}{said.stderr}")


# What the end of a line may become, of the daemon and the workers: each shell reads it off their --help.
WORKERS = {
    "preregd s": ["serve", "submit"],
    "preregd serve --": ["--database", "--foreground", "--http", "--take-over"],
    "preregd submit --": ["--adopt-work", "--json", "--no-slurm-check", "--run", "--slurm-wait", "--wait"],
    "preregd submit a": ["a.toml"],
    "prereg-train --": ["--bench", "--count", "--describe", "--help", "--init", "--version"],
    "prereg-train --bench --b": ["--batch", "--bfloat16"],
    "prereg-train export --": ["--force", "--hf", "--no-tokenizer", "--tokenizer"],
    "prereg-train loss d": ["d.txt"],
    "prereg-eval e": ["export-harness"],
    "prereg-eval tasks --": ["--check"],
    "prereg-eval show hellas": ["hellaswag"],
    "prereg-eval --plan --fewshot-d": ["--fewshot-data"],
    "prereg-data sample --": ["--as", "--from", "--holdout", "--length", "--n", "--seed", "--tokenizer"],
    "prereg-python --": ["--help", "--module"],
    "prereg-lm-eval --p": ["--prereg-train"],
}


def bash(place, script, *arguments):
    text = f"compopt() {{ :; }}; complete() {{ :; }}; . '{COMPLETION}'; {script}"
    env = {**place.env, "PATH": f"{place.bin}:{place.env['PATH']}"}
    os.makedirs(place.path("here"), exist_ok=True)
    return subprocess.run(["bash", "-c", text, "bash", *arguments], cwd=place.path("here"), env=env, capture_output=True, text=True, timeout=60)


def complete(place, *words):
    """What the completion offers for the last of the words."""
    run = bash(place, 'COMP_WORDS=(preregctl "$@"); COMP_CWORD=$#; _preregctl; printf "%s\\n" "${COMPREPLY[@]}"', *words)
    equal(run.stderr, "", f"completing {words}")
    return sorted(set(run.stdout.split("\n")) - {""})


def test_workers_in_bash(place):
    for name in ("a.toml", "d.txt"):
        place.write(os.path.join("here", name), "")
    for line, wanted in WORKERS.items():
        run = bash(place, 'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _prereg_worker; printf "%s\\n" "${COMPREPLY[@]}"', *line.split(" "))
        equal((sorted(set(run.stdout.split("\n")) - {""}), run.stderr), (wanted, ""), repr(line))


def offered(place, shell, line):
    """What zsh or fish offers at the end of the line, in a folder with the files of test_arguments."""
    if not shutil.which(shell):
        lab.skip(f"no {shell} here")
    here = place.path("here")
    for name in ("a.toml", "b.json", "d.txt", os.path.join("folder", "e")):
        place.write(os.path.join("here", name), "")
    env = {**place.env, "PATH": f"{place.bin}:{place.env['PATH']}", "HOME": here}
    if shell == "fish":
        script = "; ".join(f"source '{COMPLETIONS}/{name}.fish'" for name in ("preregctl", "prereg-workers")) + "; complete -C $argv[1]"
        run = subprocess.run(["fish", "--no-config", "-c", script, "--", line], cwd=here, env=env, capture_output=True, text=True, timeout=60)
        equal((run.returncode, run.stderr), (0, ""), f"fish completing {line!r}")
        return sorted({word.split("\t")[0].rstrip("/") for word in run.stdout.splitlines()})
    out = place.path("offers")
    if os.path.exists(out):
        os.remove(out)
    run = subprocess.run(["zsh", "-f", os.path.join(lab.LIB, "offers.zsh"), COMPLETIONS, line, out], cwd=here, env=env,
                         capture_output=True, text=True, timeout=120)
    with open(out, encoding="utf-8") as f:
        words = f.read().splitlines()
    equal(words[-1:], ["end"], f"zsh completing {line!r}: {run.stdout}{run.stderr}")
    return sorted(set(words[:-1]) - {""})


def hold_shell(place, shell):
    known = commands(place)
    equal(offered(place, shell, "preregctl "), sorted(known), f"commands in {shell}")
    for name, (_, options) in known.items():
        if shell == "fish" or name in ("logs", "lock"):  # zsh takes a second for each
            equal(offered(place, shell, f"preregctl {name} --"), sorted("--" + o for o in options), f"options of {name} in {shell}")
    equal(offered(place, shell, "preregctl check a"), ["a.toml"], "a program")
    equal(offered(place, shell, "preregctl replay a.toml "), ["b.json", "folder"], "the second argument")
    equal(offered(place, shell, "preregctl lock --key d"), ["d.txt"], "an option's value")
    equal(offered(place, shell, "preregctl logs -n "), [], "a number")
    equal(offered(place, shell, "preregctl stop "), [], "no argument")
    equal(offered(place, shell, "preregctl export --format c"), ["croissant"], "a format")
    equal(offered(place, shell, "preregctl sign x --role s"), ["scientific", "statistical"], "a role")
    expect("minimal" in offered(place, shell, "preregctl init --template "), "templates")
    for line, wanted in WORKERS.items():
        equal(offered(place, shell, line), wanted, f"{line!r} in {shell}")
    expect({"demo", "pack"} <= set(offered(place, shell, "prereg-data ")), "prereg-data")
    hold_names(place, lambda *words: offered(place, shell, " ".join(("preregctl", *words))))


def hold_names(place, complete_words):
    """Programs, tasks, cells and stages."""
    grid = place.prepare("micro")
    place.ctl("lock", grid)
    place.must(lab.OK, "preregd", "submit", grid)
    program = place.ctl_json("status")["programs"][0]["id"]
    for words in (["status", ""], ["cells", ""], ["logs", "-p", ""], ["logs", "--program", ""]):
        equal(complete_words(*words), [program], f"programs of {words}")
    expect("arch=moe,seed=1/train" in complete_words("logs", "arch=moe"), "tasks")
    expect("arch=moe,seed=1" in complete_words("rerun", "arch=moe"), "cells")
    expect("arch=moe,seed=1" in complete_words("curves", "arch=dense,seed=1", "arch=moe"), "one more of many cells")
    equal(complete_words("rerun", "--stage", "t"), ["train"], "stages")


def test_zsh(place):
    hold_shell(place, "zsh")


def test_fish(place):
    hold_shell(place, "fish")


def test_other_shells_know_all_words(place):
    """Every word of the help that stands for a value is one that the completions of zsh and fish know."""
    known = commands(place)
    words = {w for arguments, _ in known.values() for a in arguments for w in re.split(r"[|\[\]…]+", a)}
    words |= {value for _, options in known.values() for _, value in options.values()}
    for name in ("_preregctl", "preregctl.fish"):
        with open(os.path.join(COMPLETIONS, name), encoding="utf-8") as f:
            text = f.read()
        unknown = {w for w in words - {"", None} if not re.search(rf"(?<![A-Za-z*.]){re.escape(w)}(?![A-Za-z])", text)
                   and ("." not in w or "*." + w.rsplit(".", 1)[1] not in text)}
        equal(unknown, set(), f"words that {name} does not know")


def test_options(place):
    known = commands(place)
    equal(complete(place, ""), sorted(known), "commands")
    equal(complete(place, "help", ""), sorted(known), "commands of help")
    for name, (_, options) in known.items():
        equal(complete(place, name, "--"), sorted("--" + o for o in options), f"options of {name}")


def test_arguments(place):
    """Every word that stands for a value is one that the completion knows; and the values are of its kind."""
    known = commands(place)
    words = {w for arguments, _ in known.values() for a in arguments for w in re.split(r"[|\[\]…]+", a)}
    words |= {value for _, options in known.values() for _, value in options.values()}
    for word in sorted(words - {"", None}):
        run = bash(place, 'COMPREPLY=(); files=; _preregctl_offer "$1" ""', word)
        equal((run.returncode, run.stderr), (0, ""), f"the completion on {word}")
    expect(bash(place, 'COMPREPLY=(); files=; _preregctl_offer "$1" ""', "NONSENSE").returncode != 0, "any word is known")
    for name in ("a.toml", "b.json", "c.tar", "d.txt", "folder/e"):
        place.write(os.path.join("here", name), "")
    equal(complete(place, "check", "a"), ["a.toml"], "check")
    expect("b.json" in complete(place, "replay", "a.toml", ""), "the second argument of replay")
    expect("a.toml" not in complete(place, "replay", "a.toml", ""), "the second argument of replay")
    equal(complete(place, "replay", "a.toml", "b.json", ""), [], "there is no third")
    equal(complete(place, "lock", "--key", "d"), ["d.txt"], "a key")
    equal(complete(place, "import", "--label", "x", "a"), ["a.toml"], "the first argument behind an option with a value")
    equal(complete(place, "verify", "c"), ["c.tar"], "a receipt")
    equal(complete(place, "calibration", "x", "y", "fold"), ["folder"], "one more of many")
    expect("minimal" in complete(place, "init", "--template", ""), "templates")
    equal(complete(place, "status", "--interval", ""), [], "a time")
    equal(complete(place, "stop", ""), [], "a command without arguments")
    equal(complete(place, "nonsense", ""), [], "no command")
    hold_names(place, lambda *words: complete(place, *words))


def sections():
    """name -> the text of its entry under COMMANDS; "" for the common options."""
    with open(MANUAL, encoding="utf-8") as f:
        text = f.read().replace("\\-", "-")
    told = {"": text.split(".SH OPTIONS")[1].split(".SH ")[0]}
    for entry in text.split(".SH COMMANDS")[1].split(".SH OPTIONS")[0].split("\n.TP\n")[1:]:
        head = entry.split("\n")[0]
        for name in re.findall(r'(?:^\.BI? |, " ?)([a-z]+)', re.sub(r"\\f.", "", head)):
            told[name] = entry
    return told


def test_manual(place):
    known, told = commands(place), sections()
    equal(sorted(set(told) - {""}), sorted(known), "commands in the manual page")
    for name, (_, options) in known.items():
        named = set(re.findall(r"--([a-z][a-z-]*)", told[name]))
        equal(named - set(options), set(), f"options of the entry of {name} that it does not take")
        common = set(re.findall(r"--([a-z][a-z-]*)", told[""]))
        equal(set(options) - named - common, set(), f"options of {name} that the manual page leaves out")


if not shutil.which("bash"):
    lab.skip("no bash here")
lab.main(test_columns, test_workers, test_workers_in_bash, test_options, test_arguments, test_zsh, test_fish,
         test_other_shells_know_all_words, test_manual)
