/*
 * What the probe job runs on its node, as text of bash, with what bash itself has: a node may lack
 * everything else. It is started by the executor's own job script, in the place of prereg-shim, as
 * `FOLDER/probe --slurm FOLDER`.
 *
 *   node  ->  FOLDER/node      lines "KEY VALUE", the last is "end"
 *   we    ->  FOLDER/ask-N     N = 1, 2, ...; or FOLDER/ask-over
 *   node  ->  FOLDER/pong-N    "SECONDS end": the node's clock when it had seen ask-N
 *
 * Every file is new: nothing depends on what a file system caches of an old one.
 */
#ifndef DAEMON_SLURM_CHECK_PROBE_SCRIPT_H
#define DAEMON_SLURM_CHECK_PROBE_SCRIPT_H

#include "base/strbuf.h"

#define PROBE_SCRIPT    "probe"
#define PROBE_NONCE     "nonce"
#define PROBE_NODE      "node"
#define PROBE_LOCK      "lock"
#define PROBE_OVER      "ask-over"
#define PROBE_EXIT_READ 121 /* the nonce cannot be read */
#define PROBE_EXIT_PUT  122 /* nothing can be written */

void probe_script_write(struct strbuf *out, const char *shim);

#endif
