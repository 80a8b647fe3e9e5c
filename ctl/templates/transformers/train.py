"""Trains a small Llama on bytes with transformers' Trainer. The lines that are preregd's say `w` or `preregd`."""

import torch
import transformers

import preregd as prereg
import preregd.torch
import preregd.transformers

HELD_OUT = 64  # windows at the end of the text, which the loss is measured on


class Windows(torch.utils.data.Dataset):
    """Windows of a text, each a training example of its own."""

    def __init__(self, ids, context):
        self.windows = ids[:len(ids) // context * context].view(-1, context)

    def __len__(self):
        return len(self.windows)

    def __getitem__(self, i):
        return {"input_ids": self.windows[i], "labels": self.windows[i]}


def setup(w):                                         # asked before the lock, too: reads, promises, does no work
    p = {"layers": w.params.integer("layers", 1, 100), "seed": w.params.integer("seed", 0, 2**32 - 1),
         "steps": w.params.integer("steps", 1, 10**7), "batch": w.params.integer("batch", 1, 10**5),
         "context": w.params.integer("context", 2, 10**5), "lr": w.params.number("lr", 0, 1)}
    w.params.finish()                                 # every fault at once
    w.will_measure("val_loss")
    w.fact("steps", p["steps"])                       # what is held fixed between the cells
    return p


def work(w, p):
    preregd.torch.prepare(w, p["seed"])               # threads, seeds, deterministic algorithms
    with open(w.data("corpus"), "rb") as f:
        ids = torch.frombuffer(bytearray(f.read()), dtype=torch.uint8).long()
    end = len(ids) - HELD_OUT * p["context"]
    train, held_out = Windows(ids[:end], p["context"]), Windows(ids[end:], p["context"])

    config = transformers.LlamaConfig(vocab_size=256, hidden_size=64, intermediate_size=128, num_hidden_layers=p["layers"],
                                      num_attention_heads=4, max_position_embeddings=p["context"])
    model = transformers.LlamaForCausalLM(config)
    w.fact("params_total", model.num_parameters())
    args = preregd.transformers.arguments(w, max_steps=p["steps"], per_device_train_batch_size=p["batch"], learning_rate=p["lr"],
                                          warmup_steps=5, seed=p["seed"])
    trainer = transformers.Trainer(model, args, train_dataset=train, eval_dataset=held_out)

    preregd.transformers.train(w, trainer)            # progress, checkpoints when they are due, resumption, SIGTERM
    found = preregd.transformers.evaluate(w, trainer)
    w.metric("val_loss", found["eval_loss"], n=HELD_OUT)
    model.save_pretrained("model")
    w.artifact("model")                               # later stages read it: prereg-lm-eval, say


prereg.run(setup, work)
