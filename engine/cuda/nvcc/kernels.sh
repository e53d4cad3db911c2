#!/bin/sh
# kernels.sh BUILD: registers, shared memory, stack and spills of every kernel of the program, a line each, from what
# nvcc.sh kept. A kernel that spills registers, or keeps an array on its stack, is slow in a way that nobody sees; it fails here unless
# spills.txt names it with a reason. So does a name there that no longer spills.
here=$(dirname "$0")
table=$(mktemp)
trap 'rm -f "$table"' EXIT
find "$1" -name '*.resources' -not -path '*/tapedeck_tests.dir/*' -exec cat {} + | c++filt | awk '
  /Compiling entry function/ {
    name = $0
    sub(/.*Compiling entry function .(void )?/, "", name)
    arch = name
    sub(/.* for ./, "", arch); sub(/.$/, "", arch)
    sub(/. for .sm_.*/, "", name)
    sub(/ *>\(.*/, "", name)
    sub(/^.*run_on_gpu</, "", name)
    if (sub(/^[a-z:]*::(Each|Rows)Kernel</, "", name)) sub(/ *>$/, "", name)
    gsub(/tapedeck::|\(anonymous namespace\)::|detail::/, "", name)
    while (gsub(/> >/, ">>", name)) {}
  }
  /bytes stack frame/ { stack = $1; spilled = $5 + $9 }
  /Used [0-9]+ registers/ {
    shared = 0
    if (match($0, /[0-9]+ bytes smem/)) shared = substr($0, RSTART, RLENGTH) + 0
    match($0, /Used [0-9]+/)
    print arch, substr($0, RSTART + 5, RLENGTH - 5), shared, stack, spilled, name
  }' | sort -u -k6 -k1,1 > "$table"
test -s "$table" || { echo "$1 holds no kernels: build it with TAPEDECK_CUDA=on"; exit 1; }

awk 'BEGIN { print "arch   registers  shared  stack  spilled  kernel" }
  { name = $0; for (i = 0; i < 5; ++i) sub(/^[^ ]* /, "", name)
    printf "%-6s %9d %7d %6d %8d  %s\n", $1, $2, $3, $4, $5, name }' "$table"
awk -v list="$here/spills.txt" '
  BEGIN { while ((getline line < list) > 0) if (line !~ /^(#|$)/) { sub(/: .*/, "", line); reasoned[line] = 1 } }
  { name = $0; for (i = 0; i < 5; ++i) sub(/^[^ ]* /, "", name); ++kernels
    if ($4 + $5 > 0 && !(name in reasoned)) { print "keeps registers or arrays in memory on " $1 ": " name; bad = 1 }
    if ($4 + $5 > 0) seen[name] = 1 }
  END { for (name in reasoned) if (!(name in seen)) { print "spills.txt names what does not spill: " name; bad = 1 }
    print kernels " kernels" (bad ? "" : ", none of which spills without a reason"); exit bad }' "$table"
