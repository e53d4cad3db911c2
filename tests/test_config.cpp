// Options: strict values, defaults, precedence and origin, files of options.
#include "engine/check.h"
#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "apps/config.h"
#include "apps/machine.h"
#include "apps/options.h"
#include "data/nearest.h"
#include "engine/device.h"
#include "tests/mentions.h"

using namespace tapedeck;
namespace fs = std::filesystem;

namespace {

Config train(const std::vector<Setting>& flags, const char* omp = nullptr) { return configure("train", flags, omp); }

std::string refusal(const std::vector<Setting>& flags, const char* command = "train", const char* omp = nullptr) {
  try {
    configure(command, flags, omp);
  } catch (const UsageError& e) {
    return e.what();
  }
  return "accepted";
}

// A file of options that lives as long as the test.
struct OptionFile {
  fs::path path = fs::temp_directory_path() / ("tapedeck_config_" + std::to_string(getpid()) + ".json");
  explicit OptionFile(const std::string& text) { std::ofstream(path) << text; }
  ~OptionFile() { fs::remove(path); }
  Setting flag() const { return {"config", path.string()}; }
};

}  // namespace

TEST_CASE("no option at all: digits to 97 %, at a constant rate") {
  const Config c = train({});
  CHECK_EQ(c.data, "digits");
  CHECK(c.target == Target{"accuracy", 0.97});
  CHECK_EQ(c.schedule, "constant");
  CHECK(c.hidden == std::vector<int64_t>{128, 128});
  CHECK_EQ(c.batch, 32);
  CHECK_EQ(c.epochs, 20);
  CHECK_EQ(c.optimizer, "adam");
  CHECK_EQ(c.lr, 1e-3);
  CHECK_EQ(c.weight_decay, 0);
  CHECK_FALSE(c.momentum);
  CHECK_FALSE(c.validation);
  CHECK_EQ(c.threads, allowed_cores());
}

TEST_CASE("defaults follow model, data and optimizer") {
  CHECK_EQ(train({{"data", "mnist"}, {"data-dir", "x"}}).batch, 128);
  CHECK_EQ(train({{"data", "mnist"}, {"data-dir", "x"}, {"batch", "7"}}).batch, 7);
  CHECK_FALSE(train({{"data", "digits"}}).target);
  CHECK_FALSE(train({{"epochs", "3"}}).target);
  CHECK_FALSE(train({{"loss", "mse"}}).target);
  CHECK(train({{"hidden", "64"}, {"seed", "3"}}).target);
  CHECK_EQ(train({{"epochs", "3"}}).schedule, "cosine");
  CHECK_EQ(train({{"epochs", "3"}, {"target", "loss=0.1"}}).schedule, "constant");
  CHECK_EQ(train({{"target", "loss=0.1"}, {"schedule", "linear"}}).schedule, "linear");
  CHECK_FALSE(train({{"steps", "100"}}).epochs);
  CHECK_EQ(train({{"steps", "100"}, {"epochs", "2"}}).epochs, 2);
  CHECK_EQ(train({{"optimizer", "adamw"}}).weight_decay, 0.01);
  CHECK_EQ(train({{"optimizer", "adamw"}, {"weight-decay", "0"}}).weight_decay, 0);
  CHECK_EQ(train({{"optimizer", "momentum"}}).momentum, 0.9);
  CHECK_EQ(train({{"data", "blobs"}}).validation, 0.1);
  CHECK_EQ(train({{"data", "blobs"}, {"test", "0.25"}}).test, 0.25);
  CHECK_EQ(configure("gradcheck", {}).precision, "fp64");
  CHECK(configure("bench step", {}).hidden == std::vector<int64_t>{512, 512});
}

