/* Writes the job script. Until exec it uses what bash itself has: a node may lack everything else.
 * Lines of setup are the user's and are put in as they are. */
#include "daemon/executor/slurm/script.h"

#include <assert.h>

#include "base/text.h"

#define SHOWN_MAX 120 /* of a line of setup, in the log */

static void add_folder(struct strbuf *out, const struct slurm_script *s)
{
    strbuf_adds(out, "folder=");
    if (s->list == NULL) {
        strbuf_add_quoted(out, s->folder);
        strbuf_addc(out, '\n');
        return;
    }
    /* Rule 10: line i + 1 is the folder of index i. */
    strbuf_adds(out, "\n"
                     "at=0\n"
                     "while IFS= read -r line; do\n"
                     "    if [ \"$at\" = \"$SLURM_ARRAY_TASK_ID\" ]; then\n"
                     "        folder=$line\n"
                     "        break\n"
                     "    fi\n"
                     "    at=$((at + 1))\n"
                     "done < ");
    strbuf_add_quoted(out, s->list);
    strbuf_addf(out, "\n[ -n \"$folder\" ] || exit %d\n", SLURM_SCRIPT_NO_FOLDER);
}

/* Line `no` of setup, which ends the script if it fails. The last line of the log then says which
 * one it was, and how it begins. */
static void add_setup(struct strbuf *out, const char *line, size_t no)
{
    char shown[SHOWN_MAX];
    text_copy_line(shown, sizeof(shown), line);
    strbuf_addf(out,
                "%s\n[ $? -eq 0 ] || { printf '" SLURM_SCRIPT_SETUP_LINE
                "%zu of [run.slurm] setup failed: %%s\\n' ",
                line, no);
    strbuf_add_quoted(out, shown);
    strbuf_addf(out, "; exit %d; }\n", SLURM_SCRIPT_NO_SETUP);
}

void slurm_script_write(struct strbuf *out, const struct slurm_script *s)
{
    assert(s->folder != NULL || s->list != NULL);
    /* `module` and its like are functions of login shells. */
    strbuf_adds(out, s->n_setup > 0 ? "#!/bin/bash -l\n" : "#!/bin/bash\n");
    add_folder(out, s);
    strbuf_adds(out, "exec > \"$folder/" SLURM_SCRIPT_LOG "\" 2>&1\n");
    for (size_t i = 0; i < s->n_setup; i++) {
        add_setup(out, s->setup[i], i + 1);
    }
    strbuf_adds(out, "exec "); /* rule 4 */
    strbuf_add_quoted(out, s->shim);
    strbuf_adds(out, " --slurm \"$folder\"\n");
}
