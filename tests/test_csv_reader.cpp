// CSV as text: quotes, line ends, byte-order marks, headers, and numbers that are none.
#include "data/csv_table.h"

#include "engine/check.h"
#undef CHECK  // below, CHECK is doctest's
#include <doctest/doctest.h>

#include "tests/idx_bytes.h"
#include "tests/test_data_folder.h"

using namespace tapedeck;
using doctest::Contains;
using Strings = std::vector<std::string>;
using Numbers = std::vector<double>;

namespace {

CsvTable table_of(std::string_view content, const std::string& label = {}, bool regression = false) {
  const TemporaryFolder folder;
  return read_csv_table(folder.write("t.csv", text_bytes(content)), label, regression);
}

void refuses(std::string_view content, const std::string& message, const std::string& label = {},
             bool regression = false) {
  INFO(std::string(content));
  CHECK_THROWS_WITH_AS(table_of(content, label, regression), Contains(message.c_str()), Error);
}

// All fields of all records, a "|" between records.
Strings fields_of(std::string_view content) {
  const TemporaryFolder folder;
  CsvReader reader(folder.write("t.csv", text_bytes(content)));
  Strings all;
  while (reader.next()) {
    all.insert(all.end(), reader.fields().begin(), reader.fields().end());
    all.push_back("|");
  }
  return all;
}

}  // namespace

// Fault: byte-order mark and carriage returns were taken as data, so the first column was lost or rows were.
TEST_CASE("csv: byte-order mark, quoted header and any line end give the same table") {
  const CsvTable plain = table_of("a,b,label\n1,2,0\n3,4,1\n");
  CHECK(plain.layout.columns == Strings{"a", "b", "label"});
  CHECK(plain.values == Numbers{1, 2, 3, 4});
  CHECK(plain.words == Strings{"0", "1"});
  CHECK(plain.lines == std::vector<int64_t>{2, 3});
  const std::string mark = "\xEF\xBB\xBF";  // a byte-order mark
  for (const std::string& content :
       {mark + "\"a\",\"b\",\"label\"\r\n1,2,0\r\n3,4,1", std::string("a,b,label\r1,2,0\r3,4,1"),
        std::string("a,b,label\r1,2,0\r3,4,1\r"), std::string("a, b ,label\n1,2,0\r\n 3,\"4\",1\r"),
        mark + "a,b,label\n1,2,0\n" + mark + "3,4,1\n"}) {
    INFO(content);
    const CsvTable table = table_of(content);
    CHECK(table.layout.columns == plain.layout.columns);
    CHECK(table.values == plain.values);
    CHECK(table.answers == plain.answers);
    CHECK(table.lines == plain.lines);
  }
}

TEST_CASE("csv: a quoted field keeps commas, line ends and doubled quotes") {
  CHECK(fields_of("\"a,b\",\"say \"\"x\"\"\",c\n") == Strings{"a,b", "say \"x\"", "c", "|"});
  CHECK(fields_of("\"two\r\nlines\",\"\"\"\",\"\"\n,\n") == Strings{"two\r\nlines", "\"", "", "|", "", "", "|"});
  CHECK(fields_of("5\" pipe,a\"\"b\n") == Strings{"5\" pipe", "a\"\"b", "|"});  // only a field that begins with one
  const CsvTable table = table_of("\"width, \"\"cm\"\"\",class\n1,\"a,\n\nb\"\n2,c\n");
  CHECK(table.layout.columns == Strings{"width, \"cm\"", "class"});
  CHECK(table.words == Strings{"a,\n\nb", "c"});
  CHECK(table.lines == std::vector<int64_t>{2, 5});
}

// Fault: a quote, a CRLF or a mark that lay on the border of two reads was split in two.
TEST_CASE("csv: where the read buffer ends does not matter") {
  const std::string tail = "\"a\"\"\",1\r\n\xEF\xBB\xBF\"\r\nb\",2\r\n\r\nc,3\r\n";
  for (size_t k = 0; k <= tail.size(); ++k) {
    const std::string head((1 << 16) - k - 3, 'x');
    REQUIRE(fields_of(head + ",0\n" + tail) ==
            Strings{head, "0", "|", "a\"", "1", "|", "\r\nb", "2", "|", "c", "3", "|"});
  }
  const std::string wide(1 << 20, 'y');  // longer than the first buffers
  CHECK(fields_of("\"" + wide + "\",1\n2,3") == Strings{wide, "1", "|", "2", "3", "|"});
}

