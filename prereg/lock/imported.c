/*
 * The two marks of an import: the file in the program's folder, and the member under the lock's
 * root. imported_lock_build() is in lock.c, beside the other way to build a lock.
 */
#include "prereg/lock/imported.h"

#include <stdlib.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"

bool imported_is_folder(const char *folder)
{
    char *path = path_join(folder, LAYOUT_IMPORTED);
    bool there = file_kind_at(path) != FILE_ABSENT;
    free(path);
    return there;
}

bool imported_lock(const struct lock *lock)
{
    return cJSON_IsTrue(json_member(lock->locked, "imported"));
}
