/*
 * preregctl: one table of commands, one file per command (cmd_<name>.c), one table of options.
 *
 * A command gets its options parsed and checked, sets the exit code, and returns 0 or a negative
 * ERR_* with its message, which main prints once and turns into the documented exit code. With
 * --json every answer is one object on standard output that starts with "schema":1, errors too.
 */
#ifndef CTL_CTL_H
#define CTL_CTL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Bits of struct ctl_command.options: what a command accepts besides --state and --help. An option
 * without a comment is called like its bit. */
enum ctl_option {
    CTL_JSON = 1 << 0,
    CTL_WATCH = 1 << 1, /* --watch, --interval */
    CTL_FOLLOW = 1 << 2,
    CTL_NO_RUN = 1 << 3,
    CTL_EXPLAIN = 1 << 4,
    CTL_REASON = 1 << 5,
    CTL_PROGRAM = 1 << 6,
    CTL_KILL = 1 << 7,
    CTL_REPLACE = 1 << 8,
    CTL_ALL = 1 << 9,
    CTL_LINES = 1 << 10,    /* --lines, --attempt */
    CTL_IMPORT = 1 << 11,   /* --pattern, --samples, --records, --label */
    CTL_KEY = 1 << 12,      /* --key */
    CTL_SIGNERS = 1 << 13,  /* --allowed-signers, --ca */
    CTL_STAMP = 1 << 14,    /* --timestamp, --verify */
    CTL_TEMPLATE = 1 << 15, /* --template, --list, --from */
    CTL_OUT = 1 << 16,      /* --out */
    CTL_RERUN = 1 << 17,    /* --stage, --keep */
    CTL_RUN = 1 << 18,      /* --run */
    CTL_TRY = 1 << 19,      /* --steps, --items */
};

/* More bits of the same set. */
#define CTL_DRY_RUN   (1U << 20) /* --dry-run */
#define CTL_WITH_HOST (1U << 21) /* --with-host */
#define CTL_FAILURES  (1U << 22) /* --accept-failures */
#define CTL_HOST      (1U << 23) /* --host: it may run on another machine (host.h) */
#define CTL_LOSE      (1U << 25) /* --yes-lose-it */
#define CTL_HERE      (1U << 24) /* no option: $PREREGD_HOST does not concern it */
#define CTL_SLURM     (1U << 26) /* --slurm, --slurm-wait */
#define CTL_CSV       (1U << 27) /* --csv */
#define CTL_ITEMS     (1U << 28) /* --items, without a number */
#define CTL_ROLE      (1U << 29) /* --role */
#define CTL_PAGE      (1U << 30) /* --print, --new-token */
#define CTL_FORMAT    (1U << 31) /* --format */

/* The options of one call, borrowed from argv. NULL, 0 and false: not given. */
struct ctl_options {
    const char *state; /* --state; NULL: as rpc_state_folder() */
    const char *program;
    const char *reason;
    const char *out;
    const char *csv;     /* of report: the folder for its tables; NULL: the report itself */
    const char *pattern; /* of import, as all down to label */
    const char *samples;
    const char *records;
    const char *label;
    const char *key;             /* of lock, amend, sign */
    const char *role;            /* of sign */
    const char *allowed_signers; /* --allowed-signers; NULL: as signature_allowed_signers() */
    const char *ca;              /* certificates of trusted time-stamp authorities */
    const char *template_name;   /* of init */
    const char *from;            /* of init: the program to succeed */
    const char *stage;           /* of rerun */
    const char *format;          /* of export; NULL: a receipt */
    bool timestamp;              /* of lock, as verify */
    bool verify;
    bool list;      /* of init */
    bool keep;      /* of rerun */
    bool with_host; /* of export, as the next */
    bool with_items;
    bool accept_failures; /* of resume */
    bool lose;            /* of remove: without a receipt */
    bool print;           /* of open, as the next */
    bool new_token;
    bool json;
    bool watch;
    bool follow;
    bool no_run;
    int64_t steps; /* of try; 0: the default, as items */
    int64_t items;
    bool run; /* what the program names may be executed without asking */
    bool explain;
    bool slurm;
    int64_t slurm_wait_ms; /* of the probe job, in the queue */
    bool kill;
    bool replace;
    bool dry_run;
    bool all;
    bool help;
    int64_t interval_ms; /* of --watch */
    int64_t lines;       /* of logs */
    int64_t attempt;     /* of logs; 0: the newest */
    char **args;         /* the arguments after the options, borrowed from argv */
    int n_args;
};

/* Runs a command: sets *code and returns 0, or returns a negative ERR_* with its message. */
typedef int (*ctl_run)(const struct ctl_options *o, enum exit_code *code, struct err *err);

