#include "tests/unit/prereg/support.h"
#include "tests/unit/check.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/files/file.h"
#include "base/xalloc.h"
#include "prereg/load/program_load.h"

const char *const SMALL_PROGRAM =
    "[program]\n"
    "name = \"small\"\n"
    "schema = 1\n"
    "question = \"Which?\"\n"
    "[[factor]]\n"
    "name = \"arch\"\n"
    "levels = [\"dense\", \"moe\"]\n"
    "[[factor]]\n"
    "name = \"seed\"\n"
    "levels = [1, 2]\n"
    "replicate = true\n"
    "[data]\n"
    "corpus = \"corpus.txt\"\n"
    "[stage.train]\n"
    "command = [\"./worker.sh\", \"--quick\"]\n"
    "threads = 2\n"
    "params = { lr = 1e-3, seed = \"$seed\", data = \"corpus\" }\n"
    "[stage.train.when.arch]\n"
    "moe = { experts = 4 }\n"
    "[stage.score]\n"
    "after = [\"train\"]\n"
    "command = [\"./worker.sh\"]\n"
    "[measure]\n"
    "acc = { metric = \"score.acc\", items = 100, chance = 0.25, floor = 0.3 }\n"
    "[contrast]\n"
    "arch = { between = { arch = [\"moe\", \"dense\"] } }\n"
    "[counter]\n"
    "k = { contrast = \"arch\", clears = \"every_cell\", binds = true }\n"
    "[[input]]\n"
    "name = \"cleared\"\n"
    "levels = [[\"yes\", \"counter.k == 1\"], [\"no\", \"otherwise\"]]\n"
    "[table]\n"
    "inputs = [\"cleared\"]\n"
    "rows = [[\"yes\", \"O1\"], [\"no\", \"O2\"]]\n"
    "[outcome]\n"
    "O1 = { prior = 0.4, title = \"cleared\" }\n"
    "O2 = { prior = 0.5, title = \"not cleared\" }\n"
    "[run]\n"
    "slots = 2\n"
    "[run.train]\n"
    "memory = \"1GiB\"\n"
    "crashes = 5\n"
    "checkpoint = \"300s\"\n"
    "deadlines = { step = \"10min\" }\n";

struct plan_program *program_of(const char *text, const char *folder)
{
    struct plan_program *p = NULL;
    struct diag diag;
    struct err err = {0};
    char *path = path_join(folder == NULL ? "/tmp" : folder, "grid.toml");
    diag_init(&diag, "grid.toml");
    if (program_parse(text, strlen(text), path, &p, &diag, &err) != 0) {
        diag_print(&diag, stderr);
        fail_msg("%s", err.msg);
    }
    diag_release(&diag);
    free(path);
    return p;
}

char *diagnostics_of(const char *text)
{
    struct plan_program *p = NULL;
    struct diag diag;
    struct err err = {0};
    char *out = NULL;
    size_t size = 0;
    diag_init(&diag, "grid.toml");
    int rc = program_parse(text, strlen(text), "grid.toml", &p, &diag, &err);
    assert_int_equal(rc == 0, p != NULL);
    assert_int_equal(rc == 0, diag.n_errors == 0);
    FILE *stream = open_memstream(&out, &size);
    assert_non_null(stream);
    diag_print(&diag, stream);
    assert_int_equal(fclose(stream), 0);
    diag_release(&diag);
    program_free(p);
    return out;
}

void expect_faults(const char *head, const struct load_fault *faults, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        CHECK_ROW("%s", faults[i].added);
        char *text = xasprintf("%s%s", head, faults[i].added);
        char *said = diagnostics_of(text);
        if (strstr(said, faults[i].says) == NULL || strstr(said, "error") == NULL) {
            fail_msg("expected \"%s\", found: %s", faults[i].says, said);
        }
        free(said);
        free(text);
    }
}

char *text_replace(const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);
    if (at == NULL) {
        fail_msg("\"%s\" is not in the text", from);
        return NULL;
    }
    return xasprintf("%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
}
