/*
 * The table of commands: names, arguments, help and what each accepts. The order is that of the
 * help: planning, running, changing, results, receipts. Everything else about a command is in its
 * file.
 */
#include "ctl/ctl.h"

#include <stdio.h>
#include <string.h>

#include "base/xalloc.h"

const struct ctl_command ctl_commands[] = {
    /* before a run: none of these needs a daemon */
    {"init", "[FOLDER]", "write a commented starter program",
     "Writes FOLDER/grid.toml (default: here) and prints what to do next. Nothing is overwritten.\n"
     "--template starts from one of the designs that --list names instead. --from writes a\n"
     "successor of a locked program: `supersedes` is its root, and priors, confidences and seeds\n"
     "are left out, for its results may be known.",
     CTL_TEMPLATE | CTL_HERE, 0, 1, cmd_init},
    {"check", "GRID.TOML", "validate a program and prove its table",
     "Reads the program, asks its workers what they would do (--describe), and prints what\n"
     "follows from the plan before there is any data: whether the table is total, which outcomes\n"
     "can fire, the floors against chance, what is held fixed, how long it takes.\n"
     "A worker of the program's own is executed only after a question on the terminal, or with\n"
     "--run; a command that was allowed before needs no question. With --no-run no worker is\n"
     "executed. --explain prints the table row by row, with what can reach each, and says what\n"
     "each line means.\n"
     "--slurm asks Slurm what it would do with the jobs of each stage, and runs a probe job of\n"
     "seconds that writes and reads through the work folder (docs/slurm.md).",
     CTL_JSON | CTL_RUN | CTL_NO_RUN | CTL_EXPLAIN | CTL_SLURM | CTL_HERE, 1, 1, cmd_check},
    {"try", "GRID.TOML [CELL]", "run a little of a program, and discard it",
     "Runs every stage of one cell for each arm (or of CELL): a few steps of a training, a few\n"
     "items of an evaluation, in a folder under $TMPDIR that is removed. Shows time, memory and\n"
     "disk, an estimate for the whole run, and what fails; never a score. Nothing is kept.\n"
     "A worker that does not support this runs completely (docs/worker-protocol.md).",
     CTL_JSON | CTL_RUN | CTL_TRY | CTL_HERE, 1, 2, cmd_try},
    {"lock", "GRID.TOML", "check a program and write its lock",
     "Writes GRID.TOML.lock: every value that can influence the answer, the digests of data and\n"
     "workers, and the root digest over them; the git commit, if any. A lock of another root is\n"
     "kept unless --replace is given. --key signs it (ssh-keygen -Y, namespace preregd);\n"
     "--timestamp writes an RFC 3161 request beside it. --verify writes nothing and checks the\n"
     "existing lock: whether it fits the program, who signed it, and what the authority's answer\n"
     "GRID.TOML.lock.tsr says. (docs/locks.md)",
     CTL_JSON | CTL_RUN | CTL_REPLACE | CTL_KEY | CTL_SIGNERS | CTL_STAMP | CTL_HERE, 1, 1,
     cmd_lock},
    /* watching: `curves` reads files, the others ask the daemon */
    {"status", "[PROGRAM]", "what runs, what waits and why, how long it takes",
     "The grid of cells and stages, one line of counts, the time left for all remaining tasks,\n"
     "and why anything is not running; without PROGRAM for all programs. --watch redraws it until\n"
     "the program has ended.",
     CTL_JSON | CTL_WATCH | CTL_ALL | CTL_HOST, 0, 1, cmd_status},
    {"programs", "", "all programs of the state folder, with their sizes",
     "State, verdict, tasks, priority, sizes on disk and last activity of each program, and those "
     "that\n"
     "are damaged, with what to do. Without a daemon the state folder is read.",
     CTL_JSON | CTL_HOST, 0, 0, cmd_programs},
    {"disk", "[PROGRAM]", "what uses the disk, and what would free it",
     "Per program and kind: checkpoints, artifacts, items, logs and the rest; what can be freed, "
     "and\n"
     "by which command. Without a daemon the state folder is read. (docs/many-programs.md)",
     CTL_JSON | CTL_HOST, 0, 1, cmd_disk},
    {"cells", "[PROGRAM]", "every cell with the state of its tasks", NULL, CTL_JSON | CTL_HOST, 0,
     1, cmd_cells},
    {"explain", "TASK", "why a task is in the state it is in",
     "TASK is CELL/STAGE or apparatus/NAME, as `cells` prints it, or a CELL that has one task.",
     CTL_JSON | CTL_PROGRAM | CTL_HOST, 1, 1, cmd_explain},
    {"logs", "TASK", "the last lines of a task's attempt",
     "The last lines of standard error and output of the newest attempt (or of --attempt N), at\n"
     "most --lines of each. --follow prints new output until the attempt ends.",
     CTL_JSON | CTL_PROGRAM | CTL_FOLLOW | CTL_LINES | CTL_HOST, 1, 1, cmd_logs},
    {"open", "", "the live page: print its address, open it in a browser",
     "Turns the page on if it is off. Where the session is remote it prints the tunnels to type, "
     "where\n"
     "there is a desktop it opens the page. The address has the token of this state folder: who "
     "has it\n"
     "may look. (docs/page.md)",
     CTL_JSON | CTL_PAGE | CTL_HOST, 0, 0, cmd_open},
    {"curves", "[CELL…]", "draw the losses of trainings in the terminal",
     "A panel for each arm, its replicates over each other, from the points that workers report\n"
     "as \"loss\". CELL is a cell or the beginning of its name up to a comma (an arm). Losses\n"
     "that the plan seals are not drawn before the end. Reads the state folder; needs no daemon.",
     CTL_PROGRAM | CTL_HOST, 0, 64, cmd_curves},
    /* steering: each asks the daemon and is journalled */
    {"retry", "[TASK]", "run blocked tasks again with fresh budgets",
     "Without TASK all blocked ones. Refused for counted tasks once anyone has seen scores;\n"
     "before the first result of the program was accepted there are none to see.\n"
     "With several programs --program is required, because this cannot be undone.",
     CTL_JSON | CTL_PROGRAM | CTL_REASON | CTL_HOST, 0, 1, cmd_retry},
    {"cancel", "TASK|CELL", "give up a task, a cell, or with --all the program",
     "A task that a person cancelled leaves its measure undetermined; the report says so first.\n"
     "With several programs --program is required, because this cannot be undone.",
     CTL_JSON | CTL_PROGRAM | CTL_ALL | CTL_REASON | CTL_HOST, 0, 1, cmd_cancel},
    {"lost", "TASK", "give up a finished task whose accepted result is gone",
     "Refused while the result is what was accepted, and while its disk is missing or cannot be\n"
     "read. The task ends as blocked (lost), which leaves its measures undetermined; the journal,\n"
     "the report and every receipt say so. With several programs --program is required, because\n"
     "this cannot be undone.",
     CTL_JSON | CTL_PROGRAM | CTL_REASON | CTL_HOST, 1, 1, cmd_lost},
    {"pause", "[PROGRAM]", "start nothing more; what runs continues", NULL,
     CTL_JSON | CTL_REASON | CTL_HOST, 0, 1, cmd_pause},
    {"resume", "[PROGRAM]", "continue after a pause",
     "Whatever the pause was for. Cells that all failed the same way are tried again; if they\n"
     "fail again, the program pauses again. With --accept-failures they are blocked instead, and\n"
     "no stage pauses the program for this any more.",
     CTL_JSON | CTL_FAILURES | CTL_REASON | CTL_HOST, 0, 1, cmd_resume},
    {"unblind", "[PROGRAM]", "open the sealed scores before the end (journalled)",
     "Needs --reason. It is recorded in the journal and in the report, and counted tasks cannot\n"
     "be retried after it. With several programs PROGRAM is required, because this cannot be\n"
     "undone.",
     CTL_JSON | CTL_REASON | CTL_HOST, 0, 1, cmd_unblind},
    /* changing a submitted program */
    {"amend", "GRID.TOML", "change what may still be changed in a submitted program",
     "Changes the program that --program names, else the one of the lock beside the file.\n"
     "Sends the edited program to the daemon, which decides by section what may change, from how\n"
     "much could have been seen, and chains the difference to the lock. Needs --reason; --dry-run\n"
     "only shows the changes. What is sealed for good is refused by name: it needs a new program\n"
     "(supersedes).",
     CTL_JSON | CTL_REASON | CTL_PROGRAM | CTL_KEY | CTL_RUN | CTL_NO_RUN | CTL_DRY_RUN, 1, 1,
     cmd_amend},
    {"diff", "[PROGRAM|GRID.TOML]", "a program against its lock and every amendment",
     "Every amendment with its time, level, reason and signature; for a file also what is neither\n"
     "locked nor amended. Reads the state folder; needs no daemon. --program names the program of\n"
     "an edited copy that has no lock beside it.",
     CTL_JSON | CTL_PROGRAM, 0, 1, cmd_diff},
    /* results; without a daemon these read the state folder */
    {"verdict", "[PROGRAM]", "the verdict; its exit code gives its kind",
     "Prints value, interval, n and unit of what the table's inputs read; --json has every\n"
     "figure. Exit 0: an outcome binds; 4: INDETERMINATE; 7: VOID; 1: there is none yet. Without\n"
     "a daemon it is read from the state folder (exit 3: it is not the last one in the journal).",
     CTL_JSON | CTL_HOST, 0, 1, cmd_verdict},
    {"report", "[PROGRAM]", "write the report again and print its path",
     "Of a program with a verdict; without a daemon from the state folder. --csv writes means.csv "
     "(a\n"
     "row for each measure and condition) and records.csv (one for each measure and cell).",
     CTL_JSON | CTL_HOST | CTL_CSV, 0, 1, cmd_report},
    {"remove", "PROGRAM [RECEIPT]", "give up the cells of a finished program",
     "Frees the disk: weights, items, logs and all other files of its attempts are removed; plan,\n"
     "lock, amendments, journal, verdict, provenance and report are kept. Needs a receipt of the\n"
     "program that verifies (default: the one that `export` wrote here), or --yes-lose-it. "
     "Refused\n"
     "without a verdict, and while another program reads its cells. Cannot be undone.",
     CTL_JSON | CTL_REASON | CTL_LOSE | CTL_HOST, 1, 2, cmd_remove},
    /* repair */
    {"rebuild", "[STATE]", "rebuild the database from the cell folders",
     "For a lost or torn database, with no daemon running. Journals and cell folders are read,\n"
     "never written; the old database is kept beside the new one.",
     CTL_JSON, 0, 1, cmd_rebuild},
    /* records from elsewhere */
    {"replay", "GRID.TOML RECORDS.JSON", "read a verdict off records from elsewhere",
     "Runs gates, counters, contrasts and the table over the records given; executes nothing.\n"
     "With --out it writes an imported program's folder, with its report and instruments.\n"
     "The exit code is that of `verdict`.",
     CTL_JSON | CTL_REPLACE | CTL_OUT | CTL_HERE, 2, 2, cmd_replay},
    {"import", "GRID.TOML [MAP.JSON]", "a program from lm-eval's results files",
     "Makes an imported program from results files (and samples files) of lm-evaluation-harness,\n"
     "logs of Inspect (.eval and .json) and files of Every Eval Ever.\n"
     "It recomputes what can be recomputed, refuses what disagrees, and reads the verdict off the\n"
     "program's table. Executes nothing; an executed program is never touched.\n"
     "MAP.JSON: docs/import.md. The exit code is that of `verdict`.",
     CTL_JSON | CTL_REPLACE | CTL_IMPORT | CTL_OUT | CTL_HERE, 1, 2, cmd_import},
    /* receipts and what reviewers do with them */
    {"export", "[PROGRAM|FOLDER]", "a receipt that a stranger can verify, or another format",
     "Writes <name>-<digest8>-receipt and its .tar into --out (default: here): plan and lock,\n"
     "journal, records, environment, coverage, verdict, an in-toto statement, SHA256SUMS and\n"
     "VERIFY.md. Reads only the program's folder. Refused without a verdict, and while scores are\n"
     "sealed. Hosts are numbered; --with-host keeps their names. --items adds the items of all\n"
     "results: `verify` then counts every score again, and computes the instruments.\n"
     "(docs/receipts.md)\n"
     "--format writes <name>-<digest8>-FORMAT instead, of a program or of a receipt (a folder or\n"
     "a .tar), which must verify: hf-eval-results, every-eval-ever, neurips-checklist, osf,\n"
     "croissant, ro-crate, mlflow, tensorboard. What is not known is left out, and named on\n"
     "standard error. (docs/export.md)",
     CTL_JSON | CTL_OUT | CTL_WITH_HOST | CTL_ITEMS | CTL_FORMAT, 0, 1, cmd_export},
    {"verify", "FOLDER|FILE.tar", "check a receipt",
     "Recomputes everything from the records up and names the first fault (exit 3). Needs no\n"
     "daemon and no network, executes nothing of the receipt, and prints which level of assurance\n"
     "it could establish and what the receipt does not show. Exit 3, too, while signatures are\n"
     "missing that [release] requires.",
     CTL_JSON | CTL_SIGNERS | CTL_HERE, 1, 1, cmd_verify},
    {"sign", "FOLDER", "sign a receipt, as its maker or reviewer",
     "Verifies it first; then writes signatures/<key>.sig over its SHA256SUMS, with --key. With\n"
     "--role the signature is that of a reviewer in this role, and counts for [release] requires\n"
     "of the program.",
     CTL_JSON | CTL_KEY | CTL_ROLE | CTL_HERE, 1, 1, cmd_sign},
    {"rerun", "CELL", "train and score one cell again, and compare",
     "From the lock, with the workers that it pins, from the beginning, beside the counted data.\n"
     "Compares metrics and digests of artifacts with what was accepted (exit 3: they differ).\n"
     "If every stage is the same, the level is \"re-executed\" for this cell, or \"re-executed on\n"
     "another processor\" if instruction set or vendor differ (PREREG_CPU=avx2 of the\n"
     "environment asks for another set). Writes a rerun file, which export includes. Refused\n"
     "while scores are sealed. Needs no daemon. (docs/rerun.md)",
     CTL_JSON | CTL_PROGRAM | CTL_RERUN | CTL_OUT, 1, 1, cmd_rerun},
    /* over all programs */
    {"apparatus", "", "what the apparatus checks of all programs scored",
     "Over all programs of the state folder, by time: which check, before the first evaluation or\n"
     "after the last, its score, what was expected, whether it holds, the worker's digest and the\n"
     "machine. Reads files only, whether a daemon runs or not; a program whose files do not say\n"
     "what its journal says is named (exit 3). (docs/apparatus.md)",
     CTL_JSON | CTL_HOST, 0, 0, cmd_apparatus},
    {"calibration", "[FOLDER…]", "a lab's outcomes against its priors",
     "Over all programs of the state folder, and the imported ones given: priors against outcomes\n"
     "(bits, Brier), and forecasts by their confidence. Reads files only; a verdict that is not\n"
     "that of its lock and journal is listed and not scored (exit 3).",
     CTL_JSON, 0, 1000, cmd_calibration},
    /* the daemon and this program */
    {"stop", "", "stop the daemon; what runs continues and is adopted later",
     "With --kill running attempts checkpoint and are ended.", CTL_JSON | CTL_KILL | CTL_HOST, 0, 0,
     cmd_stop},
    {"help", "[COMMAND]", "this, or the details of one command", NULL, CTL_HERE, 0, 1, cmd_help},
    {"version", "", "the version", NULL, CTL_JSON | CTL_HOST | CTL_HERE, 0, 0, cmd_version},
};
const size_t ctl_n_commands = ARRAY_LEN(ctl_commands);

const struct ctl_command *ctl_find_command(const char *name)
{
    for (size_t i = 0; i < ctl_n_commands; i++) {
        if (strcmp(ctl_commands[i].name, name) == 0) {
            return &ctl_commands[i];
        }
    }
    return NULL;
}

int cmd_help(const struct ctl_options *o, enum exit_code *code, struct err *err)
{
    *code = EXIT_OK;
    const struct ctl_command *c = NULL;
    if (o->n_args > 0) {
        c = ctl_find_command(o->args[0]);
        if (c == NULL) {
            return err_set(err, ERR_USAGE, "no command %s", o->args[0]);
        }
    }
    ctl_print_help(c);
    return 0;
}