TEST_CASE("values are parsed strictly, and a refusal names option, value and what is allowed") {
  // The fault: 1O read as 1, nan and -4 and 0x10 let through, hours of training with something else than was asked.
  for (const char* wrong : {"1O", "-4", "nan", "inf", "0x10", "1e400", "", " 5", "5 ", "+5", "1.5", "1e3", "0",
                            "99999999999999999999", "2147483648", "five"}) {
    CAPTURE(wrong);
    CHECK(mentions(refusal({{"batch", wrong}}), {"--batch", wrong, "a whole number from 1 to 2147483647"}));
  }
  for (const char* wrong : {"nan", "inf", "-inf", "0x10", "1e400", "", " 0.1", "0,1", "0", "-0.1", "1e-400", "0.1f"}) {
    CAPTURE(wrong);
    CHECK(mentions(refusal({{"lr", wrong}}), {"--lr", wrong, "a number above 0"}));
  }
  CHECK(mentions(refusal({{"batch", ""}}), {"--batch has no value"}));
  CHECK_EQ(train({{"lr", "1e6"}}).lr, 1e6);
  CHECK_EQ(train({{"lr", ".5"}}).lr, 0.5);
  for (const char* wrong : {"512,,512", "0", "", ",", "512,", ",512", "512;512", "64,0", "64, 64", "64,-1"}) {
    CAPTURE(wrong);
    CHECK(mentions(refusal({{"hidden", wrong}}), {"--hidden", wrong, "whole numbers from 1 to"}));
  }
  for (const char* wrong : {"0.97", "accuracy", "accuracy=", "accuracy=0", "accuracy=1.1", "accuracy=97", "loss=0",
                            "loss=nan", "Accuracy=0.9", "accuracy=0.9 ", "accuracy>0.9", "f1=0.9"}) {
    CAPTURE(wrong);
    CHECK(mentions(refusal({{"target", wrong}}), {"--target", wrong, "accuracy=NUMBER"}));
  }
  CHECK(mentions(refusal({{"activation", "Relu"}}), {"--activation", "Relu", "relu, gelu, gelu_erf, silu"}));
  CHECK(mentions(refusal({{"dropout", "1"}}), {"--dropout", "from 0 to below 1"}));
  CHECK(mentions(refusal({{"model", "lstm"}}), {"--model", "lstm", "mlp", "gpt"}));
  CHECK(mentions(refusal({{"json", "yes"}}), {"--json", "yes", "true or false"}));
}

TEST_CASE("sizes take binary and decimal units") {
  const auto limit = [](const char* text) { return *train({{"memory-limit", text}}).memory_limit; };
  CHECK_EQ(limit("512MiB"), 512ll << 20);
  CHECK_EQ(limit("1.5GiB"), 3ll << 29);
  CHECK_EQ(limit("2GB"), 2000000000);
  CHECK_EQ(limit("100kB"), 100000);
  CHECK_EQ(limit("4096"), 4096);
  CHECK_EQ(limit("4096B"), 4096);
  for (const char* wrong : {"512mib", "MiB", "-1GB", "0", "nanMB", "1 GB", "1e30TiB", "12G"}) {
    CAPTURE(wrong);
    CHECK(mentions(refusal({{"memory-limit", wrong}}),
                   {"--memory-limit", wrong, "from 1 to 1000000000000000 bytes", "512MiB"}));
  }
}

TEST_CASE("an unknown option names the nearest, also by the name that others give it") {
  // The fault: a misspelt option is ignored and training runs with the default.
  CHECK(mentions(refusal({{"learing-rate", "0.1"}}), {"--learing-rate", "nearest is --lr"}));
  CHECK(mentions(refusal({{"num-epochs", "3"}}), {"--num-epochs", "nearest is --epochs"}));
  CHECK(mentions(refusal({{"hiden", "3"}}), {"nearest is --hidden"}));
  CHECK(mentions(refusal({{"batch-size", "3"}}), {"nearest is --batch"}));
  CHECK(mentions(refusal({{"predictions", "x"}}), {"unknown option --predictions"}));  // evaluate's, not train's
  CHECK(mentions(refusal({{"lr", "1"}, {"lr", "2"}}), {"--lr", "twice", "\"2\""}));
  CHECK_EQ(edit_distance("kitten", "sitting"), 3);
  CHECK_EQ(edit_distance("", "abc"), 3);
  CHECK_EQ(edit_distance("lr", "lr"), 0);
}

TEST_CASE("options that exclude each other are refused together") {
  CHECK(mentions(refusal({{"momentum", "0.5"}}), {"--momentum 0.5", "adam"}));
  CHECK(mentions(refusal({{"validation", "0.2"}}), {"--validation 0.2", "digits has a fixed split"}));
  CHECK(mentions(refusal({{"data", "blobs"}, {"validation", "0.6"}, {"test", "0.4"}}),
                 {"0.6", "0.4", "nothing to train"}));
  CHECK(mentions(refusal({{"loss", "mse"}, {"target", "accuracy=0.9"}}), {"--target accuracy=0.9", "mse"}));
  CHECK(mentions(refusal({{"data", "mnist"}}), {"--data-dir"}));
  CHECK(mentions(refusal({{"name", "mnist"}}, "data info"), {"--data-dir"}));
  for (const char* data : {"digits", "task:sort", "csv:x.csv"})  // Fault: was ignored
    CHECK(mentions(refusal({{"data", data}, {"data-dir", "x"}}),
                   {"--data-dir x: " + std::string(data) + " needs no folder of files; leave it out"}));
  CHECK(mentions(refusal({{"name", "digits"}, {"data-dir", "x"}}, "data info"), {"--data-dir x: digits"}));
  CHECK_EQ(configure("evaluate", {{"run", "r"}, {"data-dir", "x"}}).data_dir, "x");  // the run's data may need one
  CHECK_EQ(configure("data info", {{"name", "blobs"}, {"order", "0"}}).order, 0);
}

