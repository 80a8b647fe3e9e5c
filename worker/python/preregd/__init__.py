"""preregd for Python: workers that speak the file protocol, and what a program measured.

    import preregd as prereg

    def setup(w): ...
    def work(w, p): ...
    prereg.run(setup, work)

preregd.worker has the whole of it, with a worker in its docstring. preregd.torch, preregd.transformers and preregd.lightning keep
a training's state; preregd.lm_eval runs lm-evaluation-harness as a stage; preregd.results reads a program's records, verdict and
curves. Only these need anything beyond the standard library, and only what their names say.
"""

from preregd.basics import (DataFault, Fault, NotMeasurable, Params, Stopped, UsageFault, digest_file, digest_path, files_below,
                            write_file)
from preregd.worker import Events, Items, Pace, Worker, read_task, run

__all__ = ["DataFault", "Events", "Fault", "Items", "NotMeasurable", "Pace", "Params", "Stopped", "UsageFault", "Worker",
           "digest_file", "digest_path", "files_below", "read_task", "run", "write_file"]
