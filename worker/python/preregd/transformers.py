"""transformers' Trainer as a stage: progress, checkpoints at the protocol's times, SIGTERM, curves.

    import preregd.torch
    import preregd.transformers

    def work(w, p):
        preregd.torch.prepare(w, p["seed"])
        args = preregd.transformers.arguments(w, max_steps=p["steps"], learning_rate=p["lr"], seed=p["seed"])
        trainer = transformers.Trainer(model, args, train_dataset=train, eval_dataset=held_out)
        preregd.transformers.train(w, trainer)
        found = preregd.transformers.evaluate(w, trainer)
        w.metric("val_loss", found["eval_loss"], n=len(held_out))

The Trainer writes its own checkpoint (model, optimizer, scheduler, generators, place in the data) when one is due, and it becomes
one of the protocol: whole or not at all, digested, in the attempt's folder. One process.
"""

from __future__ import annotations

import os
import shutil
from typing import Any, Dict, List, Sequence

import transformers

from preregd import worker as prereg

OUT = "trainer"  # the Trainer's own folder, empty but while it saves
POINTS = ("loss", "grad_norm", "learning_rate")


def arguments(w: prereg.Worker, **mine: Any) -> Any:
    """TrainingArguments that fit a worker: it saves when told to, prints and uploads nothing, logs every step. `mine` come on top.

    The mean of several steps is logged with a larger logging_steps; a checkpoint then waits for such a step, because the Trainer
    does not keep what it has summed up."""
    return transformers.TrainingArguments(**{"output_dir": OUT, "save_strategy": "no", "report_to": [], "disable_tqdm": True,
                                             "logging_steps": 1, "logging_nan_inf_filter": False, **mine})


class Callback(transformers.TrainerCallback):  # type: ignore[misc]
    """The worker's side of a Trainer. `points` are the names in its logs that become curves; what the plan seals is withheld."""

    def __init__(self, w: prereg.Worker, points: Sequence[str] = POINTS) -> None:
        self.worker, self.points = w, tuple(points)
        self.is_due = False
        self.is_after = False  # the training: SIGTERM need not wait for a step

    def on_train_begin(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        self.pace = prereg.Pace(self.worker, state.global_step, state.max_steps)

    def on_step_begin(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        self.pace.begin()

    def on_step_end(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        is_due = self.pace.end(state.global_step) or self.is_due
        # resumed behind its last step, the Trainer would take one more
        self.is_due = is_due and state.global_step < self.pace.total
        if state.global_step >= self.pace.total:
            control.should_training_stop = True
        if self.is_due and (control.should_log or str(args.logging_strategy.value) != "steps"):
            control.should_save = True

    def on_save(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        if not self.is_due:
            return  # the script's own save_strategy
        self.is_due = False
        written = os.path.join(args.output_dir, f"checkpoint-{state.global_step}")

        def save(folder: str) -> None:
            for name in os.listdir(written):
                shutil.move(os.path.join(written, name), os.path.join(folder, name))
            os.rmdir(written)
        self.pace.save(state.global_step, save)

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **rest: Any) -> None:
        for name in self.points:
            if name in (logs or {}):
                self.worker.point(state.global_step, name, logs[name])

    def on_prediction_step(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        self.worker.section("eval")
        self.worker.progress(state.global_step)
        if self.is_after:
            self.worker.check_stop()

    def on_evaluate(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        if not self.is_after:
            self.worker.section("step")


def train(w: prereg.Worker, trainer: Any, points: Sequence[str] = POINTS) -> None:
    """trainer.train(), resumed from the newest whole checkpoint of the task, as a worker does it. Stopped on SIGTERM."""
    for kind in (transformers.PrinterCallback, transformers.trainer_callback.ProgressCallback):
        trainer.remove_callback(kind)  # standard output is no place for what the plan may seal
    trainer.add_callback(Callback(w, points))
    found: List[str] = []
    w.resume(found.append)
    trainer.train(resume_from_checkpoint=found[0] if found else None)


def evaluate(w: prereg.Worker, trainer: Any, *words: Any, **rest: Any) -> Dict[str, Any]:
    """trainer.evaluate() after the training, in the worker's section for it. Stopped on SIGTERM."""
    w.section("eval")
    for callback in trainer.callback_handler.callbacks:
        if isinstance(callback, Callback):
            callback.is_after = True
    found: Dict[str, Any] = trainer.evaluate(*words, **rest)
    return found
