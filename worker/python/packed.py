"""In a packed worker, between the helper's text and the worker's: makes the package `preregd` of this file.

`import preregd` gives the helper that is above, and `import preregd.torch` the text that `pack` put into PACKED: what a lock pins
is then one file, and a copy of the package that happens to be installed is not used beside it.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
from typing import Any, Dict, Optional

PACKED: Dict[str, str] = {}  # name of a module -> its text


class PackedModules(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Finds and loads the modules of PACKED. Their tracebacks show their lines."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Optional[importlib.machinery.ModuleSpec]:
        if fullname not in PACKED:
            return None
        spec = importlib.util.spec_from_loader(fullname, self, origin=f"{sys.argv[0]}/{fullname}")
        if spec is not None:
            spec.has_location = True  # so that __file__ is the origin, under which tracebacks look for lines
        return spec

    def get_source(self, fullname: str) -> str:
        return PACKED[fullname]

    def exec_module(self, module: types.ModuleType) -> None:
        exec(compile(PACKED[module.__name__], f"{sys.argv[0]}/{module.__name__}", "exec"), module.__dict__)


def make_package() -> None:
    here = sys.modules[__name__]
    package = types.ModuleType("preregd", "The helper of this packed worker.")
    package.__path__ = []
    package.__dict__.update({name: value for name, value in vars(here).items() if not name.startswith("_")})
    package.__dict__.update(worker=here, basics=here)
    sys.modules.update({"preregd": package, "preregd.worker": here, "preregd.basics": here})
    sys.meta_path.insert(0, PackedModules())


make_package()
