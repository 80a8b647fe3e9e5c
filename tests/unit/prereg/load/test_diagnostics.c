/* What is said about a program that is wrong: one change to a whole program, and every line of the
 * answer. */
#include <stdlib.h>
#include <string.h>

#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "prereg/load/toml.h"
#include "tests/unit/check.h"
#include "tests/unit/prereg/support.h"

static const struct {
    const char *name;
    const char *from;
    const char *to;
    const char *expected;
} CASES[] = {
    {"unknown_section", "[run]\n", "[rum]\n",
     "grid.toml:38:2: error: unknown key \"rum\"; did you mean \"run\"?\n"},
    {"no_program",
     "[program]\n"
     "name = \"small\"\n"
     "schema = 1\n"
     "question = \"Which?\"\n",
     "", "grid.toml:1:1: error: the section [program] is missing\n"},
    {"bad_name", "name = \"small\"", "name = \"Small one\"",
     "grid.toml:2:8: error: program.name: \"Small one\" is not a name: a lower-case letter, then "
     "lower-case letters, digits and _, 64 at most\n"},
    {"empty_name", "name = \"small\"", "name = \"\"",
     "grid.toml:2:8: error: program.name: an empty string\n"},
    {"schema", "schema = 1", "schema = 2",
     "grid.toml:3:10: error: program.schema: 2 is not a schema this version reads; known: 1\n"},
    {"schema_kind", "schema = 1", "schema = \"1\"",
     "grid.toml:3:10: error: program.schema: expected a whole number, found a string\n"},
    {"supersedes_a_name", "question = \"Which?\"",
     "question = \"Which?\"\nsupersedes = \"other-01234567\"",
     "grid.toml:5:14: error: program.supersedes: it is not the root of another program: 64 "
     "lower-case hex digits, as `preregctl diff` shows them\n"},
    {"supersedes_itself", "question = \"Which?\"", "question = \"Which?\"\nsupersedes = \"small\"",
     "grid.toml:5:14: error: program.supersedes: its own name is not the root of another program: "
     "64 lower-case hex digits, as `preregctl diff` shows them\n"},
    {"supersedes_upper_case", "question = \"Which?\"",
     "question = \"Which?\"\nsupersedes = "
     "\"0123456789ABCDEF0123456789ABCDEF0123456789ABCDEF0123456789ABCDEF\"",
     "grid.toml:5:14: error: program.supersedes: it is not the root of another program: 64 "
     "lower-case hex digits, as `preregctl diff` shows them\n"},
    {"unknown_key", "question =", "quesiton =",
     "grid.toml:4:1: error: program: unknown key \"quesiton\"; did you mean \"question\"?\n"},
    {"syntax", "[data]\n", "[data\n",
     "grid.toml:12:6: error: Error while parsing table header: expected ']', saw '\\n'\n"},
    {"twice", "schema = 1",
     "schema = 1\n"
     "schema = 1",
     "grid.toml:4:1: error: schema is set twice in one table, first in line 3: keep one of the "
     "two\n"},
    {"twice_behind_an_array", "levels = [1, 2]",
     "levels = [\n"
     "  1, # [factor]\n"
     "  2\n"
     "]\n"
     "levels = [\"[\"]",
     "grid.toml:14:1: error: levels is set twice in one table, first in line 10: keep one of the "
     "two\n"},
    {"table_twice", "[run.train]\n",
     "[run]\n"
     "slots = 1\n"
     "[run.train]\n",
     "grid.toml:40:1: error: [run] is in this file twice, first in line 38: put its keys under one "
     "header\n"},
    {"subtable_twice", "[run.train]\n",
     "[ run.slurm ] # once\n"
     "partition = \"a\"\n"
     "[run.slurm]\n"
     "partition = \"b\"\n"
     "[run.train]\n",
     "grid.toml:42:1: error: [run.slurm] is in this file twice, first in line 40: put its keys "
     "under "
     "one header\n"},
    {"table_as_a_key_and_a_header", "slots = 2\n",
     "slurm = { partition = \"a\" }\n"
     "[run.slurm]\n",
     "grid.toml:40:1: error: Error while parsing table header: cannot redefine existing table "
     "'run.slurm'\n"},
    {"factor_levels_none", "levels = [\"dense\", \"moe\"]", "levels = []",
     "grid.toml:7:10: error: factor.arch.levels: no levels\n"},
    {"factor_levels_twice", "levels = [1, 2]", "levels = [1, 2, 1.0]",
     "grid.toml:10:17: error: factor.seed.levels[2]: level \"1\" is duplicated\n"},
    {"factor_levels_missing", "levels = [1, 2]\n", "",
     "grid.toml:8:1: error: factor.seed: \"levels\" is missing\n"},
    {"factor_level_kind", "levels = [1, 2]", "levels = [1, [2], \"\"]",
     "grid.toml:10:14: error: factor.seed.levels[1]: a level is a string, a number or true or "
     "false, not an array\n"
     "grid.toml:10:19: error: factor.seed.levels[2]: a level without a name\n"},
    {"factor_twice", "name = \"seed\"", "name = \"arch\"",
     "grid.toml:9:8: error: factor.arch.name: factor \"arch\" is duplicated\n"
     "grid.toml:17:30: error: stage.train.params.seed: unknown factor \"seed\"\n"},
    {"nearly_a_factor", "seed = \"$seed\"", "seed = \"$Seed\", b = [\"$HOME\", \"$\"]",
     "grid.toml:17:30: warning: stage.train.params.seed: \"$Seed\" names no factor and stays a "
     "string; did you mean \"$seed\"?\n"},
    {"factor_table",
     "[[factor]]\n"
     "name = \"arch\"",
     "[factor]\n"
     "name = \"arch\"",
     "grid.toml:8:1: error: Error while parsing table header: cannot redefine existing table "
     "'factor' as array-of-tables\n"},
    {"cells", "levels = [1, 2]",
     "levels = [1, 2]\n"
     "[[factor]]\n"
     "name = \"a\"\n"
     "levels = "
     "[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,"
     "34,35,36,37,38,39,40,41,42,43,44,45,46,47,48,49]\n"
     "[[factor]]\n"
     "name = \"b\"\n"
     "levels = "
     "[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,"
     "34,35,36,37,38,39,40,41,42,43,44,45,46,47,48,49]\n"
     "[[factor]]\n"
     "name = \"c\"\n"
     "levels = "
     "[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,"
     "34,35,36,37,38,39,40,41,42,43,44,45,46,47,48,49,50,51,52,53,54,55,56,57,58,59,60,61,62,63,64,"
     "65,66,67,68,69,70,71,72,73,74,75,76,77,78,79,80,81,82,83,84,85,86,87,88,89,90,91,92,93,94,95,"
     "96,97,98,99]",
     "grid.toml:5:1: error: the factors make 1e+06 cells; the limit is 100000\n"},
    {"cell_names",
     "levels = [\"dense\", \"moe\"]\n"
     "[[factor]]\n"
     "name = \"seed\"\n"
     "levels = [1, 2]",
     "levels = [\"dense\", \"moe\", \"x\", \"x,seed=1\"]\n"
     "[[factor]]\n"
     "name = \"seed\"\n"
     "levels = [\"1\", \"1,seed=1\"]",
     "grid.toml:5:1: error: two cells would be called \"arch=x,seed=1,seed=1\": take ',' and '=' "
     "out of the levels\n"},
    {"data_kind", "corpus = \"corpus.txt\"",
     "corpus = 1\n"
     "Corpus = \"x\"\n"
     "empty = \"\"",
     "grid.toml:13:10: error: data.corpus: expected a string, found a whole number\n"
     "grid.toml:14:1: error: data: \"Corpus\" is not a name: a lower-case letter, then lower-case "
     "letters, digits and _, 64 at most\n"
     "grid.toml:15:9: error: data.empty: an empty path\n"},
    {"command_empty", "command = [\"./worker.sh\", \"--quick\"]", "command = []",
     "grid.toml:15:11: error: stage.train.command: expected 1 to 256 strings, found 0\n"},
    {"command_kind", "command = [\"./worker.sh\", \"--quick\"]", "command = [\"\", 1]",
     "grid.toml:15:12: error: stage.train.command[0]: an empty name of a program\n"
     "grid.toml:15:16: error: stage.train.command[1]: expected a string, found a whole number\n"},
    {"command_missing", "command = [\"./worker.sh\", \"--quick\"]\n", "",
     "grid.toml:14:8: error: stage.train: \"command\" is missing\n"},
    {"threads", "threads = 2", "threads = 0",
     "grid.toml:16:11: error: stage.train.threads: 0 is outside 1..1024\n"},
    {"threads_kind", "threads = 2", "threads = 2.0",
     "grid.toml:16:11: error: stage.train.threads: expected a whole number, found a number\n"},
    {"after_unknown", "after = [\"train\"]", "after = [\"trian\"]",
     "grid.toml:21:10: error: stage.score.after[0]: unknown stage \"trian\"; did you mean "
     "\"train\"?\n"},
    {"after_twice", "after = [\"train\"]", "after = [\"train\", \"train\"]",
     "grid.toml:21:19: error: stage.score.after[1]: \"train\" is duplicated\n"},
    {"circle", "threads = 2", "after = [\"score\"]",
     "grid.toml:14:8: error: stage.train: stages wait for each other in a circle: train -> score "
     "-> train\n"},
    {"self", "threads = 2", "after = [\"train\"]",
     "grid.toml:14:8: error: stage.train: stages wait for each other in a circle: train -> "
     "train\n"},
    {"reserved_stage", "[stage.score]", "[stage.memory]",
     "grid.toml:20:8: error: stage.memory: \"memory\" is a key of [run] and cannot name a stage\n"
     "grid.toml:24:18: error: measure.acc.metric: unknown stage \"score\"\n"},
    {"env", "threads = 2", "env = { \"A-B\" = \"1\", PREREG_TASK = \"x\", OK = 2 }",
     "grid.toml:16:9: error: stage.train.env.A-B: \"A-B\" is not a name of a variable\n"
     "grid.toml:16:22: error: stage.train.env.PREREG_TASK: PREREG_TASK is set by the daemon\n"
     "grid.toml:16:46: error: stage.train.env.OK: expected a string, found a whole number\n"},
    {"substitution", "\"$seed\"", "\"$sed\"",
     "grid.toml:17:30: error: stage.train.params.seed: unknown factor \"sed\"; did you mean "
     "\"seed\"?\n"},
    {"when_factor", "[stage.train.when.arch]", "[stage.train.when.arhc]",
     "grid.toml:18:19: error: stage.train.when: unknown factor \"arhc\"; did you mean \"arch\"?\n"},
    {"when_level", "moe = { experts = 4 }", "mow = { experts = 4 }",
     "grid.toml:19:1: error: stage.train.when.arch: unknown level \"mow\"; did you mean "
     "\"moe\"?\n"},
    {"when_kind", "moe = { experts = 4 }", "moe = 4",
     "grid.toml:19:7: error: stage.train.when.arch.moe: expected a table, found a whole number\n"},
    {"when_twice",
     "[stage.train.when.arch]\n"
     "moe = { experts = 4 }",
     "[stage.train.when.seed]\n"
     "1 = {}\n"
     "\"1.0\" = {}",
     "grid.toml:20:1: error: stage.train.when.seed.1.0: level \"1\" is duplicated\n"},
    {"date", "lr = 1e-3", "lr = 2020-01-01",
     "grid.toml:17:17: error: stage.train.params.lr: a date cannot be locked: write it as a "
     "string\n"},
    {"nan", "lr = 1e-3", "lr = nan",
     "grid.toml:17:17: error: stage.train.params.lr: nan is not a number that can be locked\n"},
    {"inf", "lr = 1e-3", "lr = -inf",
     "grid.toml:17:17: error: stage.train.params.lr: inf is not a number that can be locked\n"},
    {"big_int", "lr = 1e-3", "lr = 9007199254740992",
     "grid.toml:17:17: error: stage.train.params.lr: 9007199254740992 is beyond 2^53 - 1: it "
     "cannot be kept exactly\n"},
    {"big_float", "lr = 1e-3", "lr = 1e17",
     "grid.toml:17:17: error: stage.train.params.lr: 1e+17 is a whole number beyond 2^53 - 1: it "
     "cannot be kept exactly\n"},
    {"measure_stage", "score.acc", "scor.acc",
     "grid.toml:24:18: error: measure.acc.metric: unknown stage \"scor\"; did you mean "
     "\"score\"?\n"},
    {"measure_metric", "score.acc", "score.",
     "grid.toml:24:18: error: measure.acc.metric: expected \"stage.metric\", found \"score.\"\n"},
    {"items", "items = 100", "items = 0",
     "grid.toml:24:39: error: measure.acc.items: 0 is outside 1..9007199254740991\n"},
    {"chance", "chance = 0.25", "chance = 1.25",
     "grid.toml:24:53: error: measure.acc.chance: 1.25 is outside 0..1: a share, as 0.90\n"},
    {"floor_range", "floor = 0.3", "floor = 1.3",
     "grid.toml:24:67: error: measure.acc.floor: 1.3 is outside 0..1: a share, as 0.90\n"},
    {"floor_under_chance", "floor = 0.3", "floor = 0.2",
     "grid.toml:24:67: error: measure.acc.floor: 0.2 is below chance, 0.25: guessing would clear "
     "it\n"},
    {"floor_lower", "floor = 0.3", "floor = 0.3, better = \"lower\"",
     "grid.toml:24:67: error: measure.acc.floor: a floor is reached from below, and here lower is "
     "better\n"},
    {"hub_key", "floor = 0.3", "floor = 0.3, hub = { dataset = \"a/b\", tsk = \"x\" }",
     "grid.toml:24:72: error: measure.acc.hub: \"task\" is missing\n"
     "grid.toml:24:97: error: measure.acc.hub: unknown key \"tsk\"; did you mean \"task\"?\n"},
    {"hub_dataset", "floor = 0.3",
     "floor = 0.3, hub = { dataset = \"cais mmlu\", task = \"m\", revision = \"main\" }",
     "grid.toml:24:90: error: measure.acc.hub.dataset: \"cais mmlu\" is not a dataset of the Hub "
     "(ORG/NAME)\n"
     "grid.toml:24:126: error: measure.acc.hub.revision: \"main\" is not a commit (40 hex "
     "digits)\n"},
    {"hub_path", "floor = 0.3", "floor = 0.3, hub = { dataset = \"../b\", task = \"m\" }",
     "grid.toml:24:90: error: measure.acc.hub.dataset: \"../b\" is not a dataset of the Hub "
     "(ORG/NAME)\n"},
    {"best_arm", "floor = 0.3", "best_arm = 0.3",
     "grid.toml:24:70: error: measure.acc.best_arm: needs a floor to add to\n"},
    {"best_arm_under", "floor = 0.3", "floor = 0.3, best_arm = 0.29",
     "grid.toml:24:83: warning: measure.acc.best_arm: 0.29 is below the floor and never decides "
     "anything\n"},
    {"better", "floor = 0.3", "floor = 0.3, better = \"more\"",
     "grid.toml:24:81: error: measure.acc.better: \"more\" is not \"higher\" or \"lower\"\n"},
    {"same_metric", "[contrast]",
     "again = { metric = \"score.acc\" }\n"
     "[contrast]",
     "grid.toml:25:9: warning: measure.again: reads the same metric as measure.acc\n"},
    {"between_level", "[\"moe\", \"dense\"]", "[\"moe\", \"densee\"]",
     "grid.toml:26:37: error: contrast.arch.between.arch[1]: unknown level \"densee\"; did you "
     "mean \"dense\"?\n"},
    {"between_self", "[\"moe\", \"dense\"]", "[\"moe\", \"moe\"]",
     "grid.toml:26:29: error: contrast.arch.between.arch: level \"moe\" is compared with itself\n"},
    {"between_count", "[\"moe\", \"dense\"]", "[\"moe\", \"dense\", \"moe\"]",
     "grid.toml:26:29: error: contrast.arch.between.arch: expected two levels, [a, b] for a - b, "
     "found 3\n"},
    {"between_replicate", "arch = [\"moe\", \"dense\"]", "seed = [1, 2]",
     "grid.toml:26:22: error: contrast.arch.between.seed: a replicate is not a thing to compare\n"},
    {"between_two", "arch = [\"moe\", \"dense\"] }", "arch = [\"moe\", \"dense\"], seed = [1, 2] }",
     "grid.toml:26:20: error: contrast.arch.between: expected one factor, found 2\n"},
    {"where_same", "arch = [\"moe\", \"dense\"] } }",
     "arch = [\"moe\", \"dense\"] }, where = { arch = \"moe\" } }",
     "grid.toml:26:59: error: contrast.arch.where.arch: this is the factor that is compared\n"},
    {"where_replicate", "arch = [\"moe\", \"dense\"] } }",
     "arch = [\"moe\", \"dense\"] }, where = { seed = 1 } }",
     "grid.toml:26:59: error: contrast.arch.where.seed: a replicate is not a thing to compare\n"},
    {"over", "arch = [\"moe\", \"dense\"] } }", "arch = [\"moe\", \"dense\"] }, over = \"clear\" }",
     "grid.toml:26:56: error: contrast.arch.over: \"clear\" is not \"counted\" or \"cleared\"\n"},
    {"minus_unknown", "[counter]",
     "d = { of = \"arch\", minus = \"arhc\" }\n"
     "[counter]",
     "grid.toml:27:28: error: contrast.d.minus: unknown contrast \"arhc\"; did you mean "
     "\"arch\"?\n"},
    {"minus_self", "[counter]",
     "d = { of = \"arch\", minus = \"arch\" }\n"
     "[counter]",
     "grid.toml:27:28: error: contrast.d.minus: \"arch\" minus itself\n"},
    {"minus_nested", "[counter]",
     "d = { of = \"arch\", minus = \"e\" }\n"
     "e = { of = \"arch\", minus = \"d\" }\n"
     "[counter]",
     "grid.toml:27:28: error: contrast.d.minus: \"e\" is itself a difference of contrasts\n"
     "grid.toml:28:28: error: contrast.e.minus: \"d\" is itself a difference of contrasts\n"},
    {"minus_settings", "[counter]",
     "b = { between = { arch = [\"moe\", \"dense\"] }, where = { lr = 1 } }\n"
     "d = { of = \"arch\", minus = \"b\" }\n"
     "[counter]",
     "grid.toml:27:56: error: contrast.b.where: unknown factor \"lr\"\n"},
    {"counter_contrast", "contrast = \"arch\"", "contrast = \"arhc\"",
     "grid.toml:28:18: error: counter.k.contrast: unknown contrast \"arhc\"; did you mean "
     "\"arch\"?\n"},
    {"counter_binds", "binds = true", "binds = false",
     "grid.toml:27:2: error: counter: none says binds = true; exactly one must\n"},
    {"counter_bind_two", "[[input]]",
     "m = { contrast = \"arch\", clears = \"arm_means\", binds = true }\n"
     "[[input]]",
     "grid.toml:29:56: error: counter.m.binds: counter.k binds already; exactly one may\n"},
    {"counter_clears", "clears = \"every_cell\", ", "",
     "grid.toml:28:1: error: counter.k: \"clears\" is missing\n"},
    {"cleared_without_counter",
     "] } }\n"
     "[counter]\n"
     "k = { contrast = \"arch\", clears = \"every_cell\", binds = true }\n",
     "] }, over = \"cleared\" }\n",
     "grid.toml:26:56: error: contrast.arch.over: \"cleared\" means under the binding counter, and "
     "there is no [counter]\n"},
    {"input_shape", "[\"no\", \"otherwise\"]", "[\"no\"]",
     "grid.toml:31:38: error: input.cleared.levels[1]: a level is [\"name\", \"condition\"]\n"
     "grid.toml:34:25: error: table.rows[1][0]: unknown level \"no\"\n"},
    {"input_twice", "[\"no\", \"otherwise\"]", "[\"yes\", \"otherwise\"]",
     "grid.toml:31:39: error: input.cleared.levels[1][0]: level \"yes\" is duplicated\n"
     "grid.toml:34:25: error: table.rows[1][0]: unknown level \"no\"\n"},
    {"input_after_otherwise", "\"counter.k == 1\"", "\"otherwise\"",
     "grid.toml:31:33: error: input.cleared.levels[1]: nothing can follow \"otherwise\"\n"},
    {"input_empty_condition", "\"counter.k == 1\"", "\"\"",
     "grid.toml:31:19: error: input.cleared.levels[0][1]: level \"yes\" has an empty condition\n"},
    {"table_input", "inputs = [\"cleared\"]", "inputs = [\"claered\"]",
     "grid.toml:29:1: warning: input \"cleared\" is not in table.inputs and decides nothing\n"
     "grid.toml:33:11: error: table.inputs[0]: unknown input \"claered\"; did you mean "
     "\"cleared\"?\n"},
    {"table_input_twice", "inputs = [\"cleared\"]", "inputs = [\"cleared\", \"cleared\"]",
     "grid.toml:33:22: error: table.inputs[1]: \"cleared\" is duplicated\n"},
    {"row_level", "rows = [[\"yes\"", "rows = [[\"yea\"",
     "grid.toml:34:10: error: table.rows[0][0]: unknown level \"yea\"; did you mean \"yes\"?\n"},
    {"row_outcome", "[\"no\", \"O2\"]", "[\"no\", \"O3\"]",
     "grid.toml:34:31: error: table.rows[1][1]: unknown outcome \"O3\"; did you mean \"O1\"?\n"},
    {"row_arity", "[\"no\", \"O2\"]", "[\"no\"]",
     "grid.toml:34:24: error: table.rows[1]: expected 1 levels and an outcome, found 1 values\n"},
    {"row_kind", "[\"no\", \"O2\"]", "\"no\"",
     "grid.toml:34:24: error: table.rows[1]: expected 1 levels and an outcome, found 1 values\n"},
    {"outcome_reserved", "[run]\n", "[outcome.VOID]\nprior = 0.1\ntitle = \"?\"\n[run]\n",
     "grid.toml:38:10: error: outcome.VOID: the name of a verdict that no row decides\n"},
    {"prior_range", "prior = 0.4", "prior = 0",
     "grid.toml:36:16: error: outcome.O1.prior: 0 is not between 0 and 1\n"},
    {"prior_sum", "prior = 0.4", "prior = 0.6",
     "grid.toml:35:2: error: outcome: the priors sum to 1.1, more than 1\n"},
    {"prior_missing", "prior = 0.4, ", "",
     "grid.toml:36:1: error: outcome.O1: \"prior\" is missing\n"},
    {"title_missing", ", title = \"cleared\"", "",
     "grid.toml:36:1: error: outcome.O1: \"title\" is missing\n"},
    {"exclusion", "[run]\n",
     "[exclusion]\n"
     "budget = 1\n"
     "every_cell = \"fail\"\n"
     "[run]\n",
     "grid.toml:39:10: error: exclusion.budget: 1 is not a share of the tasks: 0 or more, less "
     "than 1\n"
     "grid.toml:40:14: error: exclusion.every_cell: \"fail\" is not \"unknown\" or \"fails\"\n"},
    {"validity", "[run]\n",
     "[validity]\n"
     "a = { condition = \"1 < 2\" }\n"
     "b = { condition = \"\", on_fail = \"void\", timing = true }\n"
     "[run]\n",
     "grid.toml:39:1: error: validity.a: \"on_fail\" is missing\n"
     "grid.toml:40:19: error: validity.b.condition: an empty string\n"
     "grid.toml:40:50: error: validity.b.timing: what rests on timings cannot void: the verdict "
     "would depend on the machine\n"},
    {"forecast", "[run]\n",
     "[forecast]\n"
     "a = { condition = \"1 < 2\", confidence = 1 }\n"
     "b = {}\n"
     "[run]\n",
     "grid.toml:39:41: error: forecast.a.confidence: 1 is not between 0 and 1\n"
     "grid.toml:40:1: error: forecast.b: \"condition\" is missing\n"
     "grid.toml:40:1: error: forecast.b: \"confidence\" is missing\n"},
    {"pin", "[run]\n",
     "[pin]\n"
     "files = [\"a\", \"a\", 1]\n"
     "workers = \"ignore\"\n"
     "[run]\n",
     "grid.toml:39:15: error: pin.files[1]: \"a\" is duplicated\n"
     "grid.toml:39:20: error: pin.files[2]: expected a string, found a whole number\n"
     "grid.toml:40:11: error: pin.workers: \"ignore\" is not \"refuse\" or \"record\"\n"},
    {"lock", "[run]\n",
     "[lock]\n"
     "sign = true\n"
     "[run]\n",
     "grid.toml:39:8: error: lock.sign: expected a string, found true or false\n"},
    {"bayes", "[run]\n",
     "[instrument.bayes]\n"
     "contrast = \"x\"\n"
     "priors = { a = 0 }\n"
     "bounds = [3, 1]\n"
     "[run]\n",
     "grid.toml:39:12: error: instrument.bayes.contrast: unknown contrast \"x\"\n"
     "grid.toml:40:16: error: instrument.bayes.priors.a: a standard deviation is more than 0\n"
     "grid.toml:41:10: error: instrument.bayes.bounds: expected [low, high] with 0 < low < high\n"},
    {"mixed", "[run]\n",
     "[instrument.m]\n"
     "kind = \"mixed\"\n"
     "response = []\n"
     "fixed = [\"arch\", \"fact.trian.x\", \"fact.train\"]\n"
     "random = \"sed\"\n"
     "[run]\n",
     "grid.toml:40:12: error: instrument.m.response: none\n"
     "grid.toml:41:18: error: instrument.m.fixed[1]: unknown stage \"trian\"; did you mean "
     "\"train\"?\n"
     "grid.toml:41:34: error: instrument.m.fixed[2]: expected \"stage.metric\", found \"train\"\n"
     "grid.toml:42:10: error: instrument.m.random: unknown factor \"sed\"; did you mean "
     "\"seed\"?\n"},
    {"connector", "[run]\n",
     "[instrument.connector]\n"
     "loss = \"acc\"\n"
     "contrast = \"arc\"\n"
     "trigger = { perplexity_ratio = 1 }\n"
     "sources = { a = \"acc\", b = \"los\" }\n"
     "[run]\n",
     "grid.toml:39:8: error: instrument.connector.loss: measure.acc does not say better = "
     "\"lower\": a loss in nats is needed\n"
     "grid.toml:40:12: error: instrument.connector.contrast: unknown contrast \"arc\"; did you "
     "mean "
     "\"arch\"?\n"
     "grid.toml:41:32: error: instrument.connector.trigger.perplexity_ratio: 1 is not more than "
     "1\n"
     "grid.toml:42:17: error: instrument.connector.sources.a: measure.acc does not say better = "
     "\"lower\": a loss in nats is needed\n"
     "grid.toml:42:28: error: instrument.connector.sources.b: unknown measure \"los\"\n"},
    {"instrument_kind", "[run]\n",
     "[instrument.own]\n"
     "loss = \"acc\"\n"
     "[run]\n",
     "grid.toml:38:13: error: instrument.own: \"kind\" is missing: \"bayes\", \"mixed\", "
     "\"connector\", \"items\", \"router\", \"anchors\" or \"course\"\n"},
    {"instrument_taken", "[run]\n",
     "[instrument.margins]\n"
     "kind = \"router\"\n"
     "stage = \"train\"\n"
     "[run]\n",
     "grid.toml:38:13: error: instrument.margins: every report gives an instrument of this name "
     "without a declaration: choose another\n"},
    {"instrument_key", "[run]\n",
     "[instrument.items]\n"
     "contrast = \"arch\"\n"
     "clutser = \"group\"\n"
     "discussion_only = 1\n"
     "[run]\n",
     "grid.toml:40:1: error: instrument.items: unknown key \"clutser\"; did you mean "
     "\"cluster\"?\n"
     "grid.toml:41:19: error: instrument.items.discussion_only: expected true or false, found a "
     "whole number\n"},
    {"mixed_twice", "[run]\n",
     "[instrument.mixed]\n"
     "response = [\"acc\", \"acc\"]\n"
     "fixed = [\"arch\", \"seed\", 1]\n"
     "random = \"seed\"\n"
     "[run]\n",
     "grid.toml:39:20: error: instrument.mixed.response[1]: \"acc\" is duplicated\n"
     "grid.toml:40:26: error: instrument.mixed.fixed[2]: expected a string, found a whole "
     "number\n"},
    {"mixed_random", "[run]\n",
     "[instrument.mixed]\n"
     "response = [\"acc\"]\n"
     "fixed = [\"arch\", \"seed\"]\n"
     "random = \"seed\"\n"
     "[run]\n",
     "grid.toml:41:10: error: instrument.mixed.random: \"seed\" is among the fixed terms: its "
     "levels would be fitted twice\n"},
    {"bayes_measures", "[run]\n",
     "[instrument.bayes]\n"
     "contrast = \"arch\"\n"
     "priors = { a = 0.1 }\n"
     "measures = [\"ac\"]\n"
     "[run]\n",
     "grid.toml:41:13: error: instrument.bayes.measures[0]: unknown measure \"ac\"; did you mean "
     "\"acc\"?\n"},
    {"items", "[run]\n",
     "[instrument.items]\n"
     "measures = []\n"
     "cluster = \"item\"\n"
     "[run]\n",
     "grid.toml:38:13: error: instrument.items: \"contrast\" is missing\n"
     "grid.toml:39:12: error: instrument.items.measures: none\n"
     "grid.toml:40:11: error: instrument.items.cluster: every item would be a cluster of its "
     "own\n"},
    {"router", "[run]\n",
     "[instrument.router]\n"
     "stage = \"trian\"\n"
     "components = [\"\"]\n"
     "[run]\n",
     "grid.toml:39:9: error: instrument.router.stage: unknown stage \"trian\"; did you mean "
     "\"train\"?\n"
     "grid.toml:40:15: error: instrument.router.components[0]: an empty string\n"},
    {"anchors", "[run]\n",
     "[instrument.anchors]\n"
     "source = \"\"\n"
     "models = { \"dense-50m\" = { acc = 27.37, ac = 1 }, none = {}, other = 1 }\n"
     "[run]\n",
     "grid.toml:39:10: error: instrument.anchors.source: an empty string\n"
     "grid.toml:40:34: error: instrument.anchors.models.dense-50m.acc: 27.37 is "
     "outside 0..1: a share, as 0.90\n"
     "grid.toml:40:41: error: instrument.anchors.models.dense-50m: unknown measure \"ac\"; did you "
     "mean \"acc\"?\n"
     "grid.toml:40:58: error: instrument.anchors.models.none: none\n"
     "grid.toml:40:70: error: instrument.anchors.models.other: expected a table, found a whole "
     "number\n"},
    {"course", "[run]\n",
     "[measure.early]\n"
     "metric = \"score.acc@0.2\"\n"
     "[measure.low]\n"
     "metric = \"score.loss\"\n"
     "better = \"lower\"\n"
     "[instrument.course]\n"
     "contrast = \"arch\"\n"
     "marks = { early = 0.3, acc = 1, low = 1.0, ac = 0 }\n"
     "[run]\n",
     "grid.toml:45:19: error: instrument.course.marks.early: score.acc@0.2 is measured at 0.2, not "
     "at 0.3\n"
     "grid.toml:45:33: error: instrument.course.marks.low: \"better\" of measure.low differs from "
     "that of measure.early\n"
     "grid.toml:45:39: error: instrument.course.marks.low: the place of \"acc\" already\n"
     "grid.toml:45:44: error: instrument.course.marks: unknown measure \"ac\"; did you mean "
     "\"acc\"?\n"
     "grid.toml:45:49: error: instrument.course.marks.ac: 0 is not a fraction of the horizon: "
     "above "
     "0 and at most 1\n"},
    {"course_of_one", "[run]\n",
     "[instrument.course]\n"
     "contrast = \"arch\"\n"
     "marks = { acc = 2 }\n"
     "[run]\n",
     "grid.toml:40:9: error: instrument.course.marks: a course needs two marks or more, as { early "
     "= 0.2, loss = 1.0 }\n"
     "grid.toml:40:17: error: instrument.course.marks.acc: 2 is not a fraction of the horizon: "
     "above 0 and at most 1\n"},
    {"apparatus", "[run]\n",
     "[apparatus.r]\n"
     "stage = \"train\"\n"
     "model = \"m\"\n"
     "expect = { metric = \"score.acc\", value = 1, within = -1, again = -1 }\n"
     "[run]\n",
     "grid.toml:39:9: error: apparatus.r.stage: stage \"train\" comes after no stage: it has no "
     "input that a reference model could replace\n"
     "grid.toml:39:9: error: apparatus.r.stage: the parameters of stage \"train\" depend on a "
     "factor ($seed): a reference model has no cell\n"
     "grid.toml:41:21: error: apparatus.r.expect.metric: \"score.acc\" is not a metric of stage "
     "\"train\"\n"
     "grid.toml:41:54: error: apparatus.r.expect.within: a tolerance is not negative\n"
     "grid.toml:41:66: error: apparatus.r.expect.again: a tolerance is not negative\n"},
    {"apparatus_share", "[run]\n",
     "[apparatus.r]\n"
     "stage = \"score\"\n"
     "model = \"m\"\n"
     "expect = { metric = \"score.acc\", value = 27.37, within = 0.01 }\n"
     "[apparatus.s]\n"
     "stage = \"score\"\n"
     "model = \"m\"\n"
     "expect = { metric = \"score.acc\", value = 0.5, within = 0.5 }\n"
     "[run]\n",
     "grid.toml:41:42: error: apparatus.r.expect.value: 27.37 is outside 0..1: a share, as 0.90\n"
     "grid.toml:45:56: error: apparatus.s.expect.within: every score would hold\n"},
    {"run_key", "slots = 2", "slot = 2",
     "grid.toml:39:1: error: run: unknown key \"slot\"; did you mean \"slots\"?\n"},
    {"run_stage", "[run.train]", "[run.trian]",
     "grid.toml:40:6: error: run: unknown key \"trian\"; did you mean \"train\"?\n"},
    {"run_values",
     "memory = \"1GiB\"\n"
     "crashes = 5\n"
     "checkpoint = \"300s\"\n"
     "deadlines = { step = \"10min\" }",
     "memory = \"1 XB\"\n"
     "crashes = -1\n"
     "checkpoint = \"soon\"\n"
     "deadlines = { stpe = \"1s\" }",
     "grid.toml:41:10: error: run.train.memory: \"1 XB\" has an unknown unit; known: GiB MiB KiB "
     "TiB GB MB kB B\n"
     "grid.toml:42:11: error: run.train.crashes: -1 is outside 0..1000000\n"
     "grid.toml:43:14: error: run.train.checkpoint: \"soon\" does not start with a number (a "
     "duration is \"300s\", \"5min\", \"2h\")\n"
     "grid.toml:44:15: error: run.train.deadlines: unknown key \"stpe\"; did you mean \"step\"?\n"},
    {"executor", "slots = 2",
     "executor = \"slrum\"\n"
     "work = \"\"",
     "grid.toml:39:12: error: run.executor: \"slrum\" is not \"local\" or \"slurm\"\n"
     "grid.toml:40:8: error: run.work: an empty string\n"},
    {"placement",
     "memory = \"1GiB\"\n"
     "crashes = 5\n",
     "threads = 0\n"
     "gpus = 1.5\n"
     "gpu_memory = \"20\"\n"
     "[run.score]\n"
     "gpus = 0.5\n",
     "grid.toml:41:11: error: run.train.threads: 0 is outside 1..1024\n"
     "grid.toml:42:8: error: run.train.gpus: expected a whole number up to 64, or a share from "
     "0.001 to 0.999\n"
     "grid.toml:43:14: error: run.train.gpu_memory: 20 bytes are under 1 MiB: give a unit, such as "
     "\"20GiB\"\n"
     "grid.toml:45:8: error: run.score.gpus: a share of a GPU needs gpu_memory, such as "
     "\"20GiB\"\n"},
    {"slots_of_jobs", "slots = 2\n", "executor = \"slurm\"\nslots = 2\n",
     "grid.toml:40:9: warning: run.slots: it bounds attempts on this machine, and every stage runs "
     "under Slurm: use max_queued of [run.slurm]\n"},
    {"gpu_memory_of_jobs", "[run.train]\n",
     "[run.train]\nexecutor = \"slurm\"\ngpus = 1\ngpu_memory = \"20GiB\"\n",
     "grid.toml:43:14: warning: run.train.gpu_memory: Slurm does not know the memory of a GPU: "
     "choose nodes by partition, or by --constraint in options of [run.slurm]\n"},
    {"slots_of_some", "[run.train]\n", "[run.train]\nexecutor = \"slurm\"\n", ""},
    {"slurm", "slots = 2",
     "executor = \"slurm\"\n"
     "gpus = 2\n"
     "keep = \"some\"\n"
     "priority = 1001\n"
     "slurm = { partition = \"-p\", max_queued = 0, shim = \"bin/shim\", grace = \"1ms\", poll = "
     "\"2min\", options "
     "= [\n"
     "\"--time=5\",\n"
     "\"--job=x\",\n"
     "\"-c4\",\n"
     "\"a100\",\n"
     "\"--gre=gpu:1\",\n"
     "\"-pgpu\",\n"
     "\"-sJx\",\n"
     "\"-Ca100\", \"--reboot\", \"--wait-all-nodes=1\", \"--constraint=a100\"] }",
     "grid.toml:40:8: error: run.gpus: expected \"auto\", 0, or a list of at most 64 UUIDs or "
     "indices (GPUs of one attempt: gpus of [run.STAGE])\n"
     "grid.toml:41:8: error: run.keep: \"some\" is not \"all\", \"last\" or \"none\"\n"
     "grid.toml:42:12: error: run.priority: 1001 is outside -1000..1000\n"
     "grid.toml:43:23: error: run.slurm.partition: \"-p\" is not a name of Slurm\n"
     "grid.toml:43:42: error: run.slurm.max_queued: 0 is outside 1..100000\n"
     "grid.toml:43:52: error: run.slurm.shim: expected the absolute path of prereg-shim on the "
     "nodes\n"
     "grid.toml:43:72: error: run.slurm.grace: expected 1 s to 1 h\n"
     "grid.toml:43:86: error: run.slurm.poll: expected 1 s to 1 min\n"
     "grid.toml:44:1: error: run.slurm.options[0]: \"--time=5\" sets --time, which is preregd's: "
     "use time of [run.STAGE]\n"
     "grid.toml:45:1: error: run.slurm.options[1]: \"--job=x\" sets --job-name, which is "
     "preregd's: it identifies the attempt\n"
     "grid.toml:46:1: error: run.slurm.options[2]: \"-c4\" sets --cpus-per-task, which is "
     "preregd's: use threads of [run.STAGE]\n"
     "grid.toml:47:1: error: run.slurm.options[3]: \"a100\" is not an option of sbatch: write "
     "\"--NAME=VALUE\", one string each\n"
     "grid.toml:48:1: error: run.slurm.options[4]: \"--gre=gpu:1\" sets --gres, which is "
     "preregd's: use gpus of [run.STAGE]\n"
     "grid.toml:49:1: error: run.slurm.options[5]: \"-pgpu\" sets --partition, which is "
     "preregd's: use [run.slurm] partition\n"
     "grid.toml:50:1: error: run.slurm.options[6]: \"-sJx\" may be several options: write each by "
     "its long name\n"},
};

