/*
 * One table of options; a command's bits select those that it takes, for getopt_long, for its help
 * and for suggestions. An option that a command does not take is an error, never ignored.
 */
#include "ctl/ctl.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "base/terminal.h"
#include "base/text.h"
#include "base/xalloc.h"

#define ARGUMENT_COLUMNS  23 /* of the list of commands */
#define SLURM_WAIT_MS     ((int64_t)60 * 1000)
#define SLURM_WAIT_MAX_MS ((int64_t)24 * 3600 * 1000)

/* Values of getopt_long; those of options without a letter are above every character. */
enum {
    OPT_STATE = 256,
    OPT_NO_RUN,
    OPT_EXPLAIN,
    OPT_KILL,
    OPT_REPLACE,
    OPT_DRY_RUN,
    OPT_ATTEMPT,
    OPT_INTERVAL,
    OPT_PATTERN,
    OPT_SAMPLES,
    OPT_RECORDS,
    OPT_LABEL,
    OPT_KEY,
    OPT_ROLE,
    OPT_SIGNERS,
    OPT_CA,
    OPT_TIMESTAMP,
    OPT_VERIFY,
    OPT_TEMPLATE,
    OPT_FROM,
    OPT_LIST,
    OPT_STAGE,
    OPT_KEEP,
    OPT_RUN,
    OPT_STEPS,
    OPT_ITEMS,
    OPT_WITH_HOST,
    OPT_WITH_ITEMS,
    OPT_FAILURES,
    OPT_HOST,
    OPT_SLURM,
    OPT_SLURM_WAIT,
    OPT_LOSE,
    OPT_CSV,
    OPT_PRINT,
    OPT_NEW_TOKEN,
    OPT_FORMAT,
};

/* One option, for parsing and for the help. */
struct option_row {
    const char *name;
    int value;
    const char *operand; /* NULL: a flag */
    unsigned bit;        /* of enum ctl_option; 0: every command takes it */
    const char *help;
};

