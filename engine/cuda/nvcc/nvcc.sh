#!/bin/sh
# Runs an nvcc command, and keeps what its assembler says of registers, stack and spills beside the object file, as
# OBJECT.resources, for `make cuda-kernels`. Everything else goes to stderr as usual.
object=
for word; do
  test "$last" = -o && object=$word
  last=$word
done
"$@" 2> "$object.messages"
status=$?
lines='^ptxas info|bytes stack frame|^$'
grep -E "$lines" "$object.messages" > "$object.resources"
grep -vE "$lines" "$object.messages" >&2
rm -f "$object.messages"
exit $status
