/*
 * The time in a lock is its maker's clock. It proves nothing by itself, but a lock from the future
 * shows that one of two clocks is wrong, before any record carries a time that precedes its lock.
 */
#include "prereg/lock/lock.h"

#include "base/json/json.h"

struct wall_time lock_made_at(const struct lock *lock)
{
    const cJSON *time = json_member(lock->json, "time");
    struct wall_time made = {0};
    if (cJSON_IsString(time)) {
        (void)clock_wall_parse(time->valuestring, &made);
    }
    return made;
}

int lock_check_time(const struct lock *lock, struct wall_time now, struct err *err)
{
    const cJSON *time = json_member(lock->json, "time");
    struct wall_time made = {0};
    char here[WALL_TEXT_SIZE];
    if (!cJSON_IsString(time) || !clock_wall_parse(time->valuestring, &made)) {
        return err_set(err, ERR_LOCK, "the lock does not say when it was made");
    }
    if (made.ms - now.ms <= LOCK_CLOCK_SLACK_MS) {
        return 0;
    }
    clock_wall_text(now, here);
    return err_set(
        err, ERR_LOCK,
        "the lock was made at %s, and this machine's clock says %s: set the clock right, or, when "
        "it was the locker's that was wrong, lock again",
        time->valuestring, here);
}
