/*
 * programs: all programs of the state folder, with state, tasks and sizes; disk: what uses the
 * disk, and what would free it. The daemon answers; without one the state folder is read here, by
 * the same code.
 */
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/terminal.h"
#include "ctl/ask.h"
#include "ctl/local_answers.h"
#include "ctl/text/out.h"
#include "ctl/text/status_text.h"
#include "state/disk/programs.h"

/* Not the folder of a socket for readers, say. */
static bool is_state(const char *folder)
{
    char *programs = path_join(folder, LAYOUT_PROGRAMS);
    char *database = path_join(folder, LAYOUT_DATABASE);
    const bool is = file_kind_at(programs) != FILE_ABSENT || file_kind_at(database) != FILE_ABSENT;
    free(programs);
    free(database);
    return is;
}

/* The same answer from the files. */
static int read_here(const struct ctl_options *o, bool details, cJSON **answer, struct err *err)
{
    struct local_program one = {0};
    char *state = NULL;
    int rc = local_state_folder(o, &state, err);
    if (rc != 0) {
        goto out;
    }
    if (o->n_args > 0 && (rc = local_program_find(o, o->args[0], &one, err)) != 0) {
        goto out;
    }
    if (!is_state(state)) {
        rc = err_set(err, ERR_NO_DAEMON,
                     "no daemon answers at %.140s, and it has no programs of its own", state);
        goto out;
    }
    rc = details ? disk_details(state, one.id, answer, err) : disk_programs(state, answer, err);
    if (rc == 0) {
        json_put_bool(*answer, "daemon", false);
    }
out:
    local_program_release(&one);
    free(state);
    return rc;
}

/* Counting the files of many cells takes long. */
static int fetch(const struct ctl_options *o, bool details, cJSON **answer, struct err *err)
{
    struct rpc_client *client = NULL;
    cJSON *params = ask_params(o, true);
    int rc = rpc_open(o->state, &client, err);
    if (rc == 0) {
        rpc_set_timeout(client, 0);
        rc = rpc_call(client, details ? "disk" : "programs", params, answer, err);
    }
    rpc_close(client);
    cJSON_Delete(params);
    return rc == ERR_NO_DAEMON ? read_here(o, details, answer, err) : rc;
}

static int run(const struct ctl_options *o, bool details, struct err *err)
{
    cJSON *answer = NULL;
    int rc = fetch(o, details, &answer, err);
    if (rc == 0 && o->json) {
        rc = out_json(answer, err);
    } else if (rc == 0) {
        struct term t = term_of_stdout();
        struct strbuf sb = STRBUF_INIT;
        if (details) {
            disk_text(&sb, &t, answer);
        } else {
            programs_text(&sb, &t, answer);
        }
        out_text(&sb);
        strbuf_release(&sb);
    }
    cJSON_Delete(answer);
    return rc;
}

int cmd_programs(const struct ctl_options *o, enum exit_code *code, struct err *err)
{
    *code = EXIT_OK;
    return run(o, false, err);
}

int cmd_disk(const struct ctl_options *o, enum exit_code *code, struct err *err)
{
    *code = EXIT_OK;
    return run(o, true, err);
}
