#include "tests/unit/worker/eval/scratch.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

static char scratch_folder[] = "/tmp/prereg-eval-test-XXXXXX";

int scratch_enter(void **state)
{
    (void)state;
    return mkdtemp(scratch_folder) == NULL || chdir(scratch_folder) != 0;
}

int scratch_leave(void **state)
{
    (void)state;
    struct err err = {0};
    return chdir("/") != 0 || dir_remove(scratch_folder, &err) != 0;
}

void scratch_write(const char *name, const char *text)
{
    struct err err = {0};
    char *folder = path_folder(name);
    if (dir_make(folder, 0777, &err) != 0 ||
        file_write_atomic(name, text, strlen(text), 0666, &err) != 0)
        abort();
    free(folder);
}
