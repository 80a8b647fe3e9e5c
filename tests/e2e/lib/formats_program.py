"""A small program with names that no format likes, a dataset of the Hub, a curve and errors."""

import json
import os
import shutil

from lib import lab
from lib.lab import OK
from lib.two_arms import decision

QUESTION = "Is \"b\" | better: #1?\n- no\t\u2028[x](javascript:y) \u202e"
GRID = """[program]
name = "formats"
schema = 1
question = """ + json.dumps(QUESTION) + """
[[factor]]
name = "arm"
levels = ["a", "b\\"'#: x"]
[[factor]]
name = "seed"
levels = [1, 2]
replicate = true
[data]
items = "items.jsonl"
folder = "folder"
[stage.train]
command = ["./format_worker.py"]
params = {{ arm = "$arm", seed = "$seed" }}
[stage.score]
after = ["train"]
command = ["./format_worker.py"]
params = {{ hold = "{hold}" }}
[measure]
acc = {{ metric = "score.acc", items = 100, chance = 0.25, floor = 0.5, hub = {{ dataset = "cais/mmlu", task = "te\\"st" }} }}
loss = {{ metric = "train.val_loss", better = "lower", counted = false }}
""" + decision("arm", ("a", "b\\\"'#: x"))


def prepare(place):
    shutil.copy2(os.path.join(lab.LIB, "format_worker.py"), place.path("."))
    place.write("items.jsonl", '{"q":1}\n')
    place.write("folder/one", "1")
    place.write("hold", "")
    grid = place.write("grid.toml", GRID.format(hold=place.path("hold")))
    place.ctl("lock", grid)
    place.serve()
    place.must(OK, "preregd", "submit", grid)
