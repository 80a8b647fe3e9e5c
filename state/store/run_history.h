/* A program's run record (state/journal/run_record.h), read off the store's copy of its journal. */
#ifndef STATE_STORE_RUN_HISTORY_H
#define STATE_STORE_RUN_HISTORY_H

#include "state/journal/run_record.h"
#include "state/store/store.h"

/* All of it from the store's copy of the journal; NULL p as above. *out is NULL on an error. */
int run_record_read(struct store *store, uint32_t program, const struct plan_program *p,
                    struct run_record **out, struct err *err) MUST_CHECK;
struct run_bounds {
    int64_t rows; /* a journal of more, in which [run] was changed, is not read */
    int64_t step; /* rows read in one call; above 0 */
};

/* Of a program that runs, for an answer while it does: brings *r (NULL at first, the caller's)
 * nearer to the store's last row, reading those that came since. Until it is there, and where the
 * journal is too long, run_record_is_known() is false. */
int run_record_follow(struct store *store, uint32_t program, const struct plan_program *p,
                      const struct run_bounds *bounds, struct run_record **r,
                      struct err *err) MUST_CHECK;
bool run_record_is_known(struct run_record *r);
/* Another call would bring it further. */
bool run_record_is_behind(struct run_record *r);
/* The list alone, for a person's question; NULL where [run] was never changed or nothing was
 * blocked. Walks the whole journal. */
int run_record_read_list(struct store *store, uint32_t program, cJSON **out,
                         struct err *err) MUST_CHECK;

#endif
