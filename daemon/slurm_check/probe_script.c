/* The text is fixed but for the path of prereg-shim. */
#include "daemon/slurm_check/probe_script.h"

/* EPOCHREALTIME is of bash 5; before, the clock is read in seconds. A glob reads the folder, which
 * a look for one name need not (rule 17). */
static const char TEXT[] =
    "\n"
    "export LC_ALL=C\n"
    "folder=$2\n"
    "exec 9<> <(:)\n"
    "nap() { read -r -t 0.1 -u 9; }\n"
    "IFS= read -r nonce < \"$folder/nonce\" || exit 121\n"
    "version=$(\"$shim\" --version 2>&1)\n"
    "code=$?\n"
    "lock=absent\n"
    "if type -P flock > /dev/null; then\n"
    "    lock=refused\n"
    "    exec 8> \"$folder/lock\" && flock -n 8 && lock=held\n"
    "fi\n"
    "{\n"
    "    printf '%s\\n' \"host $HOSTNAME\" \"name $SLURMD_NODENAME\" \"nonce $nonce\" \\\n"
    "        \"code $code\" \"version ${version%%$'\\n'*}\" \"lock $lock\" end\n"
    "} > \"$folder/node\" || exit 122\n"
    "for ((round = 0; round < 900; round++)); do\n"
    "    for ask in \"$folder\"/ask-*; do\n"
    "        n=${ask##*-}\n"
    "        [ \"$n\" = over ] && exit 0\n"
    "        if [ \"$n\" != '*' ] && [ -z \"${seen[n]}\" ]; then\n"
    "            seen[n]=1\n"
    "            printf -v now '%(%s)T' -1\n"
    "            printf '%s end\\n' \"${EPOCHREALTIME:-$now}\" > \"$folder/pong-$n\"\n"
    "        fi\n"
    "    done\n"
    "    nap\n"
    "done\n";

void probe_script_write(struct strbuf *out, const char *shim)
{
    strbuf_adds(out, "#!/bin/bash\nshim=");
    strbuf_add_quoted(out, shim);
    strbuf_adds(out, TEXT);
}
