# The command, its man pages and its completions, installed: a part of run.sh.
share=$out/command/usr/share
none() { ! grep .; }
# What is said if no command was built, or one without its pages, and that the library is there all the same.
without() {
    for built in CLI=cli/target/none 'CLI=/bin/sh PAGES=none'; do
        rm -rf "$out/without"
        run_make install "DESTDIR=$out/without" PREFIX=/usr $built > "$out/said" &&
            grep -F 'run `make cli` first' "$out/said" && [ -e "$out/without/usr/lib/libtatcell.so" ] &&
            [ ! -e "$out/without/usr/bin" ] || return 1
    done
}
command_files() {
    cat > "$out/wanted" << END
bin/tatcell
share/bash-completion/completions/tatcell
share/fish/vendor_completions.d/tatcell.fish
share/man/man1/tatcell.1
share/zsh/site-functions/_tatcell
END
    (cd "$out/command/usr" && find bin share ! -type d ! -path '*/doc/*' ! -name 'tatcell-*.1' | LC_ALL=C sort) |
        diff "$out/wanted" -
}
# Each subcommand that the program knows has a page of its own, and its page names it.
pages() {
    "$out/command/usr/bin/tatcell" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z][a-z]*\) .*/\1/p' | grep -vx help > "$out/names"
    [ "$(wc -l < "$out/names")" -ge 4 ] || return 1
    while read -r name; do
        grep -q "^tatcell.-$name" "$share/man/man1/tatcell-$name.1" || { echo "no page of $name"; return 1; }
    done < "$out/names"
}
# clap_mangen breaks a line next to some empty ones, which changes nothing.
lint() {
    mandoc -T lint -W warning "$share"/man/man1/*.1 > "$out/said"
    grep -v 'skipping paragraph macro: br ' "$out/said" | none
}
shown() { MANPAGER=cat man -l "$share/man/man1/tatcell-plan.1" | grep -F -e '-keys' && dated; }
dated() { grep -E '^\.TH tatcell-plan 1 20[0-9]{2}-[0-9]{2}-[0-9]{2} "tatcell [^"]+" tatcell$' "$share/man/man1/tatcell-plan.1"; }
# Each shell completes a word: subcommands after the name, and the values of an option.
in_bash() {
    bash -c ". '$share/bash-completion/completions/tatcell' || exit 1
        complete -p tatcell || exit 1
        COMP_WORDS=(tatcell pl) COMP_CWORD=1; _tatcell tatcell pl tatcell
        [ \"\${COMPREPLY[*]}\" = plan ] || exit 1
        COMP_WORDS=(tatcell plan --emit ha) COMP_CWORD=3; _tatcell tatcell ha --emit
        [ \"\${COMPREPLY[*]}\" = haproxy ]"
}
in_fish() {
    fish --no-config -c "source $share/fish/vendor_completions.d/tatcell.fish; complete -C 'tatcell pl'" |
        grep '^plan'
}
in_zsh() {
    zsh -f -c "fpath=('$share/zsh/site-functions' \$fpath); autoload -U compinit; compinit -u -d '$out/zcompdump'
        [ \"\${_comps[tatcell]}\" = _tatcell ] && autoload +X _tatcell && whence -f _tatcell | grep -F 'plan:'"
}

# `make install` takes the command from where `make cli` puts it, both without any setting.
place() { built=$(run_make -n -C cli build | sed -n 's/^echo //p') && run_make -n install | grep -F "'cli/$built'"; }

check 'make install says how to get the command' without
check 'make install takes the command from where make cli puts it' place
# Built as for the tests of the command, which takes no minutes: what is asked here, a release does as well.
check 'make cli' run_make cli PROFILE=test
check 'make install, with the command' run_make install "DESTDIR=$out/command" PREFIX=/usr CLI=cli/target/debug/tatcell
check 'the command, pages and completions are where they are looked for' command_files
check 'all may read what belongs to the command' modes "$out/command"
check 'each subcommand has a man page' pages
if have mandoc; then check 'mandoc finds nothing in the man pages' lint
else skip 'mandoc finds nothing in the man pages' 'no mandoc: apt-get install mandoc'; fi
if have man; then check 'man shows a page' shown; else skip 'man shows a page' 'no man: apt-get install man-db'; fi
check 'bash completes' in_bash
for shell in zsh fish; do
    if have "$shell"; then check "$shell completes" "in_$shell"
    else skip "$shell completes" "no $shell: apt-get install $shell"; fi
done
check 'make uninstall takes the command away' gone "$out/command"
