#!/bin/sh
# Searches for an input that breaks a target: fuzz/search.sh TARGET SECONDS [keep]
#
# libFuzzer needs code with counters, which any rustc makes, and its own runtime. clang brings that (Debian: clang and
# libclang-rt-dev); otherwise the crate libfuzzer-sys builds it from C++. RUSTC_BOOTSTRAP=1 lets a stable rustc accept
# the flag of the address sanitizer. A corpus is one file of hexadecimal lines; the fuzzer gets it as a folder. With
# `keep`, the fewest inputs that reach the same code become the corpus, at most 12 000 bytes of them.
set -eu
cd "$(dirname "$0")"
target=$1 seconds=$2 keep=${3-}
packed=$PWD/corpus/$target.hex
if [ ! -f "$packed" ]; then
    echo "TARGET names one of: $(cd corpus && ls | sed 's/\.hex$//' | tr '\n' ' ')" >&2
    exit 2
fi
out=$PWD/../target/fuzz
host=$(rustc -vV | sed -n 's/^host: //p')

flags='-Zsanitizer=address -Cdebug-assertions -Coverflow-checks -Cforce-frame-pointers --cfg=fuzzing'
flags="$flags -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4"
flags="$flags -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table"
flags="$flags -Cllvm-args=-sanitizer-coverage-trace-compares"
for clang in clang clang-19 clang-14; do
    command -v $clang > /dev/null || continue
    runtime=$($clang --print-file-name="libclang_rt.fuzzer-${host%%-*}.a")
    case $runtime in /*) export CUSTOM_LIBFUZZER_PATH="$runtime"; break ;; esac
done
RUSTC_BOOTSTRAP=1 RUSTFLAGS=$flags CARGO_TARGET_DIR=$out ${CARGO:-cargo} build --quiet --release --target "$host" \
    --config profile.release.lto=false --package tatcell-fuzz --features libfuzzer
fuzzer=$out/$host/release/fuzz
export TATCELL_TARGET="$target"

corpus=$out/corpus-$target
mkdir -p "$corpus"
cd "$corpus"
perl -ne 'chomp; open my $f, ">", "kept-$." or die $!; print $f pack "H*", $_' "$packed"
"$fuzzer" -artifact_prefix="$corpus/" -max_len=256 -max_total_time="$seconds" -timeout=10 -print_final_stats=1 -detect_leaks=0 . ||
    { echo "$target fails; the input is in $corpus" >&2; exit 1; }
[ -n "$keep" ] || exit 0

least=$out/least-$target
rm -rf "$least"
mkdir "$least"
"$fuzzer" -artifact_prefix="$corpus/" -max_len=256 -set_cover_merge=1 -verbosity=0 "$least" .
# The shortest first. If they are too many bytes: every second, every third and so on, the longest included.
perl -e '
    local $/;
    my @all = sort { length $b <=> length $a || $b cmp $a } map { open my $f, "<", $_ or die $!; <$f> // "" } @ARGV;
    my ($step, @some) = 0;
    do { $step++; @some = map { $all[$_ * $step] } 0 .. $#all / $step } while length join("", @some) > 12_000;
    print unpack("H*", $_), "\n" for reverse @some;
' "$least"/* > "$packed.new"
mv "$packed.new" "$packed"
echo "$packed: $(wc -l < "$packed") inputs"
