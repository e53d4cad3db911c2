// The program: the list of commands, handed to the command line.
#include "apps/cli.h"
#include "apps/commands.h"

int main(int argc, char** argv) {
  using namespace tapedeck;
  static constexpr Command kCommands[] = {
      {"train", "train a model and report the time to the target",
       "tapedeck train --data mnist --data-dir mnist --hidden 512,512 --target accuracy=0.97", run_train},
      {"evaluate", "score a saved model: accuracy, loss, confusion matrix",
       "tapedeck evaluate runs/mlp-digits-001 --split test", run_evaluate},
      {"gradcheck", "compare every gradient with finite differences", "tapedeck gradcheck --activation gelu",
       run_gradcheck},
      {"graph", "show the tape of one step: shapes and bytes saved", "tapedeck graph --dot | dot -Tsvg > graph.svg",
       run_graph},
      {"bench step", "time the training step by batch size", "tapedeck bench step --batches 32,128 --threads 2",
       run_bench_step},
      {"data list", "name the data sets", "tapedeck data list", run_data_list},
      {"data info", "describe a data set, its splits and its order", "tapedeck data info digits --order 0",
       run_data_info},
      {"info", "show the processor, threads, libraries and measured peaks", "tapedeck info --json", run_info},
  };
  return run_command_line(argc, argv, kCommands);
}
