/* Each checks the result of its standard counterpart and aborts on failure. */
#include "base/xalloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *checked(void *p)
{
    if (p == NULL) {
        (void)fputs("out of memory\n", stderr);
        abort();
    }
    return p;
}

void *xmalloc(size_t size)
{
    return checked(malloc(size == 0 ? 1 : size));
}

void *xcalloc(size_t n, size_t size)
{
    return checked(calloc(n == 0 ? 1 : n, size == 0 ? 1 : size));
}

void *xreallocarray(void *old, size_t n, size_t size)
{
    return checked(reallocarray(old, n == 0 ? 1 : n, size == 0 ? 1 : size));
}

char *xstrdup(const char *s)
{
    return checked(strdup(s));
}

char *xstrndup(const char *s, size_t n)
{
    return checked(strndup(s, n));
}

char *xasprintf(const char *fmt, ...)
{
    char *out = NULL;
    va_list ap;
    va_start(ap, fmt);
    int n = vasprintf(&out, fmt, ap);
    va_end(ap);
    return checked(n < 0 ? NULL : out);
}

void xfree_list(char **list)
{
    for (size_t i = 0; list != NULL && list[i] != NULL; i++) {
        free(list[i]);
    }
    free(list);
}

void text_list_add(struct text_list *list, char *text)
{
    ARRAY_GROW(list->items, list->n, list->cap);
    list->items[list->n++] = text;
}
