// The whole program inside the test: a command line in, exit code and both streams out.
#pragma once
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "apps/cli.h"
#include "apps/commands.h"
#include "engine/backend.h"
#include "tests/gpu.h"
#include "tests/settings.h"

namespace tapedeck::test {

struct Outcome {
  int code;
  std::string out, err;
  Json json() const { return Json::parse(out); }  // throws where stdout is not strict JSON
};

// tapedeck train --data blobs …   Threads and memory limit are as before afterwards.
inline Outcome tapedeck(const std::vector<std::string>& words) {
  const Threads as_before(threads());
  std::vector<const char*> argv = {"tapedeck"};
  const std::vector<std::string> all_words = on_cpu(words);
  for (const std::string& word : all_words) argv.push_back(word.c_str());
  std::ostringstream out, err;
  std::streambuf* const cout_before = std::cout.rdbuf(out.rdbuf());
  std::streambuf* const cerr_before = std::cerr.rdbuf(err.rdbuf());
  const int code = run_command_line(static_cast<int>(argv.size()), argv.data(), all_commands());
  std::cout.rdbuf(cout_before), std::cerr.rdbuf(cerr_before);
  for (const Device device : {Device::cpu, Device::emulated}) {
    Arena& arena = backend(device).arena();
    arena.limit(arena.capacity());
  }
  return {code, out.str(), err.str()};
}

inline std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

inline Json read_json(const std::string& path) { return Json::parse(read_file(path)); }

// A number of every line of a run's metrics.jsonl that has it.
inline std::vector<double> curve(const std::string& folder, const char* key) {
  std::ifstream in(folder + "/metrics.jsonl");
  std::vector<double> out;
  for (std::string line; std::getline(in, line);)
    if (const Json entry = Json::parse(line); entry.contains(key) && entry[key].is_number()) out.push_back(entry[key]);
  return out;
}

inline bool contains(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }

}  // namespace tapedeck::test
