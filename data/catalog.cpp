// Data sets by name: one line of the list and one line of load_dataset for each.
#include "data/dataset.h"
#include "data/digits.h"
#include "data/idx.h"
#include "data/nearest.h"
#include "data/synthetic.h"
#include "engine/check.h"

namespace tapedeck {
namespace {

void refuse_fractions(std::string_view name, const DataOptions& options) {
  if (options.validation || options.test)
    throw UsageError(
        text("{}: its splits are fixed, so that results compare; leave --validation and --test away", name));
}

}  // namespace

const std::vector<DatasetEntry>& dataset_list() {
  static const std::vector<DatasetEntry> list = {
      {"digits", "handwritten digits, 8x8 grey pixels, 10 classes", "1,797 rows: 1,078 / 359 / 360",
       "inside the program; UCI, Alpaydin and Kaynak 1998, CC BY 4.0"},
      {"mnist", "handwritten digits, 28x28 grey pixels, 10 classes", "70,000 rows: 55,000 / 5,000 / 10,000",
       "four IDX files in --data-dir, plain or gzip; LeCun, Cortes and Burges"},
      {"spirals", "three arms that wind around each other, 2 features, 3 classes", "3,000 rows: 2,400 / 300 / 300",
       "made by formula"},
      {"blobs", "four normal clouds, 2 features, 4 classes; the best accuracy is 0.955",
       "4,000 rows: 3,200 / 400 / 400", "made by formula"},
  };
  return list;
}

Dataset load_dataset(std::string_view name, const DataOptions& options) {
  if (name == "digits") return refuse_fractions(name, options), load_digits();
  if (name == "mnist") return refuse_fractions(name, options), load_mnist(options.data_dir);
  if (name == "spirals") return make_spirals(options);
  if (name == "blobs") return make_blobs(options);

  std::vector<std::string> names;
  for (const DatasetEntry& entry : dataset_list()) names.push_back(entry.name);
  throw UsageError(
      text("data {}: no such data set; did you mean {}? (`tapedeck data list` names all)", name, nearest(name, names)));
}

}  // namespace tapedeck
