# Completion of preregd for fish.
function __preregd_programs
    __fish_complete_path (commandline -ct) | string match -r -- '.*(?:/|\.toml)(?:\t.*)?$'
end

complete -c preregd -f
complete -c preregd -n 'test (count (commandline -opc)) -eq 1' -a 'serve submit --version --help'
complete -c preregd -n '__fish_seen_subcommand_from serve' -a '--foreground --http --database --take-over'
complete -c preregd -n '__fish_seen_subcommand_from submit' -a '--wait --json --run --adopt-work --no-slurm-check --slurm-wait'
complete -c preregd -n '__fish_seen_subcommand_from submit' -a '(__preregd_programs)'
