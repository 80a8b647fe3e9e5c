/* Checks the clock against a lock: a lock is older than everything that rests on it. */
#ifndef PREREG_LOCK_LOCK_TIME_H
#define PREREG_LOCK_LOCK_TIME_H

#include "base/clock.h"
#include "prereg/lock/lock.h"

#define LOCK_CLOCK_SLACK_MS ((int64_t)5 * 60 * 1000) /* that two honest machines may differ by */

/* When the lock was made; zero when it does not have a valid time. */
struct wall_time lock_made_at(const struct lock *lock);
/* ERR_LOCK when the lock was made later than `now`, by more than the slack: one of the two clocks
 * is wrong, and nothing could be shown to have come after the lock. */
int lock_check_time(const struct lock *lock, struct wall_time now, struct err *err) MUST_CHECK;

#endif
