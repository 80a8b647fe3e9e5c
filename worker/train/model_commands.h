/*
 * The commands on a finished model: export it, continue a text with it, measure its loss on a text.
 * A model is anything worker/model/formats/import.h knows. Each command reads its own arguments
 * (ERR_USAGE when they are wrong) and prints to `out`.
 */
#ifndef WORKER_TRAIN_MODEL_COMMANDS_H
#define WORKER_TRAIN_MODEL_COMMANDS_H

#include <stdio.h>

#include "base/err.h"

/* export --hf DIR [--tokenizer FILE | --no-tokenizer] [--force] MODEL */
int model_command_export(int argc, char **argv, FILE *out, struct err *err) MUST_CHECK;

/* generate MODEL [--prompt TEXT] [--tokens N] [--tokenizer FILE] [--ids]
 * The text so far and the likeliest token each time, the lowest id of equals, until the end-of-text
 * token, N tokens, or the end of the context. The first token is the end of text, which is not
 * printed. */
int model_command_generate(int argc, char **argv, FILE *out, struct err *err) MUST_CHECK;

/* loss MODEL --text SOURCE [--context N] [--tokenizer FILE]
 * One line of JSON: nats per token and bits per byte over the source's documents, one after the
 * other with end-of-text tokens before, between and after them, in windows of one context. */
int model_command_loss(int argc, char **argv, FILE *out, struct err *err) MUST_CHECK;

#endif
