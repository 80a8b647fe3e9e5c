"""lm-evaluation-harness 0.4.3 on local files: the tasks are its own YAML files, included; only where the data lie is ours.

Nothing is fetched: import this before anything that imports huggingface_hub or datasets."""

import csv
import json
import os

for name in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "TRANSFORMERS_OFFLINE"):
    os.environ[name] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import datasets
import lm_eval
import lm_eval.tasks
import torch
import transformers
import yaml
from lm_eval.models.huggingface import HFLM

import oracle

PACKAGE = os.path.dirname(lm_eval.__file__)
GROUPS = ("stem", "other", "social_sciences", "humanities")
# task of ours -> the harness's own file and the splits of it that a local file stands for: (evaluated, drawn from)
TASKS = {
    "hellaswag": ("hellaswag/hellaswag.yaml", "validation", "train"),
    "winogrande": ("winogrande/default.yaml", "validation", "train"),
    "gsm8k": ("gsm8k/gsm8k.yaml", "test", "train"),
    "arc_easy": ("arc/arc_easy.yaml", "test", "train"),
    "arc_challenge": ("arc/arc_challenge.yaml", "test", "train"),
    "piqa": ("piqa/piqa.yaml", "validation", "train"),
    "boolq": ("super_glue/boolq/default.yaml", "validation", "train"),
    "copa": ("super_glue/copa/default.yaml", "validation", "train"),
    "openbookqa": ("openbookqa/openbookqa.yaml", "test", "train"),
    "sciq": ("sciq/sciq.yaml", "test", "train"),
    "commonsense_qa": ("commonsense_qa/default.yaml", "validation", "train"),
    "lambada_openai": ("lambada/lambada_openai.yaml", "test", None),
    "wikitext": ("wikitext/wikitext.yaml", "test", None),
}
SPLITS = ("training_split", "validation_split", "test_split")


def quiet():
    transformers.logging.set_verbosity_error()
    datasets.disable_progress_bars()
    datasets.logging.set_verbosity_error()
    lm_eval.utils.eval_logger.setLevel("ERROR")


def write_yaml(folder, name, config):
    with open(os.path.join(folder, name + ".yaml"), "w", encoding="utf-8") as f:
        yaml.safe_dump(config, f, allow_unicode=True, sort_keys=False)


def local(include, name, files, shots):
    """The harness's task on our files. files: split -> path. A split without a file is taken away."""
    config = {"include": os.path.join(PACKAGE, "tasks", include), "task": name, "group": [], "dataset_path": "json",
              "dataset_name": None, "dataset_kwargs": {"data_files": files}, "num_fewshot": shots}
    return config


def define(folder, name, task, path, pool=None, shots=0):
    """A task `name`: the harness's `task` over the items in path, examples from pool."""
    include, evaluated, drawn = TASKS[task]
    files = {evaluated: path}
    config = local(include, name, files, shots)
    if pool is not None:
        files[drawn] = pool
    else:
        config["training_split"] = None
        if evaluated == "test" and shots > 0:  # examples out of the items themselves
            config["fewshot_split"] = "test"
    if evaluated == "test" and task != "lambada_openai":
        config["validation_split"] = None
    write_yaml(folder, name, config)
    return name


def read_csv(path):
    with open(path, newline="", encoding="utf-8") as f:
        return list(csv.reader(f))


def write_jsonl(path, rows):
    with open(path, "w", encoding="utf-8") as f:
        for row in rows:
            f.write(json.dumps(row, ensure_ascii=False) + "\n")
    return path


def subjects():
    """subject -> group, from the harness's own files."""
    out, folder = {}, os.path.join(PACKAGE, "tasks", "mmlu", "default")
    for file in sorted(os.listdir(folder)):
        if file.startswith("mmlu_") and file.endswith(".yaml"):
            with open(os.path.join(folder, file), encoding="utf-8") as f:
                config = yaml.safe_load(f)
            out[config["dataset_name"]] = config["group"].removeprefix("mmlu_")
    return out


def define_mmlu(folder, name, source, chosen, shots):
    """MMLU over the CSV files of source, as the group `name`; only the chosen subjects."""
    groups = subjects()
    for subject in chosen:
        files = {}
        for split in ("dev", "test"):
            rows = [{"question": r[0], "subject": subject, "choices": r[1:5], "answer": "ABCD".index(r[5])}
                    for r in read_csv(os.path.join(source, split, f"{subject}_{split}.csv"))]
            files[split] = write_jsonl(os.path.join(folder, f"{subject}_{split}.jsonl"), rows)
        config = local(f"mmlu/default/mmlu_{subject}.yaml", f"{name}_{subject}", files, shots)
        config["group"] = f"{name}_{groups[subject]}"
        write_yaml(folder, f"{name}_{subject}", config)
    used = [g for g in GROUPS if any(groups[s] == g for s in chosen)]
    write_yaml(folder, name, {"group": name, "task": [f"{name}_{g}" for g in used]})
    return name


Plain = HFLM


