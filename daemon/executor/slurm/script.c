/* Writes the job script. Until exec it uses what bash itself has: a node may lack everything else.
 * Lines of setup are the user's and are put in as they are. */
#include "daemon/executor/slurm/script.h"

#include <assert.h>

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

void slurm_script_write(struct strbuf *out, const struct slurm_script *s)
{
    assert(s->folder != NULL || s->list != NULL);
    /* `module` and its like are functions of login shells. */
    strbuf_adds(out, s->n_setup > 0 ? "#!/bin/bash -l\n" : "#!/bin/bash\n");
    add_folder(out, s);
    strbuf_adds(out, "exec > \"$folder/" SLURM_SCRIPT_LOG "\" 2>&1\n");
    for (size_t i = 0; i < s->n_setup; i++) {
        strbuf_adds(out, s->setup[i]);
        strbuf_addf(out,
                    "\n[ $? -eq 0 ] || { echo 'preregd: line %zu of [run.slurm] setup failed'; "
                    "exit %d; }\n",
                    i + 1, SLURM_SCRIPT_NO_SETUP);
    }
    strbuf_adds(out, "exec "); /* rule 4 */
    strbuf_add_quoted(out, s->shim);
    strbuf_adds(out, " --slurm \"$folder\"\n");
}
