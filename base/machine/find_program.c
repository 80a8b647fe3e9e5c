/* Searches $PATH. An empty or relative entry would depend on the current folder and is passed
 * over. */
#include "base/machine/find_program.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/xalloc.h"

bool is_program(const char *path)
{
    return file_kind_at(path) == FILE_REGULAR && access(path, X_OK) == 0;
}

char *find_program(const char *name)
{
    const char *list = getenv("PATH");
    while (list != NULL && *list != '\0') {
        size_t n = strcspn(list, ":");
        char *folder = xstrndup(list, n);
        char *path = folder[0] == '/' ? path_join(folder, name) : NULL;
        free(folder);
        if (path != NULL && is_program(path)) {
            return path;
        }
        free(path);
        list += list[n] == ':' ? n + 1 : n;
    }
    return NULL;
}
