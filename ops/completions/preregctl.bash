# Completion of preregctl and preregd for bash: source it, or put it into /usr/share/bash-completion/completions/preregctl.

_preregctl_programs() {
    preregctl status --json 2>/dev/null | sed -n 's/^ *"id": "\(.*\)",$/\1/p'
}

_preregctl_tasks() {
    preregctl cells 2>/dev/null | sed -n '2,$s/^\([^ ]*\/[^ ]*\) .*/\1/p'
}

_preregctl() {
    local cur=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]-} words=
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        words="init check lock amend diff status cells explain logs retry cancel pause resume unblind verdict report rebuild replay import export verify sign rerun calibration stop
            help version"
    else
        case "$command:$cur" in
        init:*)
            if [ "${COMP_WORDS[COMP_CWORD - 1]}" = --template ]; then
                words=$(preregctl init --list 2>/dev/null | sed 's/ .*//')
            elif [[ $cur == -* ]]; then
                words="--template --list --help"
            else
                mapfile -t COMPREPLY < <(compgen -d -- "$cur")
                compopt -o filenames
                return
            fi
            ;;
        check:-*) words="--json --no-run --explain --help" ;;
        lock:-*) words="--json --key --timestamp --replace --verify --allowed-signers --ca --help" ;;
        replay:-*) words="--json --out --replace --state --help" ;;
        export:-*) words="--json --out --state --help" ;;
        verify:-*) words="--json --allowed-signers --ca --state --help" ;;
        rerun:-*) words="--json --program --stage --out --keep --state --help" ;;
        sign:-*) words="--json --key --state --help" ;;
        import:-*) words="--json --out --pattern --samples --records --label --replace --state --help" ;;
        status:-*) words="--json --watch --interval --all --state --help" ;;
        logs:-*) words="--json --follow --lines --attempt --program --state --help" ;;
        explain:-* | retry:-*) words="--json --program --state --help" ;;
        cancel:-*) words="--json --program --all --state --help" ;;
        amend:-*) words="--json --reason --program --key --no-run --dry-run --state --help" ;;
        diff:-*) words="--json --program --state --help" ;;
        unblind:-*) words="--json --reason --state --help" ;;
        stop:-*) words="--json --kill --state --help" ;;
        *:-*) words="--json --state --help" ;;
        check:* | lock:* | replay:* | import:*)
            mapfile -t COMPREPLY < <(compgen -f -X '!*.@(toml|json)' -- "$cur")
            compopt -o filenames
            return
            ;;
        amend:* | diff:*)
            mapfile -t COMPREPLY < <(
                compgen -f -X '!*.toml' -- "$cur"
                compgen -d -- "$cur"
                [ "$command" = amend ] || compgen -W "$(_preregctl_programs)" -- "$cur"
            )
            compopt -o filenames
            return
            ;;
        status:* | cells:* | pause:* | resume:* | unblind:* | verdict:* | report:*) words=$(_preregctl_programs) ;;
        rerun:*) words=$(_preregctl_tasks | sed '/^apparatus\//d; s|/[^/]*$||' | sort -u) ;;
        explain:* | logs:* | retry:* | cancel:*) words=$(_preregctl_tasks) ;;
        help:*) words="init check lock amend diff status cells explain logs retry cancel pause resume unblind verdict report rebuild replay import export verify sign rerun calibration stop" ;;
        esac
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}
# "=" and "," are part of a task's name.
COMP_WORDBREAKS=${COMP_WORDBREAKS//=/}
complete -F _preregctl preregctl

_preregd() {
    local cur=${COMP_WORDS[COMP_CWORD]}
    if [ "$COMP_CWORD" -eq 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W "serve submit --version --help" -- "$cur")
    elif [[ $cur == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "--wait --help" -- "$cur")
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
