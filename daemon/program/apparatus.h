/*
 * Apparatus checks in the shell: their list (it only grows, in the order of their tasks), where
 * they run, whether a result is the expected one, and what status and provenance show.
 *
 * STATE/programs/<id>/apparatus/<name>/attempt-NNNN-<uuid>, and result.json linked beside them as
 * for any task; the pinned model's folder takes the place of every stage in `after`.
 */
#ifndef DAEMON_PROGRAM_APPARATUS_H
#define DAEMON_PROGRAM_APPARATUS_H

#include <cjson/cJSON.h>

#include "daemon/program/hosted.h"
#include "daemon/program/result.h"
#include "prereg/task/apparatus_results.h"

/* Reads the list from the store and adds what the program declares: a database of an older version
 * has none. A program with a verdict (finished) keeps the list it was judged with. */
int apparatus_load(struct store *store, struct hosted *h, bool finished,
                   struct err *err) MUST_CHECK;

/* The checks of h as an amendment makes them, in the order that store_apparatus_sync() gives them:
 * *n of them, `changed` where an existing result answers another question now. The caller frees the
 * list; names are those of h and of the amended program. ERR_RANGE: too many. */
int apparatus_amended(const struct hosted *h, const struct plan_program *then,
                      const struct stage_set *params_of, struct core_apparatus **list, uint32_t *n,
                      struct err *err) MUST_CHECK;
/* Its row is committed: h has them, too. */
void apparatus_follow(struct hosted *h, const struct core_apparatus *list, uint32_t n);

/* The declaration of a check; NULL when the program no longer has it. */
const struct plan_apparatus *apparatus_of(const struct hosted *h, const struct bundle *b,
                                          uint32_t task);

/* Absolute path of the pinned model; the caller frees it. */
int apparatus_model_path(const struct plan_program *p, const struct plan_apparatus *a, char **out,
                         struct err *err) MUST_CHECK;

/* apparatus_judged() as the core hears it: RESULT_VALID when it holds, else RESULT_UNEXPECTED. */
enum core_result_check apparatus_judge(const struct plan_apparatus *a, double first,
                                       const cJSON *result, double *value,
                                       char text[APPARATUS_TEXT_SIZE]);
/* What the first run measured, for the second one: of its accepted result in `folder`, which must
 * have the digest. */
int apparatus_first_value(const struct plan_apparatus *a, const char *folder,
                          const struct digest *digest, double *out, struct err *err) MUST_CHECK;
/* True when the attempt was asked what is declared now (its task.json). */
bool apparatus_is_current(const struct plan_apparatus *a, const struct bundle *b,
                          const char *attempt_folder);

/* The last line that a check's worker left on standard error, for people; "" when there is none.
 * The scores of a reference model are not sealed. */
void apparatus_last_words(const char *attempt_folder, char *text, size_t size);

/* apparatus_results() of all checks of h, removed ones included. */
cJSON *apparatus_all_results(const struct hosted *h, const struct lock *lock);

/* A line of provenance.json and status: {"name","declared","stage","metric","expected","within",
 * "value","holds","why","results"}; of a second run "again" and "first", too. A check that an
 * amendment removed is shown while it has attempts, as not declared, with its last question. NULL:
 * nothing to show. Reads the results; call it off the loop or for a person's question. */
cJSON *apparatus_json(const struct hosted *h, const struct bundle *b, uint32_t task,
                      const struct task_row *row);

/* Before the verdict: every check that a held stage waited for still holds, by the digest of its
 * result. ERR_LOCK names the one that does not. `rows` are those of all tasks. */
int apparatus_verify_all(const struct hosted *h, const struct bundle *b,
                         const struct task_row *rows, const struct digest *digests,
                         struct err *err) MUST_CHECK;

#endif