static const struct option_row option_rows[] = {
    {"json", 'j', NULL, CTL_JSON, "one JSON object instead of text (\"schema\":1)"},
    {"watch", 'w', NULL, CTL_WATCH, "draw again until the program has ended"},
    {"interval", OPT_INTERVAL, "TIME", CTL_WATCH,
     "time between two updates of --watch (default 1s)"},
    {"follow", 'f', NULL, CTL_FOLLOW, "print new output until the attempt ends"},
    {"lines", 'n', "N", CTL_LINES, "at most N last lines (default 40)"},
    {"attempt", OPT_ATTEMPT, "N", CTL_LINES, "attempt N instead of the newest"},
    /* what may be executed, and how much of it */
    {"run", OPT_RUN, NULL, CTL_RUN, "execute the program's own workers without asking"},
    {"steps", OPT_STEPS, "N", CTL_TRY, "at most N steps of a training (default 5)"},
    {"items", OPT_ITEMS, "N", CTL_TRY, "at most N items of an evaluation (default 16)"},
    {"no-run", OPT_NO_RUN, NULL, CTL_NO_RUN, "execute no worker"},
    {"explain", OPT_EXPLAIN, NULL, CTL_EXPLAIN,
     "print every row with what can reach it, and what each line means"},
    {"slurm", OPT_SLURM, NULL, CTL_SLURM,
     "ask Slurm about every stage, and run a probe job of seconds on a node"},
    {"slurm-wait", OPT_SLURM_WAIT, "TIME", CTL_SLURM,
     "how long the probe job may wait in the queue (default 60s)"},
    /* which program, and why */
    {"reason", 'r', "TEXT", CTL_REASON, "why (journalled)"},
    {"program", 'p', "PROGRAM", CTL_PROGRAM, "which program, when there are several"},
    {"dry-run", OPT_DRY_RUN, NULL, CTL_DRY_RUN, "show what would be done, and do nothing"},
    {"kill", OPT_KILL, NULL, CTL_KILL, "end running attempts as well"},
    {"replace", OPT_REPLACE, NULL, CTL_REPLACE,
     "discard the existing lock of another root, or import"},
    /* import */
    {"out", 'o', "FOLDER", CTL_OUT, "the folder to write"},
    {"pattern", OPT_PATTERN, "GLOB", CTL_IMPORT,
     "results of each cell: 'r/{arch}_{seed}/results_*.json'"},
    {"samples", OPT_SAMPLES, "GLOB", CTL_IMPORT, "the samples beside them"},
    {"records", OPT_RECORDS, "FILE", CTL_IMPORT, "records as they are (the schema of replay)"},
    {"label", OPT_LABEL, "TEXT", CTL_IMPORT, "where the files come from"},
    /* signatures and time stamps */
    {"key", OPT_KEY, "FILE", CTL_KEY, "sign with this SSH key, or the agent's of this public key"},
    {"role", OPT_ROLE, "ROLE", CTL_ROLE, "scientific, statistical or adversarial: as whom"},
    {"allowed-signers", OPT_SIGNERS, "FILE", CTL_SIGNERS,
     "whose signatures count (default: docs/locks.md)"},
    {"ca", OPT_CA, "FILE", CTL_SIGNERS,
     "time-stamping authorities to believe (default: /etc/ssl/certs)"},
    {"timestamp", OPT_TIMESTAMP, NULL, CTL_STAMP, "write an RFC 3161 request beside the lock"},
    {"verify", OPT_VERIFY, NULL, CTL_STAMP, "write nothing: check the existing lock"},
    /* options of one command each */
    {"template", OPT_TEMPLATE, "NAME", CTL_TEMPLATE, "start from this design (see --list)"},
    {"from", OPT_FROM, "GRID.TOML", CTL_TEMPLATE, "start from this locked program: a successor"},
    {"list", OPT_LIST, NULL, CTL_TEMPLATE, "print the templates' names and what they ask"},
    {"stage", OPT_STAGE, "STAGE", CTL_RERUN, "only this stage and those it depends on"},
    {"keep", OPT_KEEP, NULL, CTL_RERUN, "keep what the workers wrote, weights and items"},
    {"with-host", OPT_WITH_HOST, NULL, CTL_WITH_HOST, "keep the names of the hosts"},
    {"items", OPT_WITH_ITEMS, NULL, CTL_ITEMS,
     "include the items, from which `verify` counts every score again"},
    {"format", OPT_FORMAT, "FORMAT", CTL_FORMAT, "write it in this format instead"},
    {"accept-failures", OPT_FAILURES, NULL, CTL_FAILURES,
     "stages may fail: never pause for that again"},
    {"yes-lose-it", OPT_LOSE, NULL, CTL_LOSE, "without a receipt: what is removed is lost"},
    {"csv", OPT_CSV, "FOLDER", CTL_CSV, "write its tables there instead: means.csv, records.csv"},
    {"print", OPT_PRINT, NULL, CTL_PAGE, "only print the address: open no browser"},
    {"new-token", OPT_NEW_TOKEN, NULL, CTL_PAGE, "another token from now on; every session ends"},
    {"all", 'a', NULL, CTL_ALL, "all of them"},
    {"host", OPT_HOST, "HOST", CTL_HOST, "run it on HOST, over ssh (default: $PREREGD_HOST)"},
    /* every command takes these */
    {"state", OPT_STATE, "FOLDER", 0, "the state folder (default: $PREREGD_STATE)"},
    {"help", 'h', NULL, 0, "this help"},
};

/* Whether the command takes the option. */
static bool takes(const struct ctl_command *c, const struct option_row *row)
{
    return row->bit == 0 || (c->options & row->bit) != 0;
}

/* Fills long options and the short string from the rows that the command takes. */
static void build_tables(const struct ctl_command *c, struct option *longs, char *shorts)
{
    size_t n = 0;
    char *s = shorts;
    /* makes getopt report a missing operand as ':' */
    *s++ = ':';
    for (size_t i = 0; i < ARRAY_LEN(option_rows); i++) {
        const struct option_row *row = &option_rows[i];
        if (!takes(c, row)) {
            continue;
        }
        longs[n++] = (struct option){row->name, row->operand ? required_argument : no_argument,
                                     NULL, row->value};
        if (row->value < 256) {
            *s++ = (char)row->value;
            if (row->operand) {
                *s++ = ':';
            }
        }
    }
    longs[n] = (struct option){NULL, 0, NULL, 0};
    *s = '\0';
}

/* A number of 1..max as the operand of --name. */
static int set_number(const char *name, const char *text, int64_t max, int64_t *out,
                      struct err *err)
{
    int rc = text_to_int(text, 1, max, out, err);
    return rc == 0 ? 0
                   : err_set(err, ERR_USAGE, "--%s: \"%s\" is not a number from 1 to %lld", name,
                             text, (long long)max);
}