TEST_CASE("flag over environment over file over default, and each value knows its origin") {
  // The fault: two runs that look the same measured different settings, and the output does not tell.
  const OptionFile file(
      R"({"lr": 0.01, "batch": 16, "threads": 3, "hidden": [64, 32], "eval_every": 5, "json": true})");
  const Config c = train({file.flag(), {"batch", "8"}}, "2");
  CHECK_EQ(c.lr, 0.01);
  CHECK(c.origin("lr") == Origin::file);
  CHECK_EQ(c.batch, 8);
  CHECK(c.origin("batch") == Origin::flag);
  CHECK_EQ(c.threads, 2);
  CHECK(c.origin("threads") == Origin::environment);
  CHECK(c.hidden == std::vector<int64_t>{64, 32});
  CHECK_EQ(c.eval_every, 5);
  CHECK(c.json);
  CHECK(c.origin("dropout") == Origin::fallback);
  const OptionFile unset(R"({"data_dir": null, "clip": null, "model": null})");
  CHECK_EQ(train({unset.flag()}).data_dir, "");
  CHECK(train({unset.flag()}).origin("data-dir") == Origin::fallback);
  CHECK_EQ(train({unset.flag()}).model, "mlp");
  CHECK_EQ(train({file.flag(), {"threads", "1"}}, "2").threads, 1);
  CHECK_EQ(train({}, "4,2").threads, 4);
  CHECK_EQ(train({}, "").threads, allowed_cores());
  CHECK(mentions(refusal({}, "train", "many"), {"OMP_NUM_THREADS", "many", "a whole number from 1 to 1024"}));

  const Json out = to_json(c);
  CHECK_EQ(out["format_version"], 1);
  CHECK_EQ(out["lr"], Json({{"value", 0.01}, {"origin", "file"}}));
  CHECK_EQ(out["threads"], Json({{"value", 2}, {"origin", "environment"}}));
  CHECK_EQ(out["batch"], Json({{"value", 8}, {"origin", "flag"}}));
  CHECK_EQ(out["epochs"], Json({{"value", 20}, {"origin", "default"}}));
  CHECK(out["clip"]["value"].is_null());
}

// Fault: two runs that look the same measured different settings, since some of them were written nowhere.
TEST_CASE("config.json has the value and the origin of every option that the command takes") {
  const OptionFile file(R"({"lr": 0.5, "epochs": 3})");
  for (const auto& [command, extra] : {std::pair<const char*, Setting>{"train", file.flag()},
                                       {"evaluate", {"split", "all"}},
                                       {"bench step", {"rounds", "2"}},
                                       {"bench loader", {"rounds", "2"}},
                                       {"bench launch", {"rounds", "2"}}}) {
    const Config config = configure(command, {extra, {"threads", "2"}}, "3");
    const Json out = to_json(config);
    size_t options = 0;
    for (const Option& option : all_options()) {
      if (!(option.commands & command_bit(config.command))) continue;
      INFO(config.command << " --" << option.name);
      REQUIRE(out.contains(option.name));
      CHECK(out[option.name]["value"] == value_json(config, option));
      CHECK(out[option.name]["origin"] == name(config.origin(option.name)));
      ++options;
    }
    CHECK(options > 5);
    CHECK(out.size() == options + 2);  // and format_version and command
    CHECK(out["threads"] == Json{{"value", 2}, {"origin", "flag"}});
  }
  const Json train_json = to_json(train({file.flag()}, "3"));
  CHECK(train_json["epochs"] == Json{{"value", 3}, {"origin", "file"}});
  CHECK(train_json["threads"] == Json{{"value", 3}, {"origin", "environment"}});
  CHECK(train_json["steps"] == Json{{"value", nullptr}, {"origin", "default"}});
}

TEST_CASE("a run's config.json gives the same run again, and a flag changes one thing") {
  const Config first = train({{"data", "blobs"},
                              {"optimizer", "momentum"},
                              {"target", "loss=0.25"},
                              {"out", "a"},
                              {"force", "true"},
                              {"hidden", "7"},
                              {"memory-limit", "1GiB"},
                              {"note", "x y"}});
  const OptionFile file(to_json(first).dump());
  const Config again = train({file.flag()});
  for (const Option& option : all_options()) {
    CAPTURE(option.name);
    if ((option.commands & kTrain) && !option.of_one_run)
      CHECK_EQ(value_json(again, option), value_json(first, option));
  }
  CHECK_EQ(again.out, "");  // the folder of the first run is not that of the second
  CHECK_FALSE(again.force);

  CHECK_FALSE(train({file.flag(), {"optimizer", "adam"}}).momentum);  // went with what it belonged to
  CHECK_FALSE(train({file.flag(), {"data", "digits"}}).validation);
  const OptionFile adam(to_json(train({})).dump());
  CHECK_EQ(train({adam.flag(), {"optimizer", "momentum"}}).momentum, 0.9);
  CHECK(configure("graph", {adam.flag()}).hidden == std::vector<int64_t>{128, 128});  // train's other keys pass
}

