# Completion of preregctl for fish. Commands, options and arguments are read from `preregctl help`, so no list of them here can be outdated.

function __preregctl_commands
    preregctl help 2>/dev/null | string replace -rf -- '^  ([a-z]+) .{0,28}\S* {2,}(.*)$' '$1\t$2'
end

function __preregctl_tasks
    preregctl cells 2>/dev/null | tail -n +2 | string replace -rf -- '^(\S*/\S*) .*' '$1'
end

# Prints what may be in the place of the help's word $argv[1]; fails for an unknown word.
function __preregctl_offer
    set -l cur (commandline -ct)
    switch $argv[1]
        case COMMAND
            __preregctl_commands
        case PROGRAM
            preregctl status --json 2>/dev/null | string replace -rf -- '^ *"id": "(.*)",$' '$1'
        case TASK
            __preregctl_tasks
        case CELL
            __preregctl_tasks | string match -rv '^apparatus/' | string replace -r -- '/[^/]*$' '' | sort -u
        case STAGE
            __preregctl_tasks | string match -rv '^apparatus/' | string replace -r -- '.*/' '' | sort -u
        case NAME
            preregctl init --list 2>/dev/null | string replace -r -- ' .*' ''
        case FORMAT
            printf '%s\n' hf-eval-results every-eval-ever neurips-checklist osf croissant ro-crate mlflow tensorboard
        case ROLE
            printf '%s\n' scientific statistical adversarial
        case HOST
            __fish_print_hostnames
        case N TIME TEXT
        case FOLDER STATE RECEIPT
            __fish_complete_directories $cur ''
        case FILE GLOB
            __fish_complete_path $cur
        case '*.TOML' '*.JSON' '*.tar'
            __fish_complete_path $cur | string match -r -- '.*(?:/|\.'(string lower (string replace -r -- '.*\.' '' $argv[1]))')(?:\t.*)?$'
        case '*'
            return 1
    end
end

function __preregctl_arguments
    set -l words (commandline -opc)
    set -l cur (commandline -ct)
    set -l help (preregctl help $words[2] 2>/dev/null)
    or return
    set -l place 1
    set -l value
    for word in $words[3..-1]
        if test -n "$value"
            set value
        else if string match -q -- '-*' $word
            set value (string replace -rf -- "^  .*$word,? (?:--[a-z-]* )?([A-Z]+) .*" '$1' $help)
        else
            set place (math $place + 1)
        end
    end
    if test -n "$value"
        __preregctl_offer $value
        return
    end
    if string match -q -- '-*' $cur
        string replace -rf -- '^  (?:-., |    )(--[a-z-]+) (?:[A-Z]+ )? *(.*)$' '$1\t$2' $help
        return
    end
    set -l arguments (string replace -rf -- '^usage: preregctl [a-z]+ (.*)\[OPTION….*' '$1' $help[1] | string replace -ra -- '[][]' '' | string split -n ' ')
    set -q arguments[1]
    or return
    if test $place -gt (count $arguments); and string match -q '*…' $arguments[-1]
        set place (count $arguments)
    end
    set -q arguments[$place]
    or return
    for kind in (string split '|' $arguments[$place])
        __preregctl_offer (string trim -r -c … $kind)
    end
end

complete -c preregctl -f
complete -c preregctl -n 'test (count (commandline -opc)) -eq 1' -a '(__preregctl_commands)'
complete -c preregctl -n 'test (count (commandline -opc)) -gt 1' -a '(__preregctl_arguments)'
