#!/usr/bin/env bash
# Tests and times tapedeck on a machine with a GPU, CUDA's driver and its runtime libraries; nothing else is needed.
# In 6 minutes at most: the tests, compute-sanitizer on small kernels where there is one, then the benchmarks. Leaves
# gpu-check.json, and what each part printed beside it, in the folder RESULTS, and prints a short table.
# usage: check.sh [RESULTS]         BIN=folder of tapedeck and tapedeck_tests (this file's own)   DEVICE=cuda
# Exit: 0 when all passed, 1 when something failed or there is no GPU. DEVICE=emulated tries this script without one.
set -uo pipefail

bin=$(realpath "${BIN:-$(dirname "$0")}")
device=${DEVICE:-cuda}
results=${1:-gpu-check}
mkdir -p "$results" && cd "$results" || exit 1

# Where cuBLASLt may lie, newest first: the toolkit, and what Python's packages bring (nvidia-cublas, PyTorch's wheels).
python_folders=$(python3 -c 'import site; print(*site.getsitepackages(), site.getusersitepackages())' 2>/dev/null)
for folder in /usr/local/cuda/lib64 /usr/local/cuda-13*/lib64 $(printf '%s/nvidia/*/lib ' $python_folders); do
  if ls "$folder"/libcublasLt.so* >/dev/null 2>&1; then
    export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder
  fi
done
export PATH=$PATH:/usr/local/cuda/bin

if ! "$bin/tapedeck" train --device "$device" --steps 1 --quiet >first.txt 2>&1; then
  echo "check.sh: no step on $device: $(tail -n 1 first.txt)" >&2
  exit 1
fi
"$bin/tapedeck" info --device "$device" --json >info.json

failed=0
parts=()  # of the JSON document
# part NAME SECONDS COMMAND…: runs it, what it prints goes to NAME.txt; one row of the table and of the document.
part() {
  local name=$1 limit=$2 begin=$SECONDS state=passed code=0
  shift 2
  timeout --kill-after=5 "$limit" "$@" >"$name.txt" 2>&1 || code=$?
  if ((code == 124 || code == 137)); then state="stopped after $limit s"; elif ((code)); then state="failed, exit $code"; fi
  if ((code)); then failed=1; fi
  row "$name" "$state" $((SECONDS - begin)) "$(grep -aE '^\[doctest\] test cases|ERROR SUMMARY|RACECHECK SUMMARY|^kernel times come' "$name.txt" | tail -n 1)"
}
row() {  # NAME STATE SECONDS DETAIL
  parts+=("\"$1\": {\"state\": \"$2\", \"seconds\": $3, \"detail\": \"${4//[\"\\]/}\"}")
  printf '%-12s %-22s %4s s  %s\n' "$@"
}

# tests/test_tree.cpp and the list of ops read the source, which is not here.
part tests 150 "$bin/tapedeck_tests" --source-file-exclude='*test_tree.cpp' --test-case-exclude='every op of ops.h*'
small='on a GPU: kernels compute*,op softmax,op linear,op cross_entropy,op dropout'
for tool in memcheck racecheck; do
  if [ "$device" = cuda ] && command -v compute-sanitizer >/dev/null; then
    part "$tool" 40 compute-sanitizer --tool "$tool" --error-exitcode 9 "$bin/tapedeck_tests" --test-case="$small"
  else
    row "$tool" skipped 0 "no compute-sanitizer for $device here"
  fi
done
part launch 20 "$bin/tapedeck" bench launch --device "$device" --save launch.json
batches=128,8192
if [ "$device" = emulated ]; then batches=4,16; fi  # where a step of 8192 takes an hour
part step 30 "$bin/tapedeck" bench step --device "$device" --hidden 512,512 --batches $batches --save step.json
if [ "$device" = cuda ]; then
  part step_tf32 20 "$bin/tapedeck" bench step --device cuda --tf32 --hidden 512,512 --batches 128,8192 --save step_tf32.json
fi
sizes=64,256,1024,4096
if [ "$device" = emulated ]; then sizes=16,32; fi
part matmul 30 "$bin/tapedeck" bench matmul --device "$device" --sizes $sizes --rounds 3 --save matmul.json
part transfer 15 "$bin/tapedeck" bench transfer --device "$device" --rounds 3 --save transfer.json
part profile 15 "$bin/tapedeck" profile --device "$device" --batch 128 --hidden 512,512 --trace trace.json
part profile_graph 15 "$bin/tapedeck" profile --device "$device" --graph on --batch 128 --hidden 512,512 --trace replays.json

skipped=$(grep -a '^skipped: ' tests.txt | sort | uniq -c | sed 's/^ *//; s/["\\]//g; s/.*/"&"/' | paste -sd,)
{
  printf '{"format_version": 1, "date": "%s", "device": "%s", "seconds": %d,\n"skipped": [%s],\n' \
    "$(date -u +%FT%TZ)" "$device" $SECONDS "$skipped"
  for document in info launch step step_tf32 matmul transfer; do
    if [ -s $document.json ]; then printf '"%s": %s,\n' $document "$(cat $document.json)"; fi
  done
  printf '"parts": {%s}}\n' "$(printf '%s,\n' "${parts[@]}" | sed '$s/,$//')"
} >gpu-check.json
for name in launch step step_tf32 matmul transfer profile profile_graph; do if [ -e $name.txt ]; then echo; cat $name.txt; fi; done
echo
echo "$results/gpu-check.json and the output of each part; $SECONDS s"
exit $failed
