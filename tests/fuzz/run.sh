#!/usr/bin/env bash
# Runs every fuzzer of a build folder for so many seconds. What one finds stays in BUILD/crashes, with its name printed;
# run `BUILD/fuzz_NAME FILE` to see it again.  usage: run.sh BUILD SECONDS
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$1 seconds=$2 found=0
export ASAN_OPTIONS=allocator_may_return_null=0:detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1
mkdir -p "$build/crashes"
for fuzzer in "$build"/fuzz_*; do
  name=$(basename "$fuzzer")
  corpus=$build/corpus/$name log=$build/$name.log
  mkdir -p "$corpus"
  options=(-max_total_time="$seconds" -rss_limit_mb=2048 -timeout=10 -artifact_prefix="$build/crashes/$name-")
  if test -e "$here/$name.dict"; then options+=(-dict="$here/$name.dict"); fi
  if "$fuzzer" "$corpus" "${options[@]}" > "$log" 2>&1; then
    echo "$name: $(grep -o 'Done [0-9]* runs in [0-9]* second' "$log")s, $(ls "$corpus" | wc -l) inputs kept, nothing found"
  else
    found=1
    echo "$name: FAILED; the end of $log:"
    tail -n 25 "$log"
  fi
done
exit $found
