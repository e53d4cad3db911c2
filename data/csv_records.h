// A CSV file of numbers whose rows stay in the file as text and are decoded as they are asked for. Each time they are
// asked for: text costs far more to decode than bytes, and `bench loader` shows how much of that workers hide.
#pragma once
#include "data/csv_layout.h"
#include "data/dataset.h"

namespace tapedeck {

class CsvRecords : public Records {
 public:
  // Goes through the file once to note where each record begins, and its answer. label: the column of the answer as in
  // DataOptions. Throws Error for a gzip file, which cannot be read from its middle, and where read_csv would.
  explicit CsvRecords(const std::string& path, const std::string& label = {});
  ~CsvRecords() override;
  CsvRecords(const CsvRecords&) = delete;
  CsvRecords& operator=(const CsvRecords&) = delete;

  int64_t count() const override { return static_cast<int64_t>(places_.size()); }
  int64_t features() const { return static_cast<int64_t>(layout_.count) - 1; }
  // As they stand in the file, not standardised. Any number of threads may read at once.
  void read(std::span<const int32_t> rows, float* out) const override;
  uint64_t content_hash() const override { return hash_; }  // of the bytes of all records

  const std::vector<double>& answers() const { return answers_; }  // [count()]

 private:
  struct Place {
    uint64_t offset, bytes;
    int64_t line;
  };
  CsvLayout layout_;
  std::vector<Place> places_;
  std::vector<double> answers_;
  uint64_t hash_ = 0;
  int file_ = -1;
};

}  // namespace tapedeck