static void test_each_fault(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        char *text = text_replace(SMALL_PROGRAM, CASES[i].from, CASES[i].to);
        char *found = diagnostics_of(text);
        if (strcmp(found, CASES[i].expected) != 0) {
            fail_msg("%s:\n%s\ninstead of\n%s", CASES[i].name, found, CASES[i].expected);
        }
        free(found);
        free(text);
    }
}

static void test_the_whole_program_is_right(void **state)
{
    (void)state;
    char *found = diagnostics_of(SMALL_PROGRAM);
    assert_string_equal(found, "");
    free(found);
}

/* Faults of all sections come together, in the order of the file. */
static void test_all_at_once(void **state)
{
    (void)state;
    char *one = text_replace(SMALL_PROGRAM, "prior = 0.4", "prior = 0.9");
    char *two = text_replace(one, "threads = 2", "thraeds = 2");
    char *text = text_replace(two, "floor = 0.3", "floor = 0.1");
    char *found = diagnostics_of(text);
    assert_string_equal(
        found,
        "grid.toml:16:1: error: stage.train: unknown key \"thraeds\"; did you mean \"threads\"?\n"
        "grid.toml:24:67: error: measure.acc.floor: 0.1 is below chance, 0.25: guessing would "
        "clear it\n"
        "grid.toml:35:2: error: outcome: the priors sum to 1.4, more than 1\n");
    free(found);
    free(text);
    free(two);
    free(one);
}

