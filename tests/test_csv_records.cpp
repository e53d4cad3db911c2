// CSV rows decoded one by one, by several threads.
#include "data/csv_records.h"

#include <thread>

#include "data/digits.h"
#include "engine/check.h"
#undef CHECK  // below, CHECK is doctest's
#include <doctest/doctest.h>

#include "tests/idx_bytes.h"
#include "tests/test_data_folder.h"

using namespace tapedeck;
using doctest::Contains;
using Floats = std::vector<float>;

namespace {

Floats read(const CsvRecords& records, const std::vector<int32_t>& rows) {
  Floats out(rows.size() * static_cast<size_t>(records.features()));
  records.read(rows, out.data());
  return out;
}

}  // namespace

TEST_CASE("csv records: rows come in the order asked for, whatever stands between them") {
  const TemporaryFolder folder;
  const CsvRecords records(folder.write("t.csv", text_bytes("\xEF\xBB\xBF"
                                                            "a,label,b\r\n1,7,2\r\n\r\n\"3\",8, 4\r\"5\",9,\"6\"")),
                           "label");
  CHECK(records.count() == 3);
  CHECK(records.features() == 2);
  CHECK(records.answers() == std::vector<double>{7, 8, 9});
  CHECK(read(records, {2, 0, 1, 0}) == Floats{5, 6, 1, 2, 3, 4, 1, 2});
  CHECK_THROWS_WITH_AS(read(records, {3}), Contains("row 3 is asked for, but there are rows 0 to 2"), Error);
  CHECK_THROWS_AS(read(records, {-1}), Error);
}

TEST_CASE("csv records: their hash is that of the content") {
  const TemporaryFolder folder;
  const auto hash = [&](const char* content) {
    return CsvRecords(folder.write("t.csv", text_bytes(content))).content_hash();
  };
  CHECK(hash("1,2\n3,4\n") == hash("\"1\",2\r\n\r\n3,4"));
  CHECK(hash("1,2\n3,4\n") != hash("1,2\n3,5\n"));
  CHECK(hash("1,23\n") != hash("12,3\n"));
}

TEST_CASE("csv records: what is wrong is named with file and line") {
  const TemporaryFolder folder;
  const auto refuses = [&](const Bytes& content, const char* message) {
    CHECK_THROWS_WITH_AS(CsvRecords(folder.write("t.csv", content)), Contains(message), Error);
  };
  refuses(gzip(text_bytes("1,2\n")), "is packed by gzip, which cannot be read from its middle");
  refuses(text_bytes("1,2\n3,x\n"), "t.csv: line 2, column 2: \"x\" is no finite number");
  refuses(text_bytes("1,2\n3,4,5\n"), "t.csv: line 2 has 3 fields");
  refuses(text_bytes("a,b\n"), "t.csv: has a header and no rows");

  const CsvRecords records(folder.write("t.csv", text_bytes("1,2\n\nx,4\n5,6\n7,8\n")), "2");
  CHECK(read(records, {0, 2}) == Floats{1, 5});
  CHECK_THROWS_WITH_AS(read(records, {0, 1}), Contains("t.csv: line 3, column 1: \"x\" is no finite number"), Error);
  folder.write("t.csv", text_bytes("1,2\n\n"));
  CHECK_THROWS_WITH_AS(read(records, {3}), Contains("row 3 at line 5 cannot be read: the file is shorter than it was"),
                       Error);
}

TEST_CASE("csv records: worker threads that read at once get what one gets") {
  const TemporaryFolder folder;
  const Dataset digits = load_digits();
  std::string content;
  for (int64_t row = 0; row < digits.rows(); ++row) {
    for (int64_t i = 0; i < 64; ++i) content += std::to_string(digits.pixels[row * 64 + i]) + ",";
    content += std::to_string(digits.labels[row]) + "\n";
  }
  const CsvRecords records(folder.write("digits.csv", text_bytes(content)));
  REQUIRE(records.count() == digits.rows());
  std::vector<Floats> results(4);
  std::vector<std::thread> threads;
  for (Floats& result : results) threads.emplace_back([&] { result = read(records, digits.train); });
  for (std::thread& thread : threads) thread.join();
  for (const Floats& result : results) {
    size_t i = 0;
    for (const int32_t row : digits.train)
      for (int64_t pixel = 0; pixel < 64; ++pixel, ++i) REQUIRE(result[i] == digits.pixels[row * 64 + pixel]);
  }
  CHECK(std::vector<int32_t>(records.answers().begin(), records.answers().end()) == digits.labels);
}
