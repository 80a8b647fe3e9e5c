"""The same training as train.py, in PyTorch: what a script of yours needs to become a worker. Needs torch.

The lines that are preregd's say `w`; the rest is what the script was before. In grid.toml:

    command = ["prereg-python", "train_torch.py"]
    env     = { PATH = "/opt/venv/bin:/usr/bin:/bin" }        # the python3 that has torch

On a GPU, where `[run.train] gpus = 1` gives it one, it also needs in `env` what makes cuBLAS deterministic:

    env     = { PATH = "/opt/venv/bin:/usr/bin:/bin", CUBLAS_WORKSPACE_CONFIG = ":4096:8" }
"""

import os

import torch

import preregd_worker as prereg


class Net(torch.nn.Module):
    """Which character comes next, from the `reach` before it: (batch, reach) ids -> (batch, n) logits."""

    def __init__(self, n, reach, width):
        super().__init__()
        self.embed = torch.nn.Embedding(n, width)
        self.mix = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(reach * width, 4 * width), torch.nn.GELU(),
                                       torch.nn.Linear(4 * width, n))

    def forward(self, ids):
        return self.mix(self.embed(ids))


def setup(w):
    p = {"reach": w.params.integer("reach", 1, 64), "width": w.params.integer("width", 1, 4096, 32),
         "steps": w.params.integer("steps", 1, 10**7), "batch": w.params.integer("batch", 1, 10**5),
         "lr": w.params.number("lr", 0, 1), "seed": w.params.integer("seed", 0, 2**53 - 1)}
    w.params.finish()
    with open(w.data("corpus"), encoding="utf-8") as f:
        text = f.read()
    place = {c: i for i, c in enumerate(sorted(set(text)))}
    p["n"], p["ids"] = len(place), torch.tensor([place[c] for c in text])
    w.will_measure("val_loss")
    w.fact("params_total", sum(t.numel() for t in Net(p["n"], p["reach"], p["width"]).parameters()))
    return p


def batch_of(p, start, end, n):
    """n positions drawn from start .. end: (n, reach) characters before them and (n) characters there."""
    at = torch.randint(start + p["reach"], end, (n,))
    return torch.stack([p["ids"][at - 1 - back] for back in range(p["reach"])], dim=1), p["ids"][at]


def work(w, p):
    torch.manual_seed(p["seed"])
    torch.set_num_threads(w.threads)
    torch.use_deterministic_algorithms(True)
    device = "cuda" if torch.cuda.is_available() else "cpu"   # preregd shows a worker the GPUs that it was given, and no others
    net = Net(p["n"], p["reach"], p["width"]).to(device)      # parameters and batches are drawn on the CPU: the same on any device
    opt = torch.optim.AdamW(net.parameters(), lr=p["lr"])
    end = int(0.9 * len(p["ids"]))

    def save(folder):                                  # everything that the next step depends on
        torch.save({"net": net.state_dict(), "opt": opt.state_dict(), "rng": torch.get_rng_state()}, f"{folder}/state.pt")

    def load(folder):
        state = torch.load(f"{folder}/state.pt", weights_only=True, map_location="cpu")
        net.load_state_dict(state["net"])
        opt.load_state_dict(state["opt"])
        torch.set_rng_state(state["rng"])

    for step in w.steps(w.resume(load), p["steps"], save):
        before, there = (t.to(device) for t in batch_of(p, 0, end, p["batch"]))
        loss = torch.nn.functional.cross_entropy(net(before), there)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 50 == 0:
            w.point(step, "loss", loss)
    w.section("eval")
    torch.manual_seed(0)
    with torch.no_grad():
        before, there = (t.to(device) for t in batch_of(p, end, len(p["ids"]), 2000))
        losses = torch.nn.functional.cross_entropy(net(before), there, reduction="none")
    w.metric("val_loss", losses.mean(), n=2000, se=losses.std() / 2000 ** 0.5)
    os.makedirs("model", exist_ok=True)
    torch.save(net.state_dict(), "model/state.pt")
    w.artifact("model/state.pt")


prereg.run(setup, work)
