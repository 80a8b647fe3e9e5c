/*
 * Where the files of a state folder are, and how large each may be: every name and every limit
 * once, for all programs that write or read them. docs/architecture.md §5 shows the tree and
 * repeats the limits (tests/lint/docs compares them). Limits are bytes. A reader that takes a whole
 * file into memory refuses one over its limit; what wrote the file kept to the same limit, or was
 * refused by the daemon.
 */
#ifndef BASE_LAYOUT_LAYOUT_H
#define BASE_LAYOUT_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

/* ---- STATE/ ---- */

#define LAYOUT_DATABASE       "preregd.db"
#define LAYOUT_STATE_LOCK     "state.lock" /* the process that holds it may write */
#define LAYOUT_SOCKET         "preregd.sock"
#define LAYOUT_LOG            "preregd.log"
#define LAYOUT_SHIM_LOG       "shim.log"   /* and in an attempt's folder */
#define LAYOUT_SERVE          "serve.toml" /* the user's: what others may see */
#define LAYOUT_KNOWN_COMMANDS "known-commands"
#define LAYOUT_MACHINE_RATES  "machine-rates.json"
#define LAYOUT_OBJECTS        "objects"
#define LAYOUT_PROGRAMS       "programs"
#define LAYOUT_TENURE         "tenure"      /* of a shared one: which daemon serves it */
#define LAYOUT_DATABASE_ID    "database-id" /* in the folder of a database that is elsewhere */
#define LAYOUT_STATE_ID       "state-id"    /* of the state folder, for its life */

/* ---- PROGRAM/: STATE/programs/ID, or the folder of an imported program ---- */

#define LAYOUT_GRID        "grid.toml"
#define LAYOUT_LOCK_SUFFIX ".lock" /* of a program file of any name, as the next two */
#define LAYOUT_TSQ_SUFFIX  ".tsq"
#define LAYOUT_TSR_SUFFIX  ".tsr"
#define LAYOUT_LOCK        "grid.toml.lock"
#define LAYOUT_TSQ         "grid.toml.lock.tsq"
#define LAYOUT_TSR         "grid.toml.lock.tsr"
#define LAYOUT_ORIGIN      "origin.json"
#define LAYOUT_JOURNAL     "journal.jsonl"
#define LAYOUT_RECORDS     "records.json" /* of an imported program, as the next */
#define LAYOUT_IMPORTED    "imported.json"
#define LAYOUT_AMENDMENTS  "amendments"
#define LAYOUT_APPARATUS   "apparatus"
#define LAYOUT_CELLS       "cells"
#define LAYOUT_JOBS        "jobs"       /* of a queue: beside the real cells/, as objects/ */
#define LAYOUT_OWNER       "owner.json" /* beside the real cells/ of [run] work: whose they are */
#define LAYOUT_RERUNS      "reruns"
#define LAYOUT_REPORT_LOG  "report.log"
#define LAYOUT_REPORT      "report"

/* ---- PROGRAM/report/ ---- */

#define LAYOUT_VERDICT     "verdict.json"
#define LAYOUT_PROVENANCE  "provenance.json"
#define LAYOUT_INSTRUMENTS "instruments.json"
#define LAYOUT_RECEIPTS    "receipts.json" /* of an imported program: what was read */
#define LAYOUT_REPORT_HTML "report.html"
#define LAYOUT_REPORT_MD   "report.md"
#define LAYOUT_REPORT_JSON "report.json"
#define LAYOUT_SUMS        "SHA256SUMS"

/* A file of report/, as a path from PROGRAM. */
#define LAYOUT_IN_REPORT(name) LAYOUT_REPORT "/" name

/* ---- PROGRAM/cells/CELL/STAGE/attempt-NN-UUID/ (base/layout/attempt_name.h) ---- */

