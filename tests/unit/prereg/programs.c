#include "tests/unit/prereg/programs.h"
#include "tests/unit/check.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/files/file.h"
#include "base/machine/proc.h"
#include "base/xalloc.h"

static int run(const char *folder, const char *line)
{
    const char *const argv[] = {"sh", "-c", line, NULL};
    const struct proc_spec spec = {.argv = argv,
                                   .cwd = folder,
                                   .timeout_ms = 30000,
                                   .max_out_bytes = 1 << 20,
                                   .place = PROC_NO_TERMINAL};
    struct proc_result r;
    struct err err = {0};
    int rc = proc_run(&spec, &r, &err);
    int code = rc == 0 ? r.code : rc;
    if (code != 0) {
        print_message("%s: %s%s\n", line, r.out.buf, r.err.buf);
    }
    proc_result_release(&r);
    return code;
}

bool program_is_there(const char *name)
{
    char *line = xasprintf("command -v %s >/dev/null", name);
    bool there = run(NULL, line) == 0;
    if (!there) {
        print_message("skipped: no %s here\n", name);
    }
    free(line);
    return there;
}

void program_run(const char *folder, const char *line)
{
    assert_int_equal(run(folder, line), 0);
}

void program_make_key(const char *folder, const char *name, const char *passphrase)
{
    char *line =
        xasprintf("ssh-keygen -q -t ed25519 -C %s@lab -N '%s' -f %s", name, passphrase, name);
    program_run(folder, line);
    free(line);
}

char *program_allow(const char *folder, const char *name, const char *line_of, const char *key)
{
    char *line = xasprintf("printf '%%s %%s\\n' '%s' \"$(cut -d' ' -f1,2 %s.pub)\" >> %s", line_of,
                           key, name);
    program_run(folder, line);
    free(line);
    return path_join(folder, name);
}
