"""Programs around rogue_worker.py: one factor with the modes as levels, one stage, one measure."""

import os
import shutil

from lib import lab
from lib.two_arms import decision

GRID = """[program]
name = "rogue"
schema = 1
question = "Does anything of this get through?"

[[factor]]
name = "mode"
levels = [{modes}]
[[factor]]
name = "seed"
levels = [1]
replicate = true

[stage.probe]
command = ["./rogue_worker.py"]
params = {{ mode = "$mode", seed = "$seed", until = "{until}", sparse_gib = {sparse_gib} }}
{stages}
[measure]
score = {{ metric = "probe.score", items = 100, chance = 0.25, floor = 0.50 }}

""" + decision("mode", ("{first}", "{second}")) + """
[exclusion]
budget = {budget}

[run]
slots = {slots}
{run}
"""


def program(place, modes, budget=0.9, run="", stages="", slots=2):
    """Writes it, locks it, gives the path of its grid.toml. The first two modes are the contrast's arms. Tasks of mode
    "wait" end once release() was called."""
    folder = place.path("rogue")
    os.makedirs(folder, exist_ok=True)
    shutil.copy2(os.path.join(lab.LIB, "rogue_worker.py"), folder)
    text = GRID.format(modes=", ".join(f'"{m}"' for m in modes), first=modes[0], second=modes[1], budget=budget, run=run,
                       stages=stages, slots=slots, until=place.path("released"), sparse_gib=6 if lab.SPARSE == 1 else 1)
    grid = place.write("rogue/grid.toml", text)
    place.ctl("lock", grid)
    return grid


def release(place):
    place.write("released", "")
