"""preregd.torch, .transformers and .lightning with the real libraries: a training that is killed in the middle, and stopped by
SIGTERM, resumes from a checkpoint to the same bytes of its loss curve, its weights and its score. Skipped without the libraries."""

import importlib.util
import json
import os
import signal
import subprocess
import sys

import oracle

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e"))
from lib import lab  # noqa: E402
from lib.lab import equal, expect  # noqa: E402

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(lab.TOP, "worker/python"))

STEPS, HOLD = 24, 15

# What all three share: a net with dropout (PyTorch's generator), noise of numpy's and Python's, a data set of 40 items in batches
# of 6, so that epochs end within the run. In step HOLD of a disturbed attempt the training waits until it is killed or stopped.
COMMON = """
import os, random, sys, time
import numpy, torch
import preregd as prereg
import preregd.torch

class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 40
    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        x = torch.randn(8, generator=g)
        return {"x": x, "labels": x[:1] * 2 + x[1:2]}

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Dropout(0.3), torch.nn.Linear(16, 1))
        self.calls = 0
    def forward(self, x, labels=None):
        if self.training:
            self.calls += 1
            x = x + 0.01 * random.random() + 0.01 * float(numpy.random.rand())
            if self.calls == int(os.environ.get("HOLD", 0)):
                print("holds", file=sys.stderr, flush=True)
                while not WORKER.stop_asked:
                    time.sleep(0.02)
        out = self.mix(x)
        loss = torch.nn.functional.mse_loss(out, labels)
        return {"loss": loss, "logits": out}

def setup(w):
    global WORKER
    WORKER = w
    p = {"steps": w.params.integer("steps", 1, 1000), "workers": w.params.integer("workers", 0, 8, 0)}
    w.params.finish()
    w.will_measure("val_loss")
    return p

def finish(w, net):
    w.section("eval")
    net.eval()
    data = Data()
    with torch.no_grad():
        w.metric("val_loss", sum(float(net(data[i]["x"], data[i]["labels"])["loss"]) for i in range(40)) / 40, n=40)
    os.makedirs("model", exist_ok=True)
    with open("model/weights", "wb") as f:
        for t in net.parameters():
            f.write(t.detach().numpy().tobytes())
    w.artifact("model")
"""

TORCH = COMMON + """
def work(w, p):
    preregd.torch.prepare(w, 7)
    net = Net()
    opt = torch.optim.AdamW(net.parameters(), lr=0.01)
    plan = torch.optim.lr_scheduler.OneCycleLR(opt, 0.02, total_steps=p["steps"] + 1)
    batches = preregd.torch.Batches(Data(), 6, 7, num_workers=p["workers"])
    data = batches.forever()
    for step in preregd.torch.steps(w, p["steps"], model=net, optimizer=opt, scheduler=plan, batches=batches):
        loss = net(**next(data))["loss"]
        opt.zero_grad()
        loss.backward()
        opt.step()
        plan.step()
        w.point(step, "loss", loss)
    finish(w, net)
prereg.run(setup, work)
"""

TRANSFORMERS = COMMON + """
import transformers
import preregd.transformers

def work(w, p):
    preregd.torch.prepare(w, 7)
    net = Net()
    args = preregd.transformers.arguments(w, max_steps=p["steps"], learning_rate=0.01, seed=7, per_device_train_batch_size=6,
                                          use_cpu=True, save_safetensors=False, lr_scheduler_type="cosine", eval_strategy="steps",
                                          eval_steps=10)
    trainer = transformers.Trainer(net, args, train_dataset=Data(), eval_dataset=Data())
    preregd.transformers.train(w, trainer)
    found = preregd.transformers.evaluate(w, trainer)
    finish(w, net)
    assert abs(found["eval_loss"] - w.metrics["val_loss"]["value"]) < 1e-4, found
prereg.run(setup, work)
"""

LIGHTNING = COMMON + """
import lightning.pytorch
import preregd.lightning

class Module(lightning.pytorch.LightningModule):
    def __init__(self, net):
        super().__init__()
        self.net = net
    def training_step(self, batch, i):
        return self.net(**batch)["loss"]
    def configure_optimizers(self):
        opt = torch.optim.AdamW(self.parameters(), lr=0.01)
        plan = torch.optim.lr_scheduler.StepLR(opt, 1, 0.5)  # at the end of an epoch, so batches must be counted right
        return {"optimizer": opt, "lr_scheduler": {"scheduler": plan, "interval": "epoch"}}

def work(w, p):
    preregd.torch.prepare(w, 7)
    net = Net()
    trainer = preregd.lightning.trainer(w, max_steps=p["steps"], accelerator="cpu")
    preregd.lightning.fit(w, trainer, Module(net), preregd.torch.Batches(Data(), 6, 7))
    assert trainer.global_step == p["steps"] or w.task["try"], trainer.global_step
    finish(w, net)
prereg.run(setup, work)
"""


def events(folder, kind):
    """Events of that type, each as it was written."""
    with open(os.path.join(folder, "events.jsonl"), encoding="utf-8") as f:
        return [line for line in f if line.endswith("\n") and json.loads(line)["type"] == kind]


def curve(folders):
    """step -> line of the curve "loss", of attempts in their order; a step that two of them took is in both the same."""
    found = {}
    for folder in folders:
        for line in events(folder, "point"):
            point = json.loads(line)
            if point["name"] == "loss":
                equal(found.setdefault(point["step"], line), line, f"step {point['step']} in {folder}")
    return found


