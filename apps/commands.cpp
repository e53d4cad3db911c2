// The list of commands.
#include "apps/commands.h"

namespace tapedeck {

std::span<const Command> all_commands() {
  static constexpr Command kCommands[] = {
      {"train", "train a model and report the time to the target",
       "tapedeck train --data mnist --data-dir mnist --hidden 512,512 --target accuracy=0.97", run_train},
      {"compare", "two configurations over the same seeds: errors, decisions, step time, result",
       "tapedeck compare precision --data mnist --data-dir mnist --epochs 3 --seeds 5", run_compare},
      {"profile", "where the time of a training step goes: by op and by part of the model, against the roofs",
       "tapedeck profile --data mnist --data-dir mnist --batch 128 --trace trace.json", run_profile},
      {"evaluate", "score a saved model: accuracy, loss, confusion matrix",
       "tapedeck evaluate runs/mlp-digits-001 --split test", run_evaluate},
      {"generate", "let a trained gpt write, or answer a question of its task",
       "tapedeck generate runs/gpt-input-001 --prompt ROMEO: --length 300", run_generate},
      {"inspect", "draw what each attention head looks at",
       "tapedeck inspect runs/gpt-induction-001 --prompt abcabc --svg heads.svg", run_inspect},
      {"export", "write the weights of a run in another format",
       "tapedeck export runs/mlp-digits-001 --format npz --to weights.npz", run_export},
      {"gradcheck", "compare every gradient with finite differences", "tapedeck gradcheck --activation gelu",
       run_gradcheck},
      {"graph", "show the tape of one step: shapes and bytes saved", "tapedeck graph --dot | dot -Tsvg > graph.svg",
       run_graph},
      {"bench step", "time the training step by batch size", "tapedeck bench step --batches 32,128 --threads 2",
       run_bench_step},
      {"bench batch", "time what an example costs by batch size, and fit a + c·B", "tapedeck bench batch --threads 1",
       run_bench_batch},
      {"bench loader", "time a step that loads its batches, by format and number of workers", "tapedeck bench loader",
       run_bench_loader},
      {"bench launch", "time what it costs to ask a device for kernels, one by one and as a graph",
       "tapedeck bench launch --device emulated", run_bench_launch},
      {"bench attention", "time fused attention against the composed form, and the memory of both",
       "tapedeck bench attention --heads 6 --width 384", run_bench_attention},
      {"bench precision", "time the training step in 32 and 16 bits, and what each saves and errs",
       "tapedeck bench precision --batches 512,2048", run_bench_precision},
      {"bench recompute", "time a gpt's step by what it computes again in backward, and the memory of it",
       "tapedeck bench recompute --layers 12 --width 128", run_bench_recompute},
      {"bench matmul", "time a matrix product by size, device and precision, and check its answers",
       "tapedeck bench matmul --sizes 64,512,4096", run_bench_matmul},
      {"bench fusion", "time ops in one pass over memory against the same in several", "tapedeck bench fusion",
       run_bench_fusion},
      {"bench threads", "time the training step with 1, 2, … n threads", "tapedeck bench threads --batches 128,2048",
       run_bench_threads},
      {"bench transfer", "time bytes on their way between host and device, alone and beside work",
       "tapedeck bench transfer --device cuda", run_bench_transfer},
      {"bench peaks", "measure the best rates of products and of memory", "tapedeck bench peaks", run_bench_peaks},
      {"bench all", "every bench with small settings, as one document", "tapedeck bench all --save before.json",
       run_bench_all},
      {"bench diff", "compare two saved documents row by row", "tapedeck bench diff before.json after.json",
       run_bench_diff},
      {"data list", "name the data sets", "tapedeck data list", run_data_list},
      {"data info", "describe a data set, its splits and its order", "tapedeck data info digits --order 0",
       run_data_info},
      {"data convert", "turn a data set into a shard, which trains without being loaded",
       "tapedeck data convert csv:iris.csv --label species --to iris.shard", run_data_convert},
      {"data fetch", "download a data set", "tapedeck data fetch mnist --data-dir mnist", run_data_fetch},
      {"info", "show the processor, threads, libraries and measured peaks", "tapedeck info --json", run_info},
  };
  return kCommands;
}

}  // namespace tapedeck
