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

_preregd() {
    local cur=${COMP_WORDS[COMP_CWORD]}
    if [ "$COMP_CWORD" -eq 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W "serve submit --version --help" -- "$cur")
    elif [[ $cur == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "--wait --json --run --adopt-work --no-slurm-check --slurm-wait" -- "$cur")
    else
        mapfile -t COMPREPLY < <(compgen -f -X '!*.toml' -- "$cur")
        compopt -o filenames
    fi
}
complete -F _preregd preregd

_prereg_train() {
    local cur=${COMP_WORDS[COMP_CWORD]} words=""
    if [ "$COMP_CWORD" -eq 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W "--init --describe --count --bench export generate loss --version --help" -- "$cur")
        return
    fi
    if [[ $cur == -* ]]; then
        case "${COMP_WORDS[1]}" in
        --bench) words="--batch --context --threads --steps --json" ;;
        export) words="--hf --tokenizer --no-tokenizer --force" ;;
        generate) words="--prompt --tokens --tokenizer --ids" ;;
        loss) words="--text --context --tokenizer" ;;
        esac
        mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
        return
    fi
    mapfile -t COMPREPLY < <(compgen -f -- "$cur")
    compopt -o filenames
}
complete -F _prereg_train prereg-train

_prereg_eval() {
    local cur=${COMP_WORDS[COMP_CWORD]} words=""
    if [ "$COMP_CWORD" -eq 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W "--describe --plan tasks show export-harness --version --help" -- "$cur")
        return
    fi
    case "${COMP_WORDS[1]}" in
    tasks) words="--check" ;;
    --plan) words="--data --model --more-data --fewshot-data --tokenizer --second-key --set" ;;
    export-harness) words="-o" ;;
    show)
        words="--data --task-file --item --count --group --groups --tokenizer --model --shots --split"
        words+=" --fewshot-data --fewshot-split --more-data --context --harness --description-newlines --json"
        ;;
    esac
    if [[ $cur == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
        return
    fi
    if [ "$COMP_CWORD" -eq 2 ] && [[ ${COMP_WORDS[1]} =~ ^(tasks|show|--plan)$ ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(prereg-eval tasks 2>/dev/null | sed -n 's/^\([a-z][a-z0-9_]*\) .*/\1/p')" -- "$cur")
        return
    fi
    mapfile -t COMPREPLY < <(compgen -f -- "$cur")
    compopt -o filenames
}
complete -F _prereg_eval prereg-eval

_prereg_data() {
    local cur=${COMP_WORDS[COMP_CWORD]} words=""
    if [ "$COMP_CWORD" -eq 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W "tokenizer pack inspect sample demo --help" -- "$cur")
        return
    fi
    if [[ $cur == -* ]]; then
        case "${COMP_WORDS[1]}" in
        tokenizer) words="--vocab --out --min-count" ;;
        pack) words="--out --tokenizer" ;;
        inspect) words="--tokenizer" ;;
        sample) words="--tokenizer --seed --from --n --length --holdout --as" ;;
        demo) words="--seed --out --bytes" ;;
        esac
        mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
        return
    fi
    mapfile -t COMPREPLY < <(compgen -f -- "$cur")
    compopt -o filenames
}
complete -F _prereg_data prereg-data

_prereg_python() {
    local cur=${COMP_WORDS[COMP_CWORD]}
    if [[ $cur == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "--module --help" -- "$cur")
        return
    fi
    mapfile -t COMPREPLY < <(compgen -f -- "$cur")
    compopt -o filenames
}
complete -F _prereg_python prereg-python

_prereg_lm_eval() {
    local cur=${COMP_WORDS[COMP_CWORD]}
    if [[ $cur == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "--prereg-train --describe --help" -- "$cur")
        return
    fi
    mapfile -t COMPREPLY < <(compgen -f -- "$cur")
    compopt -o filenames
}
complete -F _prereg_lm_eval prereg-lm-eval