// Fault: an empty line became a row of missing values.
TEST_CASE("csv: blank lines are no rows, and a row of another length is refused with its line") {
  const CsvTable table = table_of("\n\na,b,label\n1,2,0\n\n3,4,1\n  \t\n5,6,0\r\n\r\n\r\n");
  CHECK(table.values == Numbers{1, 2, 3, 4, 5, 6});
  CHECK(table.lines == std::vector<int64_t>{4, 6, 8});

  refuses("a,b,label\n1,2,0\n1,,0\n", "t.csv: line 3, column \"b\": is empty");
  refuses("1,2,0\n\n1, ,0\n", "t.csv: line 3, column 2: is empty");
  refuses("a,b,label\n1,2,0\n1,2,\n", "t.csv: line 3, column \"label\": is empty");
  refuses("a,b,label\n1,2,0\n\n1,0\n", "t.csv: line 4 has 2 fields, but the first row has 3");
  refuses("a,b,label\n1,2,0\n1,2,3,0\n", "t.csv: line 3 has 4 fields, but the first row has 3");
  refuses("a,b,label\n1,2,\"0\n\n1\"\n1,0\n", "t.csv: line 5 has 2 fields");
  refuses("1,,0\n1,2,0\n", "t.csv: line 1, column 2: is empty");  // no header, and not a row to lose
}

TEST_CASE("csv: quotes that do not pair up are refused with line and column") {
  refuses("a,b\n1,\"x\n2,y\n", "t.csv: line 2, column 2: a quote is opened and never closed");
  refuses("a,b\n1,\"", "line 2, column 2: a quote is opened");
  refuses("a,b\n\n1,\"x\"y\n", "t.csv: line 3, column 2: \"y\" stands after a closing quote");
  refuses("a,b\n\"1\" ,2\n", "line 2, column 1");
}

TEST_CASE("csv: a feature is a finite number and nothing else") {
  CHECK(table_of("-1.5e3, 2 ,\t.5,\"7\",-0,1e-3,0\n0,0,0,0,0,0,1").values[0] == -1500);
  CHECK(table_of("-1.5e3, 2 ,\t.5,\"7\",-0,1e-3,0\n").values == Numbers{-1500, 2, 0.5, 7, 0, 1e-3});
  for (const char* field : {"x", "nan", "NaN", "inf", "-inf", "infinity", "0x10", "1e999", "1.2.3", "1 2", "--1", "1e",
                            "+", "++1", "+-1", "-+1", "1;2", "\xFF\xFE"}) {
    const std::string message = std::string("t.csv: line 2, column 1: \"") + (*field < 0 ? "" : field);
    refuses(std::string("1,0\n") + field + ",1\n", message);
  }
  refuses({"1,0\n1\0,1\n", 8}, "line 2, column 1: \"1\\x00\"");
  refuses("a,b,c\n1,2,0\n3,?,1\n", "t.csv: line 3, column \"b\": \"?\" is no finite number");
}

TEST_CASE("csv: the first row is a header when a feature's field is text") {
  CHECK(table_of("1,2,0\n3,4,1\n").lines.size() == 2);
  CHECK_FALSE(table_of("1,2,0\n3,4,1\n").layout.has_header());
  CHECK_FALSE(table_of("5.1,3.5,setosa\n4.9,3.0,virginica\n").layout.has_header());
  CHECK_FALSE(table_of("setosa,5.1\nvirginica,4.9\n", "1").layout.has_header());
  CHECK(table_of("class,width\nsetosa,5.1\n", "1").layout.feature_names() == Strings{"width"});
  CHECK(table_of(",width,class\n1,2,a\n").layout.columns == Strings{"", "width", "class"});
  CHECK(table_of("1,width,class\n1,2,a\n", "class").layout.columns == Strings{"1", "width", "class"});
  refuses("nan,1,0\n1,2,1\n", "line 1, column 1: \"nan\"");  // no header, and not a row to lose
  refuses("a,b\xFF,c\n1,2,3\n", "t.csv: line 1: the name of column 2 is not UTF-8");
}

// Fault: a first row with one field that could not be read, such as "+1.5", "1e999" or "NA", was taken for a header,
// and an example was lost in silence.
TEST_CASE("csv: a first row of numbers and text is neither a header nor data") {
  CHECK(table_of("+1.5,2,0\n3,+4e1,1\n").values == Numbers{1.5, 2, 3, 40});
  for (const char* field : {"1e999", "-1e999", "inf"})
    refuses(std::string(field) + ",2,0\n3,4,1\n",
            "t.csv: line 1, column 1: \"" + std::string(field) + "\" is no finite");
  refuses("NA,3,0\n1,2,1\n",
          "t.csv: line 1, column 1: \"NA\" is no number, but column 2 has \"3\": if this row is data");
  refuses("5.1,x,setosa\n4.9,3.0,virginica\n", "line 1, column 2: \"x\" is no number, but column 1 has \"5.1\"");
  refuses("\n7,a,,class\n1,2,3,0\n", "line 2, column 2: \"a\" is no number, but column 1 has \"7\"");
  refuses("setosa,NA,1\nvirginica,1,2\n", "line 1, column 2: \"NA\"", "1");
}

