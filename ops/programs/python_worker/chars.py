"""The model that train.py trains and quiz.py asks: which character comes next, from the `reach` characters before it.

The scores (logits) of the next character are the sum of one table row for each of those; everything is plain Python floats.
"""

import array
import json
import math
import os

HELD_OUT = 0.1  # the end of the text, which training does not see


def read_text(path):
    """The text as (characters, ids): the sorted list of those that occur, and the place in it of each character of the text."""
    with open(path, encoding="utf-8") as f:
        text = f.read()
    characters = sorted(set(text))
    place = {c: i for i, c in enumerate(characters)}
    return characters, [place[c] for c in text]


def split(ids):
    """The first position that is held out."""
    return int(len(ids) * (1 - HELD_OUT))


class Model:
    def __init__(self, characters, reach):
        self.characters, self.reach, self.n = characters, reach, len(characters)
        self.table = array.array("d", bytes(8 * reach * self.n * self.n))

    def rows(self, ids, at):
        """Where the rows begin that bear on position `at`: one for each character before it."""
        return [(back * self.n + ids[at - 1 - back]) * self.n for back in range(self.reach)]

    def probabilities(self, rows):
        logits = [sum(column) for column in zip(*(self.table[r:r + self.n] for r in rows))]
        top = max(logits)
        raised = [math.exp(x - top) for x in logits]
        total = sum(raised)
        return [x / total for x in raised]

    def learn(self, ids, positions, lr):
        """One step of gradient descent, position by position. Returns the mean loss in nats per character."""
        loss = 0.0
        for at in positions:
            rows = self.rows(ids, at)
            p = self.probabilities(rows)
            loss -= math.log(p[ids[at]])
            p[ids[at]] -= 1.0
            for r in rows:
                for i, slope in enumerate(p):
                    self.table[r + i] -= lr * slope
        return loss / len(positions)

    def save(self, folder):
        with open(os.path.join(folder, "table.bin"), "wb") as f:
            self.table.tofile(f)
        with open(os.path.join(folder, "model.json"), "w", encoding="utf-8") as f:
            json.dump({"reach": self.reach, "characters": self.characters}, f)

    def load(self, folder):
        self.table = array.array("d")
        with open(os.path.join(folder, "table.bin"), "rb") as f:
            self.table.fromfile(f, self.reach * self.n * self.n)

    @classmethod
    def open(cls, folder):
        with open(os.path.join(folder, "model.json"), encoding="utf-8") as f:
            shape = json.load(f)
        model = cls(shape["characters"], shape["reach"])
        model.load(folder)
        return model