/* From 100 ms, so that --watch cannot busy the daemon, to an hour. */
static int set_interval(const char *text, int64_t *out, struct err *err)
{
    int rc = text_to_ms(text, out, err);
    if (rc != 0 || *out < 100 || *out > 3600000) {
        return err_set(err, ERR_USAGE, "--interval: \"%s\" is not a time from 100ms to 1h", text);
    }
    return 0;
}

static int set_slurm_wait(const char *text, int64_t *out, struct err *err)
{
    int rc = text_to_ms(text, out, err);
    if (rc != 0 || *out < 1000 || *out > SLURM_WAIT_MAX_MS) {
        return err_set(err, ERR_USAGE, "--slurm-wait: \"%s\" is not a time from 1s to 24h", text);
    }
    return 0;
}

/* Stores one option; the operand is borrowed from argv. */
static int apply(struct ctl_options *o, int value, const char *operand, struct err *err)
{
    switch (value) {
    case 'j': o->json = true; return 0;
    case 'w': o->watch = true; return 0;
    case 'f': o->follow = true; return 0;
    case 'h': o->help = true; return 0;
    case 'a': o->all = true; return 0;
    case 'r': o->reason = operand; return 0;
    case 'p': o->program = operand; return 0;
    case 'n': return set_number("lines", operand, 1000000, &o->lines, err);
    case OPT_ATTEMPT: return set_number("attempt", operand, 1000000, &o->attempt, err);
    case OPT_INTERVAL: return set_interval(operand, &o->interval_ms, err);
    case OPT_STATE: o->state = operand; return 0;
    case OPT_NO_RUN: o->no_run = true; return 0;
    case OPT_RUN: o->run = true; return 0;
    case OPT_STEPS: return set_number("steps", operand, 1000000, &o->steps, err);
    case OPT_ITEMS: return set_number("items", operand, 1000000, &o->items, err);
    case OPT_EXPLAIN: o->explain = true; return 0;
    case OPT_SLURM: o->slurm = true; return 0;
    case OPT_SLURM_WAIT: return set_slurm_wait(operand, &o->slurm_wait_ms, err);
    case OPT_KILL: o->kill = true; return 0;
    case OPT_REPLACE: o->replace = true; return 0;
    case OPT_DRY_RUN: o->dry_run = true; return 0;
    case 'o': o->out = operand; return 0;
    case OPT_PATTERN: o->pattern = operand; return 0;
    case OPT_SAMPLES: o->samples = operand; return 0;
    case OPT_RECORDS: o->records = operand; return 0;
    case OPT_LABEL: o->label = operand; return 0;
    case OPT_KEY: o->key = operand; return 0;
    case OPT_ROLE: o->role = operand; return 0;
    case OPT_SIGNERS: o->allowed_signers = operand; return 0;
    case OPT_CA: o->ca = operand; return 0;
    case OPT_TIMESTAMP: o->timestamp = true; return 0;
    case OPT_VERIFY: o->verify = true; return 0;
    case OPT_TEMPLATE: o->template_name = operand; return 0;
    case OPT_FROM: o->from = operand; return 0;
    case OPT_LIST: o->list = true; return 0;
    case OPT_STAGE: o->stage = operand; return 0;
    case OPT_KEEP: o->keep = true; return 0;
    case OPT_WITH_HOST: o->with_host = true; return 0;
    case OPT_WITH_ITEMS: o->with_items = true; return 0;
    case OPT_FORMAT: o->format = operand; return 0;
    case OPT_FAILURES: o->accept_failures = true; return 0;
    case OPT_LOSE: o->lose = true; return 0;
    case OPT_CSV: o->csv = operand; return 0;
    case OPT_PRINT: o->print = true; return 0;
    case OPT_NEW_TOKEN: o->new_token = true; return 0;
    case OPT_HOST: return err_set(err, ERR_USAGE, "--host is written in full"); /* host_take() */
    default: return err_set(err, ERR_OTHER, "option %d is in no table", value);
    }
}

