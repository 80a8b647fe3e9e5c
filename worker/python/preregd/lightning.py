"""Lightning's Trainer as a stage: progress, checkpoints at the protocol's times, SIGTERM, curves.

    import preregd.lightning
    import preregd.torch

    def work(w, p):
        preregd.torch.prepare(w, p["seed"])
        batches = preregd.torch.Batches(dataset, 64, p["seed"])     # keeps its place within an epoch
        trainer = preregd.lightning.trainer(w, max_steps=p["steps"])
        preregd.lightning.fit(w, trainer, module, batches)
        w.metric("val_loss", ...)

Lightning's own checkpoint holds model, optimizers, schedulers and loops; the callback adds the generators. It holds the place in
the data only of loaders with state_dict(), so training data come as preregd.torch.Batches, or another such loader. One process.
"""

from __future__ import annotations

import os
import signal
from typing import Any, Dict, List, Optional

import lightning.pytorch

from preregd import worker as prereg
from preregd.torch import random_states, set_random_states

FILE = "lightning.ckpt"


class Callback(lightning.pytorch.Callback):  # type: ignore[misc]
    """The worker's side of a Trainer. The loss that training_step() returns is a curve, every `every` steps."""

    def __init__(self, w: prereg.Worker, every: int = 1) -> None:
        self.worker, self.every = w, every
        self.step = 0
        self.on_signal: Any = signal.getsignal(signal.SIGTERM)
        self.generators: Optional[Dict[str, Any]] = None  # to be put back before the next step

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        # Lightning puts a handler of its own, which may end the training before there is a checkpoint; it takes it away afterwards.
        signal.signal(signal.SIGTERM, self.on_signal)
        self.step = trainer.global_step
        total = trainer.max_steps if trainer.max_steps > 0 else trainer.estimated_stepping_batches
        self.pace = prereg.Pace(self.worker, self.step, int(total))

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        if self.generators is not None:
            set_random_states(self.generators)
            self.generators = None
        if self.pace.began is None:
            self.pace.begin()

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        if trainer.global_step == self.step:
            return  # gradients of several batches make one step
        self.step = trainer.global_step
        loss = outputs.get("loss") if isinstance(outputs, dict) else outputs
        if loss is not None and self.step % self.every == 0:
            self.worker.point(self.step, "loss", loss)
        if self.pace.end(self.step):
            self.pace.save(self.step, lambda folder: trainer.save_checkpoint(os.path.join(folder, FILE)))
        if self.step >= self.pace.total:
            trainer.should_stop = True

    def on_save_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: Dict[str, Any]) -> None:
        """A batch counts as completed only after on_train_batch_end(), in which the checkpoint is written: it is done."""
        progress = checkpoint["loops"]["fit_loop"]["epoch_loop.batch_progress"]
        for counts in (progress["total"], progress["current"]):
            counts["completed"] = counts["processed"]

    def state_dict(self) -> Dict[str, Any]:
        return {"generators": random_states()}

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        self.generators = state_dict["generators"]


def trainer(w: prereg.Worker, every: int = 1, **mine: Any) -> Any:
    """A Trainer that fits a worker: it writes, prints and logs nothing of its own. `mine` come on top."""
    mine["callbacks"] = [*mine.get("callbacks", []), Callback(w, every)]
    return lightning.pytorch.Trainer(**{"logger": False, "enable_checkpointing": False, "enable_progress_bar": False,
                                        "enable_model_summary": False, "deterministic": True, "devices": 1,
                                        "default_root_dir": "lightning", **mine})


def fit(w: prereg.Worker, trainer: Any, module: Any, *words: Any, **rest: Any) -> None:
    """trainer.fit(module, ...), resumed from the newest whole checkpoint of the task. Stopped on SIGTERM."""
    if not any(isinstance(callback, Callback) for callback in trainer.callbacks):
        trainer.callbacks.append(Callback(w))
    found: List[str] = []
    w.resume(found.append)
    trainer.fit(module, *words, **rest, **({"ckpt_path": os.path.join(found[0], FILE)} if found else {}))
