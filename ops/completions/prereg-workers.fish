# Completion of the daemon and the workers for fish, which reads it by the name of each. Words are read from the usage that each prints.

# Of that usage the first words, or the options that follow the first word $argv[2].
function __prereg_words
    set -l name (string replace -r -- '.*/' '' $argv[1])
    $argv[1] --help 2>/dev/null | awk -v name=$name -v first="$argv[2]" '
        /^$/ { exit }
        { sub(/^usage: /, ""); start = $1 == name; sub(/^ +/, ""); sub(/  .*/, ""); gsub(/[][|]/, " ") }
        start { on = $2 == first; if (first == "") { print $2; if ($2 == "--version") print $3 } }
        on { for (i = start ? 3 : 1; i <= NF; i++) if ($i ~ /^--?[a-z]/) print $i }'
end

function __prereg_worker
    set -l words (commandline -opc)
    set -l cur (commandline -ct)
    set -l name (string replace -r -- '.*/' '' $words[1])
    set -l found
    switch "$name:$words[2]"
        case 'prereg-python:*'
            set found --module --help
        case 'prereg-lm-eval:*'
            set found --prereg-train --describe --help
        case '*'
            set found (__prereg_words $words[1] "$words[2]")
    end
    if test (count $words) -eq 1; or string match -q -- '-*' $cur
        printf '%s\n' $found | sort -u | string match -r -- '.+'
    end
    if test (count $words) -eq 2; and string match -qr -- '^prereg-eval:(tasks|show|--plan)$' "$name:$words[2]"
        prereg-eval tasks 2>/dev/null | string replace -rf -- '^([a-z][a-z0-9_]*) .*' '$1'
    end
    if string match -q -- '-*' $cur
        return
    else if test "$name" != preregd
        __fish_complete_path $cur
    else if test (count $words) -gt 1
        __fish_complete_path $cur | string match -r -- '.*(?:/|\.toml)(?:\t.*)?$'
    end
end

for name in preregd prereg-train prereg-eval prereg-data prereg-python prereg-lm-eval
    complete -c $name -f -a '(__prereg_worker)'
end