/* One row of the table of commands. */
struct ctl_command {
    const char *name;
    const char *args;    /* "[PROGRAM]" */
    const char *summary; /* one line */
    const char *details; /* more for `help NAME`; NULL: nothing more to say */
    unsigned options;    /* bits of enum ctl_option */
    int min_args;
    int max_args;
    ctl_run run;
};

extern const struct ctl_command ctl_commands[];
extern const size_t ctl_n_commands;
const struct ctl_command *ctl_find_command(const char *name); /* NULL when unknown */

/* Parses argv (argv[0] is the command's name). ERR_USAGE for anything the command does not take. */
int ctl_options_parse(const struct ctl_command *c, int argc, char **argv, struct ctl_options *o,
                      struct err *err) MUST_CHECK;
/* The usage of one command, or of all of them (NULL), to standard output. */
void ctl_print_help(const struct ctl_command *c);

/* One function for each command, in the file of its name. Each sets *code before it returns 0. */
int cmd_init(const struct ctl_options *o, enum exit_code *code, struct err *err);
int cmd_check(const struct ctl_options *o, enum exit_code *code, struct err *err);
int cmd_try(const struct ctl_options *o, enum exit_code *code, struct err *err);
int cmd_lock(const struct ctl_options *o, enum exit_code *code, struct err *err);
int cmd_status(const struct ctl_options *o, enum exit_code *code, struct err *err);
int cmd_cells(const struct ctl_options *o, enum exit_code *code, struct err *err);
int cmd_explain(const struct ctl_options *o, enum exit_code *code, struct err *err);
int cmd_logs(const struct ctl_options *o, enum exit_code *code, struct err *err);
int cmd_lost(const struct ctl_options *o, enum exit_code *code, struct err *err);
int cmd_open(const struct ctl_options *o, enum exit_code *code, struct err *err);
int cmd_curves(const struct ctl_options *o, enum exit_code *code, struct err *err);
int cmd_programs(const struct ctl_options *o, enum exit_code *code, struct err *err);
int cmd_disk(const struct ctl_options *o, enum exit_code *code, struct err *err);
int cmd_remove(const struct ctl_options *o, enum exit_code *code, struct err *err);
int cmd_retry(const struct ctl_options *o, enum exit_code *code, struct err *err);
int cmd_cancel(const struct ctl_options *o, enum exit_code *code, struct err *err);
int cmd_pause(const struct ctl_options *o, enum exit_code *code, struct err *err);
int cmd_resume(const struct ctl_options *o, enum exit_code *code, struct err *err);
int cmd_unblind(const struct ctl_options *o, enum exit_code *code, struct err *err);
int cmd_verdict(const struct ctl_options *o, enum exit_code *code, struct err *err);
int cmd_report(const struct ctl_options *o, enum exit_code *code, struct err *err);
int cmd_rebuild(const struct ctl_options *o, enum exit_code *code, struct err *err);
int cmd_export(const struct ctl_options *o, enum exit_code *code, struct err *err);
int cmd_verify(const struct ctl_options *o, enum exit_code *code, struct err *err);
int cmd_sign(const struct ctl_options *o, enum exit_code *code, struct err *err);
int cmd_import(const struct ctl_options *o, enum exit_code *code, struct err *err);
int cmd_apparatus(const struct ctl_options *o, enum exit_code *code, struct err *err);
int cmd_calibration(const struct ctl_options *o, enum exit_code *code, struct err *err);
int cmd_replay(const struct ctl_options *o, enum exit_code *code, struct err *err);
int cmd_amend(const struct ctl_options *o, enum exit_code *code, struct err *err);
int cmd_diff(const struct ctl_options *o, enum exit_code *code, struct err *err);
int cmd_rerun(const struct ctl_options *o, enum exit_code *code, struct err *err);
int cmd_stop(const struct ctl_options *o, enum exit_code *code, struct err *err);
int cmd_help(const struct ctl_options *o, enum exit_code *code, struct err *err);
int cmd_version(const struct ctl_options *o, enum exit_code *code, struct err *err);

/* What import and `replay --out` share: an imported program's folder, with its report. */

/* Writes o->out for the program o->args[0]. replayed: the records.json of a replay, whose own
 * label is kept; NULL: the files that o's map, patterns and records name. */
int import_to_folder(const struct ctl_options *o, const char *replayed, enum exit_code *code,
                     struct err *err) MUST_CHECK;

/* Writes a program folder's report with prereg-report, the executable beside this one: nothing
 * in it can change a verdict. */

/* Waits for it; ERR_OTHER has its last words. */
int run_report(const char *folder, const char *csv, struct err *err) MUST_CHECK;

#endif