TEST_CASE("csv: the answer's column goes by name or number, and an unknown one is refused with the nearest") {
  const char* const content = "class,width,height,width\na,1,2,3\nb,4,5,6\n";
  CHECK(table_of(content, "class").words == Strings{"a", "b"});
  CHECK(table_of(content, "1").values == Numbers{1, 2, 3, 4, 5, 6});
  CHECK(table_of("a,b,c\n1,2,3\n4,5,6\n", "b").values == Numbers{1, 3, 4, 6});
  CHECK(table_of("1,2,class\n1,2,3\n4,5,6\n", "class").words == Strings{"3", "6"});
  CHECK(table_of("1,2,3\n4,5,6\n", "3").words == Strings{"3", "6"});  // a number, not a name
  CHECK_THROWS_WITH_AS(table_of(content, "clas"), Contains("t.csv has no such column; did you mean class?"),
                       UsageError);
  CHECK_THROWS_WITH_AS(table_of(content, "5"), Contains("--label 5: t.csv has columns 1 to 4"), UsageError);
  CHECK_THROWS_WITH_AS(table_of(content, "0"), Contains("has columns 1 to 4"), UsageError);
  CHECK_THROWS_WITH_AS(table_of(content, "width"), Contains("two columns of that name; give its number, 2 for the"),
                       UsageError);
  CHECK_THROWS_WITH_AS(table_of("1,2\n3,4\n", "x"), Contains("have no names; give a number from 1 to 2"), UsageError);
}

TEST_CASE("csv: files without a row, and what is no file at all") {
  for (const char* content : {"", "\n", "\r\n \n", "\xEF\xBB\xBF"}) refuses(content, "t.csv: has no rows");
  refuses("a,b\n", "t.csv: has a header and no rows");
  refuses("1\n2\n", "t.csv: line 1 has one field, wants at least one feature");
  const TemporaryFolder folder;
  CHECK_THROWS_WITH_AS(read_csv_table(folder.path(), "", false), Contains("is a folder, wants a file"), Error);
  CHECK_THROWS_WITH_AS(read_csv_table(folder / "none", "", false), Contains("none: no such file"), Error);
}

TEST_CASE("csv: gzip is told by content, cut or damaged gzip is refused, and members follow one another") {
  const TemporaryFolder folder;
  const Bytes a = text_bytes("a,b\n1,0\n"), b = text_bytes("2,1\n");
  for (const char* name : {"t.csv", "t.csv.gz"})
    for (const Bytes& content : {a + b, gzip(a + b), gzip(a) + gzip(b), gzip(a) + gzip({}) + gzip(b)})
      CHECK(read_csv_table(folder.write(name, content), "", false).values == Numbers{1, 2});
  const Bytes packed = gzip(a) + gzip(b);
  for (size_t n = 2; n < packed.size(); ++n) {  // one byte of gzip is not known as such
    INFO(n << " of " << packed.size() << " bytes");
    if (n == gzip(a).size()) continue;  // a whole member
    CHECK_THROWS_AS(read_csv_table(folder.write("t", first(packed, n)), "", false), Error);
  }
}

// Fault: bytes that no program wrote ended in a crash, or in a table of garbage.
TEST_CASE("csv: a file cut or changed at any byte is read or refused, and nothing else") {
  const std::string whole = "\xEF\xBB\xBF\"a\"\"\",b,c\r\n1,2,\"x\r\"\r\n3,-4e1,y\n";
  int read = 0, refused = 0;
  const auto attempt = [&](std::string_view content) {
    try {
      const CsvTable table = table_of(content);
      REQUIRE(table.values.size() == table.lines.size() * static_cast<size_t>(table.features()));
      REQUIRE(table.answers.size() == table.lines.size());
      ++read;
    } catch (const Error&) {
      ++refused;
    }
  };
  for (size_t n = 0; n < whole.size(); ++n) attempt(whole.substr(0, n));
  for (size_t at = 0; at < whole.size(); ++at)
    for (const char value : {'\0', '"', ',', '\r', '\n', ' ', '7', '\xFF'}) {
      std::string changed = whole;
      changed[at] = value;
      attempt(changed);
    }
  CHECK(read > 20);
  CHECK(refused > 100);
}
