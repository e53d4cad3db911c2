#!/usr/bin/env bash
# Makes a page of each kind from real runs of a moment and looks at them in headless Chromium (check.py).
#   tests/pages/check.sh PROGRAM FOLDER      leaves pages and pictures in FOLDER/pages
set -euo pipefail
program=$(realpath "$1") here=$(realpath "$(dirname "$0")")
mkdir -p "$2" && cd "$2" && rm -rf runs pages && mkdir pages
quietly() { # the exit code tells of missed targets and divergence, which are wanted here
  "$program" "$@" --quiet >log.txt 2>&1 || [[ $? == 3 || $? == 5 ]] || { cat log.txt; exit 1; }
}
quietly train --out runs/one
quietly train --out runs/repeat --repeat 7
quietly train --out runs/missed --repeat 2 --epochs 2 --target accuracy=0.97
quietly train --out runs/diverged --optimizer sgd --lr 30 --activation gelu --epochs 3 --log-every 1
quietly train --out runs/copy --data task:copy --steps 60 --eval-every 10 --layers 1 --width 32
quietly train --out runs/blobs --data blobs --optimizer sgd --lr 0.1 --epochs 5 --note '<b>"a" & b</b>'
quietly compare --a "--lr 1e-3" --b "--lr 3e-3" --epochs 2 --seeds 3 --save compare.json
quietly profile --data task:copy --layers 1 --window active=3 --save profile.json
quietly bench step --batches 8,32,128 --rounds 2 --save bench.json
page() { "$program" report "${@:2}" --out "pages/$1.html" >/dev/null; }
for run in one repeat diverged copy blobs missed; do page "$run" "runs/$run"; done
page overlay runs/one runs/diverged runs/blobs
page repeats runs/repeat runs/missed
page list runs
for document in compare profile bench; do page "$document" "$document.json"; done
quietly sweep --out sweep --batches 16,32,64,128,256 --seeds 2 --rates 0.003,0.01,0.3 --steps 300 --targets loss=0.6,loss=0.3
page sweep sweep
quietly sweep --out momentum --optimizer momentum --batches 16,32,64,128 --seeds 2 --rates 0.01,0.03,0.1 --steps 300 --targets loss=0.6,loss=0.3
page sweeps sweep momentum
quietly sweep --out horizon --data blobs --hidden 8 --horizon --batches 16,64,256 --seeds 3 --rates 0.003,0.01 --targets loss=0.5,loss=0.3
page horizon horizon
page list_of_sweeps .
printf 'batch,steps,seconds\n8,905,1\n8,890,1\n16,500,0.6\n32,300,0.5\n64,205,0.4\n128,149,0.5\n256,126,0.7\n' > fit.csv
"$program" fit fit.csv --out pages/fit.html >/dev/null
"$here/check.py" --pictures pages pages/*.html
