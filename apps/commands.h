// One function a command, each in the file of its name; main.cpp lists them. They return an ExitCode (cli.h) or throw.
#pragma once
#include "apps/config.h"

namespace tapedeck {

int run_train(const Config& config);       // train.cpp
int run_evaluate(const Config& config);    // evaluate.cpp
int run_gradcheck(const Config& config);   // gradcheck.cpp
int run_graph(const Config& config);       // graph.cpp
int run_info(const Config& config);        // info.cpp
int run_data_list(const Config& config);   // data.cpp
int run_data_info(const Config& config);   // data.cpp
int run_bench_step(const Config& config);  // bench.cpp

}  // namespace tapedeck