#define LAYOUT_TASK       "task.json"
#define LAYOUT_EVENTS     "events.jsonl"
#define LAYOUT_START      "start.json"
#define LAYOUT_EXIT       "exit.json"
#define LAYOUT_HEARTBEAT  "heartbeat"       /* of an attempt that a queue runs */
#define LAYOUT_CURRENT    "current-attempt" /* beside the attempts: which one may publish */
#define LAYOUT_SPEC       "spec"            /* likewise: what its shim is to run */
#define LAYOUT_JOB        "job"             /* likewise: name and index of its job */
#define LAYOUT_UNFIT      "unfit"           /* likewise: its node is not what the program pins */
#define LAYOUT_REFUSED    "refused"         /* likewise: its shim did not run it a second time */
#define LAYOUT_STDOUT     "stdout.log"
#define LAYOUT_STDERR     "stderr.log"
#define LAYOUT_CHECKPOINT "checkpoint"
#define LAYOUT_ITEMS      "items.jsonl"
#define LAYOUT_MODEL      "model"       /* what a training leaves: its last model */
#define LAYOUT_SNAPSHOT   "snapshot"    /* likewise: a folder for each fraction of its horizon */
#define LAYOUT_MODEL_BIN  "model.bin"   /* in either: the weights */
#define LAYOUT_RESULT     "result.json" /* beside the attempts: a link to the accepted one */

/* ---- limits ---- */

#define LAYOUT_GRID_MAX        ((size_t)32 << 20)  /* its tables may be generated */
#define LAYOUT_LOCK_MAX        ((size_t)64 << 20)  /* holds the whole plan again, as JSON */
#define LAYOUT_AMENDMENT_MAX   LAYOUT_LOCK_MAX     /* holds a whole plan, too */
#define LAYOUT_TSR_MAX         ((size_t)1 << 20)   /* a response with its certificates is 10 KiB */
#define LAYOUT_ORIGIN_MAX      ((size_t)64 << 10)  /* two paths */
#define LAYOUT_JOURNAL_MAX     ((size_t)2 << 30)   /* healing and rebuilding hold it in memory */
#define LAYOUT_SERVE_MAX       ((size_t)64 << 10)  /* a few names of groups */
#define LAYOUT_RECORDS_MAX     ((size_t)256 << 20) /* a million records are 93 MB */
#define LAYOUT_REPORT_MAX      ((size_t)1 << 30)   /* any JSON file of report/; a receipt's, too */
#define LAYOUT_TASK_MAX        ((size_t)16 << 20)  /* lists every earlier attempt */
#define LAYOUT_START_MAX       ((size_t)1 << 20)   /* start.json and exit.json: argv, environment */
#define LAYOUT_SPEC_MAX        ((size_t)16 << 20)  /* argv and environment */
#define LAYOUT_JOB_MAX         ((size_t)4 << 10)
#define LAYOUT_RESULT_MAX      ((size_t)16 << 20)  /* the daemon accepts no larger one */
#define LAYOUT_EVENTS_LINE_MAX ((size_t)64 << 10)  /* the daemon refuses a longer line */
#define LAYOUT_EVENTS_MAX      ((int64_t)16 << 30) /* read line by line, for a report's curves */
#define LAYOUT_EVENTS_ALL_MAX  ((size_t)256 << 20) /* read in one piece, for a terminal's */
#define LAYOUT_ITEMS_MAX       ((size_t)1 << 30)   /* a million answers of 1 kB */

/* ---- paths; the caller frees them ---- */

/* STATE/programs/ID */
char *layout_program(const char *state, const char *id) __attribute__((returns_nonnull));
/* PROGRAM/cells/CELL/STAGE, where `cell` is the name of the cell's folder */
char *layout_task(const char *program, const char *cell, const char *stage)
    __attribute__((returns_nonnull));
/* PROGRAM/apparatus/NAME: of a check, in the place of a task's folder */
char *layout_check(const char *program, const char *name) __attribute__((returns_nonnull));

#endif
