"""Two arms in two replicates, one measure with a floor, two outcomes: the parts that small programs of these tests share."""

DESIGN = """[[factor]]
name = "arm"
levels = ["a", "b"]
[[factor]]
name = "seed"
levels = [1, 2]
replicate = true
"""

READING = """[measure]
acc = {{ metric = "score.acc", items = 100, chance = 0.25, floor = 0.5 }}
[contrast]
arm = {{ between = {{ arm = ["a", "b"] }} }}
[counter]
k = {{ contrast = "arm", clears = "every_cell", binds = true }}
[[input]]
name = "cleared"
levels = [["yes", "counter.k == 1"], ["no", "counter.k == 0"]]
[table]
inputs = ["cleared"]
rows = [["yes", "up"], ["no", "down"]]
[outcome]
up = {{ prior = 0.5, title = "Cleared" }}
down = {{ prior = 0.4, title = "Not cleared" }}
"""