class Training:
    """A script run by hand, attempt after attempt, with the packed prereg-python."""

    def __init__(self, place, name, text, **params):
        self.place, self.name, self.params = place, name, {"steps": STEPS, **params}
        self.script = place.path(f"{name}.py")
        place.write(f"{name}.py", text)

    def attempt(self, label, resume=(), end=None, hold=HOLD, **members):
        """Runs one attempt and gives its folder; `end`: a signal that it gets in step `hold`."""
        folder = self.place.path(f"{self.name}-{label}")
        task = {"protocol": 1, "attempt": label, "attempt_no": 1 + len(resume), "threads": 1, "stage": "train", "params": self.params,
                "checkpoint": 0, "resume": list(reversed(resume)), **members}
        self.place.write(os.path.join(folder, "task.json"), json.dumps(task))
        env = {**os.environ, "PREREG_TASK": "task.json", "PREREG_EVENTS": "events.jsonl", "HOLD": str(hold if end else 0)}
        with open(os.path.join(folder, "stderr.log"), "w+", encoding="utf-8") as log:
            child = subprocess.Popen([sys.executable, os.path.join(self.place.bin, "prereg-python"), self.script], cwd=folder, env=env,
                                     stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log)
            if end is not None:
                self.place.wait_for(lambda: child.poll() is not None or "holds" in self.said(folder), 120, f"{folder} holds")
                child.send_signal(end)
            code = child.wait(timeout=240)
        wanted = {None: 0, signal.SIGKILL: -9, signal.SIGTERM: 75}[end]
        equal(code, wanted, f"exit code of {folder}:\n{self.said(folder)}")
        return folder

    @staticmethod
    def said(folder):
        with open(os.path.join(folder, "stderr.log"), encoding="utf-8") as f:
            return f.read()


def end_of(folder):
    """The metrics, and the digests of the artifacts."""
    with open(os.path.join(folder, "result.json"), encoding="utf-8") as f:
        result = json.load(f)
    return result["metrics"], [(a["path"], a["sha256"]) for a in result["artifacts"]]


def check(place, name, text, **params):
    training = Training(place, name, text, **params)
    calm = training.attempt("calm")
    wanted = curve([calm])
    equal(len(wanted), STEPS, "points of an undisturbed run")
    for label, end in (("killed", signal.SIGKILL), ("stopped", signal.SIGTERM)):
        first = training.attempt(label, end=end)
        kept = sorted(os.listdir(os.path.join(first, "checkpoint")))
        if end == signal.SIGKILL:  # the newest one is torn: it goes on from the one before, and repeats a step
            for folder, _, names in os.walk(os.path.join(first, "checkpoint", kept[-1])):
                for each in names:
                    if each != "manifest.json":
                        with open(os.path.join(folder, each), "ab") as f:
                            f.write(b"torn")
            kept = kept[:-1]
        second = training.attempt(f"{label}-next", [first])
        resumed = [json.loads(line)["step"] for line in events(second, "resumed")]
        equal(resumed, [int(kept[-1].split("-")[1])], f"{label}: where it went on")
        expect(0 < resumed[0] < STEPS, f"{label}: resumed from {resumed}")
        equal(curve([first, second]), wanted, f"{label}: the curve")
        equal(end_of(second), end_of(calm), f"{label}: metrics and weights")
    last = training.attempt("last", end=signal.SIGTERM, hold=STEPS)
    after = training.attempt("last-next", [last])
    equal(curve([last, after]), wanted, "stopped in the last step: the curve")
    equal(end_of(after), end_of(calm), "stopped in the last step: metrics and weights")
    tried = training.attempt("tried", **{"try": {"steps": 3, "items": 3}})
    with open(os.path.join(tried, "result.json"), encoding="utf-8") as f:
        found = json.load(f)["try"]
    equal((found["done"], found["of"]), (3, STEPS), "what `preregctl try` did of the whole")
    print(f"  {name}: killed and stopped in step {HOLD} of {STEPS}: the same {STEPS} lines of the curve, weights and score", flush=True)


def needed(name):
    if importlib.util.find_spec(name) is None:
        lab.skip(f"no {name} in this environment")


def test_torch(place):
    check(place, "torch", TORCH)


def test_torch_loader_processes(place):
    """With DataLoader's own processes, which read ahead of what was trained on."""
    check(place, "loaders", TORCH, workers=2)


def test_transformers(place):
    needed("transformers")
    check(place, "transformers", TRANSFORMERS)


def test_lightning(place):
    needed("lightning")
    check(place, "lightning", LIGHTNING)


def test_frames(place):
    """preregd.results with pandas: tables are DataFrames, numbers are numbers, what is open is missing."""
    needed("pandas")
    import pandas
    from preregd import results
    place.write("program/report/verdict.json", '{"outcome": "two"}')
    place.write("ctl", "#!/bin/sh\nprintf 'cell,reach,measure,value,n,why\\n\"reach=1,seed=2\",1,quiz,0.5,400,\\nb,2.5,quiz,,,not_finite\\n'"
                       " | tee $4/records.csv > $4/means.csv\n", 0o755)
    p = results.Program(place.path("program"), preregctl=place.path("ctl"))
    table = p.records()
    expect(isinstance(table, pandas.DataFrame), f"records are a {type(table)}")
    equal((list(table["value"])[0], pandas.isna(table["value"][1]), list(table["reach"]), p.verdict["outcome"]),
          (0.5, True, [1, 2.5], "two"), "the table")


def test_types(place):
    """mypy --strict finds nothing in the package."""
    needed("mypy")
    run = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", place.path("mypy")], capture_output=True, text=True,
                         cwd=os.path.join(lab.TOP, "worker/python"))
    expect(run.returncode == 0 and "no issues found" in run.stdout, f"mypy: {run.stdout}{run.stderr}")


sys.argv[1] = os.path.join(os.path.abspath(sys.argv[1]), "bin")
lab.main(test_torch, test_torch_loader_processes, test_transformers, test_lightning, test_frames, test_types)