class Recorder(HFLM):
    """The harness's own model, which also remembers the tokens of every request. blind: it does not compute."""

    def __init__(self, *args, blind=False, **named):
        super().__init__(*args, **named)
        self.tokens, self.blind, self.asked = {}, blind, 0

    def _loglikelihood_tokens(self, requests, **named):
        for texts, context, continuation in requests:
            if texts is not None:
                self.tokens[texts] = (context, continuation)
                self.asked += len(context) + len(continuation) - 1
        if self.blind:
            return [(0.0, False)] * len(requests)
        return super()._loglikelihood_tokens(requests, **named)

    def generate_until(self, requests, **named):
        return [""] * len(requests) if self.blind else super().generate_until(requests, **named)

    def fed(self, texts):
        """(tokens as they go in, the last one only scored; how many of them are the continuation; how many were cut)."""
        context, continuation = self.tokens[texts]
        whole = context + continuation
        kept = whole[-(self.max_length + 1):]
        return kept, len(continuation), len(whole) - len(kept)

    def windows(self, text):
        """Of a whole text: (tokens as they go in, how many are scored) of every window."""
        pairs = lm_eval.utils.get_rolling_token_windows(token_list=self.tok_encode(text), prefix_token=self.prefix_token_id,
                                                        max_seq_len=self.max_length, context_len=1)
        return [[context + continuation, len(continuation)]
                for context, continuation in map(lm_eval.utils.make_disjoint_window, pairs)]

    def logits(self, ids):
        return self._model_call(torch.tensor([ids]))[0]

    def prompt(self, text, max_new):
        """Of a generation: (tokens as they go in, how many were cut)."""
        ids = self.tok_encode(text)
        kept = ids[-(self.max_length - max_new):]
        return kept, len(ids) - len(kept)


def find_tasks(folder):
    """Reads all of the harness's own files too, which takes seconds."""
    return lm_eval.tasks.TaskManager(include_path=folder)


def run(model, manager, names, iterations=1000, limit=None):
    return lm_eval.simple_evaluate(model=model, tasks=list(names), task_manager=manager, bootstrap_iters=iterations,
                                   limit=limit, log_samples=True, verbosity="ERROR")


# --- CORE's records as the columns the harness's tasks want -------------------------------------------------------------

def arc_columns(row):
    letters = [chr(ord("A") + i) for i in range(len(row["choices"]))]
    return {"question": row["query"].removeprefix("Question: "), "choices": {"text": row["choices"], "label": letters},
            "answerKey": letters[row["gold"]]}


def openbook_columns(row):
    return {"question_stem": row["query"], **{k: v for k, v in arc_columns(row).items() if k != "question"}}


def piqa_columns(row):
    return {"goal": row["query"].removeprefix("Question: ").removesuffix("\n"), "sol1": row["choices"][0],
            "sol2": row["choices"][1], "label": row["gold"]}


def boolq_columns(row):
    passage, question = row["query"].removeprefix("Passage: ").rsplit("\nQuestion: ", 1)
    return {"passage": passage, "question": question.removesuffix("?"), "label": row["gold"]}


def copa_columns(row):
    """CORE has a comma where the premise had its full stop, and the choices' first letters are small already."""
    premise, connector = row["query"].rsplit(", ", 1)
    return {"premise": premise + ".", "choice1": row["choices"][0], "choice2": row["choices"][1],
            "question": {"because": "cause", "therefore": "effect"}[connector], "label": row["gold"]}


def lambada_columns(row):
    return {"text": row["context"] + " " + row["continuation"]}


def commonsense_columns(row):
    """CORE has four of the five choices. The fifth, which these questions had, is lost; one stands in for all."""
    lines = row["query"].split("\n")
    texts = [line[3:] for line in lines[2:6]] + ["none of these"]
    return {"question": lines[0].removeprefix("Question: "), "choices": {"label": list("ABCDE"), "text": texts},
            "answerKey": "ABCDE"[row["gold"]]}


CORE = {
    "arc_easy": ("world_knowledge/arc_easy.jsonl", arc_columns),
    "arc_challenge": ("world_knowledge/arc_challenge.jsonl", arc_columns),
    "openbookqa": ("commonsense_reasoning/openbook_qa.jsonl", openbook_columns),
    "piqa": ("commonsense_reasoning/piqa.jsonl", piqa_columns),
    "boolq": ("reading_comprehension/boolq.jsonl", boolq_columns),
    "copa": ("commonsense_reasoning/copa.jsonl", copa_columns),
    "lambada_openai": ("language_understanding/lambada_openai.jsonl", lambada_columns),
    "commonsense_qa": ("commonsense_reasoning/commonsense_qa.jsonl", commonsense_columns),
}


def columns(task, folder):
    """The file of a task in the harness's columns, made from CORE's."""
    source, turn = CORE[task]
    with open(oracle.shared_data("core", "eval_data", source), encoding="utf-8") as f:
        rows = [turn(json.loads(line)) for line in f]
    return write_jsonl(os.path.join(folder, f"{task}_columns.jsonl"), rows)
