"""The name that scripts written before there was a package import: `import preregd_worker` is preregd.worker."""

import sys

from preregd import worker
from preregd.worker import *  # for type checkers: what is imported is preregd.worker itself

sys.modules[__name__] = worker
