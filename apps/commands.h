// One function a command, each in the file of its name; commands.cpp lists them. They return an ExitCode (cli.h) or
// throw.
#pragma once
#include "apps/cli.h"
#include "apps/config.h"

namespace tapedeck {

int run_train(const Config& config);            // train.cpp
int run_compare(const Config& config);          // compare.cpp
int run_profile(const Config& config);          // profile.cpp
int run_evaluate(const Config& config);         // evaluate.cpp
int run_generate(const Config& config);         // generate.cpp
int run_inspect(const Config& config);          // inspect.cpp
int run_export(const Config& config);           // export.cpp
int run_gradcheck(const Config& config);        // gradcheck.cpp
int run_graph(const Config& config);            // graph.cpp
int run_info(const Config& config);             // info.cpp
int run_data_list(const Config& config);        // data_list.cpp
int run_data_info(const Config& config);        // data_info.cpp
int run_data_convert(const Config& config);     // data_convert.cpp
int run_data_fetch(const Config& config);       // data_fetch.cpp
int run_bench_step(const Config& config);       // bench_step.cpp
int run_bench_loader(const Config& config);     // bench_loader.cpp
int run_bench_launch(const Config& config);     // bench_launch.cpp
int run_bench_precision(const Config& config);  // bench_precision.cpp
int run_bench_batch(const Config& config);      // bench_batch.cpp
int run_bench_attention(const Config& config);  // bench_attention.cpp
int run_bench_recompute(const Config& config);  // bench_recompute.cpp
int run_bench_matmul(const Config& config);     // bench_matmul.cpp
int run_bench_fusion(const Config& config);     // bench_fusion.cpp
int run_bench_threads(const Config& config);    // bench_threads.cpp
int run_bench_transfer(const Config& config);   // bench_transfer.cpp
int run_bench_peaks(const Config& config);      // bench_peaks.cpp
int run_bench_all(const Config& config);        // bench_all.cpp
int run_bench_diff(const Config& config);       // bench_diff.cpp
int run_fit(const Config& config);              // fit.cpp
int run_sweep(const Config& config);            // sweep/sweep.cpp
int run_report_command(const Config& config);   // report.cpp

std::span<const Command> all_commands();  // in the order of the help page

}  // namespace tapedeck
