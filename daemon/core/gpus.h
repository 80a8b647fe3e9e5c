/* GPUs of this machine, as the files of daemon/core see them: what is there, what is held, and what
 * an attempt is given (gpus.c). Not for use outside. */
#ifndef DAEMON_CORE_GPUS_H
#define DAEMON_CORE_GPUS_H

#include "base/strbuf.h"
#include "daemon/core/model.h"

static inline enum lane stage_lane(const struct core_stage *s)
{
    return s->executor != EXECUTOR_LOCAL ? LANE_SLURM
           : s->gpu_thousandths > 0      ? LANE_GPU
                                         : LANE_LOCAL;
}

void gpus_set(struct core *c, const struct core_gpu *list, size_t n);
bool gpus_are_wanted(const struct core_stage *s); /* by attempts on this machine */
/* Whether an attempt of the stage could have its GPUs now; true when it wants none. */
bool gpus_fit(const struct core *c, const struct core_program *p, const struct core_stage *s);
/* Whether it could once all of our attempts have ended. */
bool gpus_could_fit(const struct core *c, const struct core_program *p, const struct core_stage *s);
/* Writes the UUIDs that an attempt is given. Requires gpus_fit(). */
void gpus_assign(const struct core *c, const struct core_program *p, const struct core_stage *s,
                 struct placement *at);
void gpus_hold(struct core *c, struct core_program *p, const struct placement *at);
void gpus_let_go(struct core *c, struct core_program *p, const struct placement *at);
/* Whether UUIDs of a row can be counted. */
bool gpus_text_is_sound(const char *gpus);
/* The UUID at *at of such a list; moves *at behind it. False: there is none left. */
bool gpus_next_uuid(const char **at, char uuid[GPU_UUID_SIZE]);
/* Appends what it lacks of GPUs ("waits for GPUs: needs 1 GPU, 0 of 2 free") where it lacks any. */
void gpus_why_not(const struct core *c, const struct core_program *p, const struct core_stage *s,
                  struct strbuf *out);

/* Which GPUs a program may use. */
void gpus_take_limits(struct core_program *p, const struct core_plan *plan);
void gpus_free_limits(struct core_program *p);

#endif
