// Data sets by name. A line of the table in catalog.cpp is all that the rest of the program knows of one.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "data/dataset.h"

namespace tapedeck {

struct DataKind {
  std::string name;                // "mnist"; with a file: "csv", written csv:FILE
  std::string what, size, origin;  // for people
  bool takes_file = false;
  bool takes_task = false;    // written task:NAME
  bool fixed_split = false;   // has its own; --validation and --test do not apply
  bool by_place = false;      // splits by position; has a part for testing only where --test asks for one
  bool needs_folder = false;  // --data-dir
  bool sequences = false;     // of tokens, for a gpt
  Dataset (*load)(const std::string& file, const DataOptions& options) = nullptr;
};
std::span<const DataKind> data_kinds();

// "csv:data/iris.csv" as its kind and "data/iris.csv".
struct DataSpec {
  const DataKind* kind;
  std::string file;           // or task
  std::string label() const;  // a short name for folders: "mnist", "iris", "sort"
};
// Throws UsageError for an unknown name (with the nearest), a missing file name, and a file where none belongs.
DataSpec parse_data(std::string_view spec);

// Whether this is the path of a file, and not the name of a data set: no data set is called so, and it has a dot or
// slash, or there is such a file. Write ./digits for a file that has the name of a data set.
bool is_bare_file(const std::string& data);

// Loads what the spec names; checks that sizes, labels and splits fit together.
Dataset load_dataset(std::string_view spec, const DataOptions& options = {});

}  // namespace tapedeck
