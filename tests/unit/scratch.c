/* Folders are made by mkdtemp(), so that tests that run at the same time never share one. */
#include "tests/unit/scratch.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"

char *scratch_folder;

char *scratch_make(void)
{
    const char *temp = getenv("TMPDIR");
    char *folder = xasprintf("%s/prereg-test-XXXXXX", temp == NULL ? "/tmp" : temp);
    assert_non_null(mkdtemp(folder));
    return folder;
}

void scratch_remove(char *folder)
{
    struct err err;
    if (dir_remove(folder, &err) != 0) {
        fail_msg("%s", err.msg);
    }
    free(folder);
}

int scratch_enter(void **state)
{
    (void)state;
    scratch_folder = scratch_make();
    return chdir(scratch_folder);
}

int scratch_leave(void **state)
{
    (void)state;
    assert_int_equal(chdir("/"), 0);
    scratch_remove(scratch_folder);
    return 0;
}

char *scratch_write(const char *folder, const char *name, const char *text, unsigned mode)
{
    struct err err = {0};
    char *path = path_join(folder, name);
    char *parent = path_folder(path);
    if (dir_make(parent, 0700, &err) != 0 ||
        file_write_atomic(path, text, strlen(text), (mode_t)mode, &err) != 0) {
        fail_msg("%s", err.msg);
    }
    free(parent);
    return path;
}

void scratch_put(const char *folder, const char *name, const char *text)
{
    free(scratch_write(folder, name, text, 0600));
}

char *scratch_read(const char *path)
{
    struct strbuf text = STRBUF_INIT;
    struct err err = {0};
    if (file_read(path, (size_t)1 << 24, &text, &err) != 0) {
        fail_msg("%s", err.msg);
    }
    return strbuf_detach(&text);
}