static void test_absurd_texts(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *expected; /* how the answer begins */
    } cases[] = {
        {"", "grid.toml:1:1: error: the section [program] is missing\n"},
        {"\xFF\xFE", "grid.toml:1:1: error: "},
        {"\xC3\xA9 = 1", "grid.toml:1:1: error: "}, /* a letter that is no key */
        {"a = \"\\u0000\"", "grid.toml:1:5: error: a NUL character in a text\n"},
        {"factor = 1\nprogram = 2\nstage = []\nrun = true\n", "grid.toml:1:1: error: "},
        {"a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q = 1",
         "grid.toml:1:1: error: a key of more than 16 dotted parts\n"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char *found = diagnostics_of(cases[i].text);
        if (strncmp(found, cases[i].expected, strlen(cases[i].expected)) != 0) {
            fail_msg("%s\ninstead of\n%s", found, cases[i].expected);
        }
        free(found);
    }
}

/* Nesting is refused before it can eat the stack: brackets, inline tables, dotted headers. */
static void test_deep_texts(void **state)
{
    (void)state;
    enum { DEPTH = 200000 };
    static const char *const parts[] = {"[", "{a=", "a.", "\"a\".", "[[a."};
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        CHECK_ROW("%s", parts[i]);
        struct strbuf text = STRBUF_INIT;
        strbuf_adds(&text, i < 2 ? "x = " : (i < 4 ? "" : "[["));
        for (size_t k = 0; k < DEPTH; k++) {
            strbuf_adds(&text, parts[i]);
        }
        char *found = diagnostics_of(text.buf);
        assert_non_null(strstr(found, "error: "));
        free(found);
        strbuf_release(&text);
    }
}

static void test_too_large(void **state)
{
    (void)state;
    struct strbuf text = STRBUF_INIT;
    while (text.len <= LAYOUT_GRID_MAX) {
        strbuf_adds(&text, "# nothing to see on this line at all\n");
    }
    char *found = diagnostics_of(text.buf);
    char *wanted = xasprintf("grid.toml: error: larger than %zu bytes\n", LAYOUT_GRID_MAX);
    assert_string_equal(found, wanted);
    free(wanted);
    free(found);
    strbuf_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_whole_program_is_right),
        cmocka_unit_test(test_each_fault),
        cmocka_unit_test(test_all_at_once),
        cmocka_unit_test(test_absurd_texts),
        cmocka_unit_test(test_deep_texts),
        cmocka_unit_test(test_too_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
