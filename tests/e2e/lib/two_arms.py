"""Two arms in two replicates, one measure with a floor, two outcomes: the parts that small programs of these tests share.
All but DESIGN are for str.format()."""

DESIGN = """[[factor]]
name = "arm"
levels = ["a", "b"]
[[factor]]
name = "seed"
levels = [1, 2]
replicate = true
"""


def decision(factor, arms, no="counter.k == 0"):
    """From the contrast of two arms to the outcomes: up, if every cell clears."""
    return f"""[contrast]
{factor} = {{{{ between = {{{{ {factor} = ["{arms[0]}", "{arms[1]}"] }}}} }}}}
[counter]
k = {{{{ contrast = "{factor}", clears = "every_cell", binds = true }}}}
[[input]]
name = "cleared"
levels = [["yes", "counter.k == 1"], ["no", "{no}"]]
[table]
inputs = ["cleared"]
rows = [["yes", "up"], ["no", "down"]]
[outcome]
up = {{{{ prior = 0.5, title = "Cleared" }}}}
down = {{{{ prior = 0.4, title = "Not cleared" }}}}
"""


READING = """[measure]
acc = {{ metric = "score.acc", items = 100, chance = 0.25, floor = 0.5 }}
""" + decision("arm", ("a", "b"))
