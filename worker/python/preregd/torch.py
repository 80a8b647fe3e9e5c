"""A training in PyTorch that can be killed at any instant: everything that its next step depends on, kept in one call.

    import preregd as prereg
    import preregd.torch

    def work(w, p):
        device = preregd.torch.prepare(w, p["seed"])
        net, batches = Net().to(device), preregd.torch.Batches(dataset, 64, p["seed"])
        opt = torch.optim.AdamW(net.parameters(), lr=p["lr"])
        plan = torch.optim.lr_scheduler.CosineAnnealingLR(opt, p["steps"])
        data = batches.forever()
        for step in preregd.torch.steps(w, p["steps"], model=net, optimizer=opt, scheduler=plan, batches=batches):
            loss = train_one(net, opt, next(data))
            plan.step()
            w.point(step, "loss", loss)

A checkpoint holds the state of each named part and of the generators: PyTorch's (CPU and every CUDA device), numpy's, Python's.
It is written whole or not at all (Worker.checkpoint), and the losses after a resumption are those of an undisturbed run, bit by
bit, on the same machine and versions. One process, any device: a training of several processes is not covered.
"""

from __future__ import annotations

import hashlib
import os
import random
import sys
from typing import Any, Dict, Iterator, List

import torch

from preregd import worker as prereg

STATE = "state.pt"
GENERATORS = "generators"  # the name under which a checkpoint keeps them, which no part may have


def random_states() -> Dict[str, Any]:
    """The states of all generators that a training draws from; numpy's if it has been imported."""
    states: Dict[str, Any] = {"python": random.getstate(), "torch": torch.get_rng_state()}
    if torch.cuda.is_available():
        states["cuda"] = torch.cuda.get_rng_state_all()
    if "numpy" in sys.modules:
        states["numpy"] = sys.modules["numpy"].random.get_state()
    return states


def set_random_states(states: Dict[str, Any]) -> None:
    """Puts back what random_states() gave."""
    random.setstate(states["python"])
    torch.set_rng_state(states["torch"])
    if "cuda" in states and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(states["cuda"])
    if "numpy" in states:
        import numpy
        numpy.random.set_state(states["numpy"])


def prepare(w: prereg.Worker, seed: int) -> torch.device:
    """Makes what follows repeatable: the task's threads, deterministic algorithms, every generator seeded. Returns the device:
    the GPU that the attempt was given (preregd shows it no other), else the CPU. Call it before anything is drawn or computed."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # without it cuBLAS is not deterministic, and PyTorch refuses
    torch.set_num_threads(w.threads)
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = False
    random.seed(seed)
    torch.manual_seed(seed)  # of every CUDA device, too
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed % 2**32)
    w.fact("torch", torch.__version__)
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Checkpoint:
    """The state of a training as one file: `save` and `load` are what Worker.steps and Worker.resume call.

    Each part has state_dict() and load_state_dict(): models, optimizers, schedulers, scalers, Batches, or an object of your own.
    """

    def __init__(self, **parts: Any) -> None:
        for name, part in parts.items():
            if name == GENERATORS or not (hasattr(part, "state_dict") and hasattr(part, "load_state_dict")):
                raise TypeError(f"{name}: a part of a checkpoint has state_dict() and load_state_dict(), and another name than "
                                f"\"{GENERATORS}\"; this is a {type(part).__name__}")
        self.parts = parts

    def save(self, folder: str) -> None:
        states = {name: part.state_dict() for name, part in self.parts.items()}
        torch.save({**states, GENERATORS: random_states()}, os.path.join(folder, STATE))

    def load(self, folder: str) -> None:
        """Puts every part and all generators into the state that was saved. DataFault when the parts are others."""
        # Not weights_only: what schedulers and parts of the user's own keep is not only tensors. The file is this task's own, of
        # an earlier attempt, and its digest has been verified.
        states = torch.load(os.path.join(folder, STATE), map_location="cpu", weights_only=False)
        if set(states) != {*self.parts, GENERATORS}:
            raise prereg.DataFault(f"{folder} holds {', '.join(sorted(set(states) - {GENERATORS}))}, "
                                   f"not {', '.join(sorted(self.parts))}")
        for name, part in self.parts.items():
            part.load_state_dict(states[name])
        set_random_states(states[GENERATORS])


def steps(w: prereg.Worker, total: int, **parts: Any) -> Iterator[int]:
    """The steps that remain of `total`, after resuming the newest whole checkpoint: progress, checkpoints of `parts` and the
    generators when they are due, SIGTERM. See Worker.steps."""
    state = Checkpoint(**parts)
    return w.steps(w.resume(state.load), total, state.save)


class Batches:
    """Batches of a dataset whose place a checkpoint can hold, with any number of DataLoader's own processes.

    The order of an epoch is drawn from (seed, epoch) alone. Iterating gives what remains of the present epoch; forever() goes on
    with the next ones. state_dict() counts the batches that were handed out, not those that a DataLoader has read ahead. What a
    dataset draws for itself (augmentation) must be drawn from its index: generators of loader processes are not in a checkpoint.
    """

    def __init__(self, dataset: Any, batch_size: int, seed: int, *, shuffle: bool = True, drop_last: bool = True,
                 **loader: Any) -> None:
        self.dataset, self.batch_size, self.seed, self.shuffle = dataset, batch_size, seed, shuffle
        self.loader = loader  # further arguments of DataLoader: num_workers, collate_fn, pin_memory
        n = len(dataset)
        self.n_batches = n // batch_size if drop_last else -(-n // batch_size)
        if self.n_batches == 0:
            raise ValueError(f"{n} items make no batch of {batch_size}")
        self.epoch, self.position = 0, 0

    def __len__(self) -> int:
        """The batches of an epoch."""
        return self.n_batches

    def _generator(self) -> torch.Generator:
        digest = hashlib.sha256(f"{self.seed}/{self.epoch}".encode()).digest()
        return torch.Generator().manual_seed(int.from_bytes(digest[:8], "big") >> 1)

    def _remaining(self) -> List[List[int]]:
        n = len(self.dataset)
        order = torch.randperm(n, generator=self._generator()) if self.shuffle else torch.arange(n)
        return [rows.tolist() for rows in order.split(self.batch_size)[self.position:self.n_batches]]

    def __iter__(self) -> Iterator[Any]:
        # The generator is the loader's own: without one it would draw from PyTorch's, once more for each resumption.
        for batch in torch.utils.data.DataLoader(self.dataset, batch_sampler=self._remaining(), generator=self._generator(),
                                                 **self.loader):
            self.position += 1
            if self.position == self.n_batches:
                self.epoch, self.position = self.epoch + 1, 0
            yield batch

    def forever(self) -> Iterator[Any]:
        """Epoch after epoch."""
        while True:
            yield from self

    def state_dict(self) -> Dict[str, int]:
        return {"epoch": self.epoch, "position": self.position, "batches": self.n_batches}

    def load_state_dict(self, state: Dict[str, int]) -> None:
        if state["batches"] != self.n_batches or not 0 <= state["position"] < self.n_batches:
            raise prereg.DataFault(f"a checkpoint of epochs of {state['batches']} batches, not of {self.n_batches}")
        self.epoch, self.position = state["epoch"], state["position"]
