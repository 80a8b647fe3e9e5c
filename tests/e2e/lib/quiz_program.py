"""A program of two cells whose records are logs of Inspect."""

PROGRAM = """
[program]
name     = "tiny"
schema   = 1
question = "Is the mixture ahead in logs from elsewhere?"
[[factor]]
name   = "arch"
levels = ["dense", "moe"]
[stage.quiz]
command = ["prereg-eval"]
[measure]
quiz = { metric = "quiz.accuracy", items = 40, chance = 0.25, floor = 0.30 }
[contrast]
arch = { between = { arch = ["moe", "dense"] }, over = "counted" }
[[input]]
name   = "direction"
levels = [["moe", "contrast.arch.mean > 0"], ["dense", "otherwise"]]
[table]
inputs = ["direction"]
rows = [["moe", "moe"], ["dense", "dense"]]
[outcome]
moe   = { prior = 0.5, title = "The mixture is ahead" }
dense = { prior = 0.5, title = "Dense is ahead" }
"""
