/*
 * What prereg-eval does for people, without a model being scored: which tasks there are, and what a
 * task sends to the model.
 */
#ifndef WORKER_EVAL_CLI_COMMANDS_H
#define WORKER_EVAL_CLI_COMMANDS_H

#include <stdio.h>

#include "base/err.h"

/* The arguments after the command's name, ended by NULL. ERR_USAGE for the command line,
 * ERR_SYNTAX and others for what is read. */

/* tasks | tasks NAME | tasks --check FILE */
int command_tasks(char **args, FILE *out, struct err *err) MUST_CHECK;
/* show TASK --data PATH --item N ... */
int command_show(char **args, FILE *out, struct err *err) MUST_CHECK;
/* export-harness FOLDER -o FOLDER */
int command_export_harness(char **args, FILE *out, struct err *err) MUST_CHECK;

#endif