TEST_CASE("a file of options is refused for what is wrong in it, by its name") {
  const auto message = [](const std::string& text) {
    const OptionFile file(text);
    const std::string refused = refusal({file.flag()});
    CHECK(mentions(refused, {file.path.filename().string()}));
    return refused;
  };
  CHECK(mentions(message(R"({"num-epochs": 3})"), {"unknown key num-epochs", "nearest is epochs"}));
  CHECK(mentions(message(R"({"batch": "1O"})"), {"batch got \"1O\""}));
  CHECK(mentions(message(R"({"batch": -4})"), {"batch got \"-4\""}));
  CHECK(mentions(message(R"({"batch": 32.5})"), {"batch got \"32.5\""}));
  CHECK(mentions(message(R"({"batch": null})"), {"batch got \"null\""}));
  CHECK(mentions(message(R"({"json": 1})"), {"json got \"1\""}));
  CHECK(mentions(message(R"({"hidden": []})"), {"hidden has no value"}));
  CHECK(mentions(message("{\"lr\": 0.1,\n \"clip\": 1e400}"), {"line 2, column", "1e400 is a number too large"}));
  CHECK(mentions(message(R"({"lr": NaN})"), {"line 1, column 8", "not strict JSON at \"N"}));
  CHECK(mentions(message("{\"lr\": 0.1,\n\n  'batch': 3}"), {"line 3, column 3", "at \"'batch': 3}\""}));
  CHECK(mentions(message(R"({"lr": 0.1)"), {"line 1, column 11", "ends before it is complete"}));
  CHECK(mentions(message("{\"note\": \"\xff\"}"), {"line 1, column 11"}));
  CHECK(mentions(message("{\"lr\": 0.1} {}"), {"line 1, column 13"}));
  for (const char* wrong : {"\"1abc\"", "\"1\"", "0", "-5", "1.5", "2", "9999999999999999999", "null"})
    CHECK(mentions(message(std::string("{\"format_version\": ") + wrong + "}"), {"format_version", wrong, "newer"}));
  for (const char* open : {"[", "{\"a\":", "[{\"a\":"}) {  // as deep as the stack, were it to be followed
    std::string deep = "{\"hidden\": ";
    for (int i = 0; i < 100000; ++i) deep += open;
    CHECK(mentions(message(deep), {"nests deeper"}));
  }
  CHECK(mentions(message(std::string(2 << 20, ' ')), {"too large for a file of options"}));
  CHECK(mentions(refusal({{"config", "/dev/zero"}}), {"/dev/zero", "too large"}));
  CHECK(mentions(message(R"({"lr": 1, "lr": 2})"), {"lr", "twice"}));
  CHECK(mentions(message(R"({"eval-every": 1, "eval_every": 2})"), {"eval-every", "twice"}));
  const std::string nested = message(R"({"config": "x"})");
  CHECK(mentions(nested, {"config belongs on the command line"}));
  CHECK(mentions(message(R"({"resume": "runs/a"})"), {"resume belongs on the command line"}));
  CHECK(nested.find("nearest") == nested.npos);
  CHECK(mentions(message(R"({"activation": 3})"), {"activation got \"3\"", "relu"}));
  CHECK(mentions(message("[1]"), {"object"}));
  CHECK(mentions(message(""), {"JSON"}));
  CHECK(mentions(message(R"({"format_version": 99, "lr": {"value": 1, "origin": "flag"}})"), {"99", "newer"}));
  CHECK(mentions(refusal({{"config", "/nonexistent/x.json"}}), {"/nonexistent/x.json", "cannot be read"}));
  CHECK(mentions(refusal({{"config", "/tmp"}}), {"/tmp", "folder"}));
}

TEST_CASE("the table of options is sound") {
  std::set<std::pair<std::string, unsigned>> seen;
  for (const Option& option : all_options()) {
    CAPTURE(option.name);
    CHECK_GT(std::string(option.help).size(), 0);
    for (unsigned bit = 1; bit <= kBenchLaunch; bit *= 2)
      if (option.commands & bit) CHECK(seen.insert({option.name, bit}).second);
    const Config defaults;
    const std::string text = value_text(defaults, option);  // each default is a value that the flag would take
    if (!text.empty()) {
      Config copy;
      CHECK_NOTHROW(set_value(copy, option, text, option.name));
      CHECK_EQ(value_text(copy, option), text);
    }
  }
  CHECK_GT(seen.size(), 60);
}
