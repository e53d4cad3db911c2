#include "data/catalog.h"

#include <algorithm>
#include <filesystem>

#include "data/csv.h"
#include "data/digits.h"
#include "data/encoding.h"
#include "data/idx.h"
#include "data/mnist.h"
#include "data/nearest.h"
#include "data/npy.h"
#include "data/packed_file.h"
#include "data/shard.h"
#include "data/synthetic.h"
#include "data/task_spec.h"
#include "data/tasks.h"
#include "data/text_data.h"
#include "engine/check.h"

namespace tapedeck {

std::span<const DataKind> data_kinds() {
  static const DataKind kinds[] = {
      {.name = "digits",
       .what = "handwritten digits, 8x8 grey pixels, 10 classes",
       .size = "1,797 rows: 1,078 / 359 / 360",
       .origin = "inside the program; UCI, Alpaydin and Kaynak 1998, CC BY 4.0",
       .fixed_split = true,
       .load = [](const std::string&, const DataOptions&) { return load_digits(); }},
      {.name = "mnist",
       .what = "handwritten digits, 28x28 grey pixels, 10 classes",
       .size = "70,000 rows: 55,000 / 5,000 / 10,000",
       .origin = "four IDX files in --data-dir, plain or gzip; LeCun, Cortes and Burges",
       .fixed_split = true,
       .needs_folder = true,
       .load = [](const std::string&, const DataOptions& options) { return load_mnist(options.data_dir); }},
      {.name = "spirals",
       .what = "three arms that wind around each other, 2 features, 3 classes",
       .size = "3,000 rows: 2,400 / 300 / 300",
       .origin = "made by formula",
       .load = [](const std::string&, const DataOptions& options) { return make_spirals(options); }},
      {.name = "blobs",
       .what = "four normal clouds, 2 features, 4 classes; the best accuracy is 0.955",
       .size = "4,000 rows: 3,200 / 400 / 400",
       .origin = "made by formula",
       .load = [](const std::string&, const DataOptions& options) { return make_blobs(options); }},
      {.name = "csv",
       .what = "a table: numbers in all columns but one, and in that the class or number to predict (--label)",
       .size = "as the file holds",
       .origin = "a file of comma-separated values, plain or gzip, with or without a header",
       .takes_file = true,
       .load = load_csv},
      {.name = "npy",
       .what = "an array of examples; the answers from another (--label FILE) or in its last column",
       .size = "as the file holds",
       .origin = "a file that numpy.save wrote, plain or gzip",
       .takes_file = true,
       .load = load_npy},
      {.name = "idx",
       .what = "grey images, and a label for each (--label FILE)",
       .size = "as the files hold",
       .origin = "a pair of IDX files as MNIST's, plain or gzip",
       .takes_file = true,
       .load = load_idx},
      {.name = "text",
       .what = "characters or bytes (--bytes), to predict the next one from the --context before it",
       .size = "as the file holds: 0.9 to train, the end to validate",
       .origin = "a file of UTF-8, plain or gzip",
       .takes_file = true,
       .by_place = true,
       .sequences = true,
       .load = load_text},
      {.name = "task",
       .what = "sequences with one right answer, task:NAME or task:NAME:length=12: " + task_names(),
       .size = "made without end: 200,000 / 1,000 / 1,000 rows; modadd all pairs",
       .origin = "made by formula",
       .takes_task = true,
       .fixed_split = true,
       .sequences = true,
       .load = [](const std::string& task, const DataOptions&) { return make_task(task); }},
      {.name = "shard",
       .what = "a converted data set, which trains without being loaded",
       .size = "as its source; bytes stay bytes",
       .origin = "a file that `tapedeck data convert` wrote",
       .takes_file = true,
       .fixed_split = true,
       .load = [](const std::string& file, const DataOptions& options) { return open_shard(file, options.encoding); }},
  };
  return kinds;
}

std::string DataSpec::label() const {
  if (kind->takes_task) return file.substr(0, file.find(':'));
  return kind->takes_file ? data_name(file) : kind->name;
}

DataSpec parse_data(std::string_view spec) {
  const size_t colon = spec.find(':');
  const std::string_view name = spec.substr(0, colon);
  const std::string file(colon == spec.npos ? "" : spec.substr(colon + 1));
  std::vector<std::string> names;
  for (const DataKind& kind : data_kinds()) {
    names.push_back(kind.name);
    if (kind.name != name) continue;
    if (kind.takes_file && file.empty())
      throw UsageError(text("data {}: needs a file: write {}:FILE", spec, kind.name));
    if (kind.takes_task && file.empty())
      throw UsageError(text("data {}: needs a task: write {}:NAME, with one of {}", spec, kind.name, task_names()));
    if (!kind.takes_file && !kind.takes_task && colon != spec.npos)
      throw UsageError(text("data {}: {} takes no file; write {} alone", spec, kind.name, kind.name));
    return {&kind, file};
  }
  throw UsageError(
      text("data {}: no such data set; did you mean {}? (`tapedeck data list` names all)", name, nearest(name, names)));
}

bool is_bare_file(const std::string& data) {
  const std::string name = data.substr(0, data.find(':'));
  const auto kinds = data_kinds();
  if (std::any_of(kinds.begin(), kinds.end(), [&](const DataKind& kind) { return kind.name == name; })) return false;
  std::error_code failed;
  return data.find_first_of("./") != data.npos || std::filesystem::is_regular_file(data, failed);
}

Dataset load_dataset(std::string_view spec, const DataOptions& options) {
  const auto [kind, file] = parse_data(spec);
  if (kind->fixed_split && (options.validation || options.test))
    throw UsageError(
        text("{}: its splits are fixed, so that results compare; leave --validation and --test away", spec));
  if ((!kind->takes_file || kind->by_place) && !options.label.empty())
    throw UsageError(text("{}: has its answers with it; leave --label away", spec));
  Dataset data = kind->load(file, options);
  if (data.sequences && options.regression)
    throw UsageError(text("{}: its answers are tokens, not numbers; leave --loss mse away", spec));
  check(data, !options.encoding);
  if (options.encoding) check_encoding(data, *options.encoding);
  return data;
}

}  // namespace tapedeck
