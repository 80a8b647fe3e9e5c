# zsh -f offers.zsh FOLDER LINE OUT: writes what an interactive zsh offers at the end of LINE into OUT, one to a line, and
# last a line "end". FOLDER has the completion.
zmodload zsh/zpty
setup=$3.setup
cat >$setup <<EOF
unset zle_bracketed_paste
fpath=(${(q)1} \$fpath)
autoload -Uz compinit
compinit -D -u
compadd() {
    local -a hits
    if [[ \${@[1,(i)(-|--)]} != *-[OAD]* ]]; then
        builtin compadd -A hits "\$@"
        print -rl -- \$hits >>${(q)3}
    fi
    builtin compadd "\$@"
}
finish() { zle complete-word; print end >>${(q)3}; exit }
zle -N finish
bindkey '^I' finish
LISTMAX=10000
print READY
EOF
zpty shell zsh -f -i
zpty -w shell "source ${(q)setup}"
zpty -r shell line $'*\nREADY*' 
zpty -n -w shell $2$'\t'
repeat 300; do
    [[ -f $3 && $(tail -n 1 $3) == end ]] && break
    zpty -r -t shell line
    sleep 0.1
done
zpty -d shell
