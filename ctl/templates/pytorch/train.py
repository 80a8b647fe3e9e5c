"""Predicts the next character of a text from those before it. The lines that are preregd's say `w` or `preregd`."""

import torch

import preregd as prereg
import preregd.torch

HELD_OUT = 4000  # positions at the end of the text, which the loss is measured on


class Next(torch.utils.data.Dataset):
    """Position i: the `context` characters before it, and the one there."""

    def __init__(self, ids, context):
        self.ids, self.context = ids, context

    def __len__(self):
        return len(self.ids) - self.context

    def __getitem__(self, i):
        return self.ids[i:i + self.context], self.ids[i + self.context]


def setup(w):                                         # asked before the lock, too: reads, promises, does no work
    p = {"width": w.params.integer("width", 1, 4096), "seed": w.params.integer("seed", 0, 2**53 - 1),
         "steps": w.params.integer("steps", 1, 10**7), "batch": w.params.integer("batch", 1, 10**5),
         "context": w.params.integer("context", 1, 1000), "lr": w.params.number("lr", 0, 1)}
    w.params.finish()                                 # every fault at once
    w.will_measure("val_loss")
    w.fact("steps", p["steps"])                       # what is held fixed between the cells
    return p


def work(w, p):
    device = preregd.torch.prepare(w, p["seed"])      # threads, seeds, deterministic algorithms
    with open(w.data("corpus"), encoding="utf-8") as f:
        text = f.read()
    place = {c: i for i, c in enumerate(sorted(set(text)))}
    ids = torch.tensor([place[c] for c in text])
    train, held_out = Next(ids[:-HELD_OUT - p["context"]], p["context"]), Next(ids[-HELD_OUT - p["context"]:], p["context"])

    net = torch.nn.Sequential(torch.nn.Embedding(len(place), 16), torch.nn.Flatten(), torch.nn.Linear(16 * p["context"], p["width"]),
                              torch.nn.GELU(), torch.nn.Linear(p["width"], len(place))).to(device)
    opt = torch.optim.AdamW(net.parameters(), lr=p["lr"])
    plan = torch.optim.lr_scheduler.OneCycleLR(opt, p["lr"], total_steps=p["steps"] + 1)
    batches = preregd.torch.Batches(train, p["batch"], p["seed"])
    w.fact("params_total", sum(t.numel() for t in net.parameters()))

    data = batches.forever()
    for step in preregd.torch.steps(w, p["steps"], model=net, optimizer=opt, scheduler=plan, batches=batches):
        before, there = (t.to(device) for t in next(data))
        loss = torch.nn.functional.cross_entropy(net(before), there)
        opt.zero_grad()
        loss.backward()
        opt.step()
        plan.step()
        if step % 10 == 0:
            w.point(step, "loss", loss)               # a curve; gates nothing

    w.section("eval")
    net.eval()
    with torch.no_grad():
        before, there = (t.to(device) for t in torch.utils.data.default_collate([held_out[i] for i in range(HELD_OUT)]))
        losses = torch.nn.functional.cross_entropy(net(before), there, reduction="none")
    w.metric("val_loss", losses.mean(), n=HELD_OUT, se=losses.std() / HELD_OUT ** 0.5)
    torch.save(net.state_dict(), "model.pt")
    w.artifact("model.pt")                            # later stages read it


prereg.run(setup, work)
