/*
 * One pass over the arguments, in place: operands move to the front while flags are taken out. A
 * flag that needs a value takes the next argument whatever it is, so a value may begin with a dash;
 * an operand may not.
 */
#include "worker/report/flags.h"

#include "base/text.h"

int flags_take(char **args, struct flag *flags, size_t n_flags, struct err *err)
{
    char **keep = args;
    for (; *args != NULL; args++) {
        struct flag *found = NULL;
        for (size_t i = 0; i < n_flags; i++)
            if (strcmp(*args, flags[i].name) == 0)
                found = &flags[i];
        if (found == NULL && (*args)[0] == '-')
            return err_set(err, ERR_USAGE, "unknown option '%s'", *args);
        if (found == NULL) {
            *keep++ = *args;
            continue;
        }
        if (!found->alone && args[1] == NULL)
            return err_set(err, ERR_USAGE, "%s needs a value", *args);
        if (found->value != NULL)
            return err_set(err, ERR_USAGE, "%s is given twice", *args);
        found->value = found->alone ? *args : *++args;
    }
    *keep = NULL;
    return 0;
}

int flag_int(const struct flag *flag, int64_t min, int64_t max, int64_t *out, struct err *err)
{
    if (flag->value == NULL || text_to_int(flag->value, min, max, out, err) == 0)
        return 0;
    err->code = ERR_USAGE;
    return err_wrap(err, "%s", flag->name);
}
