# Completion of preregctl and preregd for bash: source it, or put it into /usr/share/bash-completion/completions/preregctl.

_preregctl_programs() {
    preregctl status --json 2>/dev/null | sed -n 's/^ *"id": "\(.*\)",$/\1/p'
}

_preregctl_tasks() {
    preregctl cells 2>/dev/null | sed -n '2,$s/^\([^ ]*\/[^ ]*\) .*/\1/p'
}

_preregctl_commands() {
    preregctl help 2>/dev/null | sed -n 's/^  \([a-z][a-z]*\) .*/\1/p'
}

# What may stand where the help says $1, of what begins with $2; 1 for a word that nobody knows. Sets `files` where these
# are names of files.
_preregctl_offer() {
    local words='' ending=${1##*.}
    case "$1" in
    COMMAND) words=$(_preregctl_commands) ;;
    PROGRAM) words=$(_preregctl_programs) ;;
    TASK) words=$(_preregctl_tasks) ;;
    CELL) words=$(_preregctl_tasks | sed '/^apparatus\//d; s|/[^/]*$||' | sort -u) ;;
    STAGE) words=$(_preregctl_tasks | sed '/^apparatus\//d; s|.*/||' | sort -u) ;;
    NAME) words=$(preregctl init --list 2>/dev/null | sed 's/ .*//') ;;
    HOST) mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -A hostname -- "$2") ;;
    N | TIME | TEXT) ;;
    FORMAT) words='hf-eval-results every-eval-ever neurips-checklist osf croissant ro-crate mlflow tensorboard' ;;
    ROLE) words='scientific statistical adversarial' ;;
    FOLDER | STATE | RECEIPT) files=yes ;;
    FILE | GLOB)
        files=yes
        mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$2")
        return 0
        ;;
    *.TOML | *.JSON | *.tar)
        files=yes
        mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -X "!*.${ending,,}" -- "$2")
        ;;
    *) return 1 ;;
    esac
    if [ -n "$files" ]; then
        mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -d -- "$2")
    fi
    mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -W "$words" -- "$2")
}

# Options and arguments are read off `preregctl help COMMAND`: no list of them stands here that could be older.
_preregctl() {
    local cur=${COMP_WORDS[COMP_CWORD]} help value='' kinds='' files='' i place=0 kind
    local -a arguments
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        _preregctl_offer COMMAND "$cur"
        return
    fi
    help=$(preregctl help "${COMP_WORDS[1]}" 2>/dev/null) || return
    for ((i = 2; i < COMP_CWORD; i++)); do
        value=
        if [[ ${COMP_WORDS[i]} =~ ^--?[a-z-]+$ ]]; then
            value=$(sed -n "s/^  .*${COMP_WORDS[i]},\{0,1\} \(--[a-z-]* \)\{0,1\}\([A-Z][A-Z]*\) .*/\2/p" <<<"$help")
            [ -z "$value" ] || i=$((i + 1))
        else
            place=$((place + 1))
        fi
    done
    if [ "$i" -gt "$COMP_CWORD" ]; then
        kinds=$value
    elif [[ $cur == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(sed -n 's/^  \(-., \|    \)\(--[a-z-]*\) .*/\2/p' <<<"$help")" -- "$cur")
        return
    else
        read -r -a arguments < <(sed -n '1s/^usage: preregctl [a-z]* \(.*\)\[OPTION….*/\1/p' <<<"$help" | tr -d '[]')
        if [ "$place" -ge "${#arguments[@]}" ] && [[ ${arguments[*]} == *… ]]; then
            place=$((${#arguments[@]} - 1))
        fi
        kinds=${arguments[place]-}
    fi
    for kind in ${kinds//|/ }; do
        _preregctl_offer "${kind%…}" "$cur"
    done
    [ -z "$files" ] || compopt -o filenames
}
# "=" and "," are part of a task's name.
COMP_WORDBREAKS=${COMP_WORDBREAKS//=/}
complete -F _preregctl preregctl

# Of the usage that $1 prints: its first words, or the options that follow the first word $2.
_prereg_words() {
    "$1" --help 2>/dev/null | awk -v name="${1##*/}" -v first="${2-}" '
        /^$/ { exit }
        { sub(/^usage: /, ""); start = $1 == name; sub(/^ +/, ""); sub(/  .*/, ""); gsub(/[][|]/, " ") }
        start { on = $2 == first; if (first == "") { print $2; if ($2 == "--version") print $3 } }
        on { for (i = start ? 3 : 1; i <= NF; i++) if ($i ~ /^--?[a-z]/) print $i }'
}

# preregd and the workers.
_prereg_worker() {
    local cur=${COMP_WORDS[COMP_CWORD]} name=${COMP_WORDS[0]} first='' words=''
    [ "$COMP_CWORD" -eq 1 ] || first=${COMP_WORDS[1]}
    COMPREPLY=()
    case "${name##*/}:$first" in
    prereg-python:*) words='--module --help' ;;
    prereg-lm-eval:*) words='--prereg-train --describe --help' ;;
    prereg-eval:tasks | prereg-eval:show | prereg-eval:--plan)
        words=$(_prereg_words "$name" "$first")
        if [ "$COMP_CWORD" -eq 2 ] && [[ $cur != -* ]]; then
            words=$("$name" tasks 2>/dev/null | sed -n 's/^\([a-z][a-z0-9_]*\) .*/\1/p')
        fi
        ;;
    *) words=$(_prereg_words "$name" "$first") ;;
    esac
    if [ -z "$first" ] || [[ $cur == -* ]] || [[ $words != *--* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
    fi
    if [ "${#COMPREPLY[@]}" -eq 0 ] && [[ $cur != -* ]]; then
        if [ "${name##*/}" = preregd ]; then
            mapfile -t COMPREPLY < <(compgen -f -X '!*.toml' -- "$cur")
        else
            mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        fi
        compopt -o filenames
    fi
}
complete -F _prereg_worker preregd prereg-train prereg-eval prereg-data prereg-python prereg-lm-eval