/* Reports an option that the command does not take, with the nearest one that it does. */
static int unknown_option(const struct ctl_command *c, const char *word, struct err *err)
{
    const char *known[ARRAY_LEN(option_rows)];
    size_t n_known = 0;
    for (size_t i = 0; i < ARRAY_LEN(option_rows); i++) {
        if (takes(c, &option_rows[i])) {
            known[n_known++] = option_rows[i].name;
        }
    }
    const char *bare = strncmp(word, "--", 2) == 0 ? word + 2 : word;
    const char *near = text_nearest(bare, known, n_known);
    return near ? err_set(err, ERR_USAGE, "%s takes no %s; did you mean --%s?", c->name, word, near)
                : err_set(err, ERR_USAGE, "%s takes no %s (see `preregctl help %s`)", c->name, word,
                          c->name);
}

/* A hint for names that a user cannot know by heart. */
static const char *where_to_find(const char *args)
{
    return strcmp(args, "TASK") == 0
               ? "; TASK is CELL/STAGE: `preregctl cells` lists the cells, under the stages' names"
           : strcmp(args, "CELL") == 0 ? "; `preregctl cells` lists the cells"
                                       : "";
}

int ctl_options_parse(const struct ctl_command *c, int argc, char **argv, struct ctl_options *o,
                      struct err *err)
{
    struct option longs[ARRAY_LEN(option_rows) + 1];
    char shorts[2 * ARRAY_LEN(option_rows) + 2];
    /* only what the command takes: anything else is unknown to getopt */
    build_tables(c, longs, shorts);
    *o = (struct ctl_options){.interval_ms = 1000, .lines = 40, .slurm_wait_ms = SLURM_WAIT_MS};
    optind = 0; /* starts getopt afresh, for tests that parse more than once */
    opterr = 0;
    int value;
    while ((value = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
        if (value == '?') {
            return unknown_option(c, argv[optind - 1], err);
        }
        if (value == ':') {
            return err_set(err, ERR_USAGE, "%s needs a value", argv[optind - 1]);
        }
        int rc = apply(o, value, optarg, err);
        if (rc != 0) {
            return rc;
        }
    }
    o->args = argv + optind;
    o->n_args = argc - optind;
    /* help needs no arguments, so their number is not checked */
    if (o->help) {
        return 0;
    }
    if (o->n_args < c->min_args || o->n_args > c->max_args) {
        return err_set(err, ERR_USAGE, "usage: preregctl %s %s%s", c->name, c->args,
                       o->n_args < c->min_args ? where_to_find(c->args) : "");
    }
    return 0;
}

/* The options that the command takes, with their letters and operands. */
static void print_options(const struct ctl_command *c)
{
    for (size_t i = 0; i < ARRAY_LEN(option_rows); i++) {
        const struct option_row *row = &option_rows[i];
        if (!takes(c, row)) {
            continue;
        }
        char left[40];
        char letter[8] = "    ";
        if (row->value < 256) {
            (void)snprintf(letter, sizeof(letter), "-%c, ", (char)row->value);
        }
        (void)snprintf(left, sizeof(left), "%s--%s %s", letter, row->name,
                       row->operand ? row->operand : "");
        terminal_printf(stdout, "  %-24s %s\n", left, row->help);
    }
}

void ctl_print_help(const struct ctl_command *c)
{
    if (c != NULL) {
        terminal_printf(stdout, "usage: preregctl %s%s%s [OPTION…]\n\n%s\n", c->name,
                        c->args[0] ? " " : "", c->args, c->summary);
        if (c->details) {
            terminal_printf(stdout, "%s\n", c->details);
        }
        terminal_printf(stdout, "\n");
        print_options(c);
        return;
    }
    terminal_printf(stdout, "usage: preregctl COMMAND [OPTION…] [ARGUMENT…]\n\n");
    for (size_t i = 0; i < ctl_n_commands; i++) {
        const struct ctl_command *row = &ctl_commands[i];
        const size_t columns = text_columns(row->args); /* "…" is three bytes and one column */
        terminal_printf(stdout, "  %-11s %s%*s %s\n", row->name, row->args,
                        columns < ARGUMENT_COLUMNS ? (int)(ARGUMENT_COLUMNS - columns) : 0, "",
                        row->summary);
    }
    terminal_printf(
        stdout,
        "\nPROGRAM is an id, a root digest or a name; without one the only program is meant, "
        "else the\n"
        "newest that is not finished, else the newest; status shows all. What cannot be undone\n"
        "(cancel, retry, unblind) needs one if there are several.\n"
        "TASK is CELL/STAGE. `preregctl submit` is `preregd submit`.\n"
        "`preregctl help COMMAND` says more; exit codes: "
        "docs/exit-codes.md.\n");
}
