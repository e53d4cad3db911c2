// tapedeck data fetch mnist: the four files of MNIST, from the first mirror that has them, held against their SHA-256.
//
// Downloading is left to the program curl, and hashing to sha256sum of coreutils, run as programs and only here: linked
// to libcurl, every start of tapedeck would load 30 more libraries, which takes 6 ms.
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>

#include "apps/child.h"
#include "apps/cli.h"
#include "apps/commands.h"
#include "apps/files.h"
#include "apps/progress.h"
#include "data/byte_count.h"
#include "data/mnist.h"
#include "data/packed_file.h"
#include "engine/check.h"

namespace tapedeck {
namespace {

namespace fs = std::filesystem;

struct RemoteFile {
  const char* name;
  const char* sha256;  // of the unpacked content, so that any packing will do
};
constexpr RemoteFile files[] = {
    {mnist_files[0], "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"},
    {mnist_files[1], "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"},
    {mnist_files[2], "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"},
    {mnist_files[3], "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"},
};
constexpr const char* known_mirrors[] = {"https://ossci-datasets.s3.amazonaws.com/mnist/",
                                         "https://storage.googleapis.com/cvdf-datasets/mnist/"};

std::string offline() {
  return fmt::format("Without a network, copy {}.gz from {} into the folder of --data-dir",
                     fmt::join(mnist_files, ".gz, "), known_mirrors[0]);
}

// Throws Error when a program that is needed later is not installed.
void find_programs() {
  for (const char* program : {"curl", "sha256sum"})
    if (!run_program({program, "--version"}))
      throw Error(fmt::format("needs the program {}, which is not installed. {}", program, offline()));
}

// The SHA-256 of a file's content, unpacked. Throws Error when gzip data is damaged or cut short.
std::string sha256(const fs::path& path) {
  PackedFile file(path);
  const std::optional<Finished> run =
      run_program({"sha256sum"}, [&](uint8_t* out, size_t n) { return file.read(out, n); });
  CHECK(run && run->code == 0 && run->out.size() > 64, "sha256sum: failed on {}", path.string());
  return run->out.substr(0, 64);
}

// Throws Error unless the file's content is what it should be.
void check_content(const fs::path& path, const RemoteFile& file) {
  const std::string hash = sha256(path);
  if (hash != file.sha256)
    throw Error(
        fmt::format("is another file: its content has SHA-256 {:.16}…, but MNIST's has {:.16}…", hash, file.sha256));
}

// A download before it has its name; gone at the end of the scope unless kept.
class PartFile {
 public:
  explicit PartFile(const fs::path& wanted) : path_(wanted.string() + ".part"), wanted_(wanted) {
    std::FILE* file = std::fopen(path_.c_str(), "wb");  // where this fails, no mirror can help
    if (!file) throw Error(fmt::format("{}: cannot be written: {}", path_.string(), std::strerror(errno)));
    std::fclose(file);
  }
  ~PartFile() {
    std::error_code ignored;
    fs::remove(path_, ignored);
  }
  const fs::path& path() const { return path_; }
  void keep() { write_file(wanted_, read_file(path_)); }  // 10 MB at most, and on the disk afterwards

 private:
  fs::path path_, wanted_;
};

// Throws Error with curl's words when it fails.
void download(const std::string& url, const fs::path& to, bool quiet) {
  const bool live = !quiet && stderr_is_terminal();
  std::vector<std::string> words = {"curl",      "--disable",
                                    "--fail",    "--location",
                                    "--globoff", "--retry",
                                    "2",         "--connect-timeout",
                                    "20",        "--speed-limit",
                                    "1000",      "--speed-time",
                                    "30",  // bytes a second, seconds
                                    "--proto",   url.starts_with("file:") ? "=file" : "=https,http",
                                    "--output",  to.string(),
                                    "--url",     url};
  if (live)
    words.push_back("--progress-bar");
  else
    words.insert(words.end(), {"--silent", "--show-error", "--stderr", "-"});  // its message comes to us
  const Finished curl = run_program(words).value();
  if (curl.code != 0)
    throw Error(curl.out.empty() ? fmt::format("curl ended with exit code {}", curl.code)
                                 : curl.out.substr(0, curl.out.find('\n')));
}

// From the first mirror that has it, which then comes first for the next file.
void fetch(const RemoteFile& file, const fs::path& folder, std::vector<std::string>& mirrors, bool quiet) {
  const std::string packed = fmt::format("{}.gz", file.name);
  PartFile part(folder / packed);
  std::string failures;
  for (std::string& mirror : mirrors) try {
      if (!quiet) std::cerr << "fetching " << mirror << packed << std::endl;
      download(mirror + packed, part.path(), quiet);
      check_content(part.path(), file);
      part.keep();
      std::cout << fmt::format("{:<26}  {} bytes, SHA-256 {:.16}…\n", packed, grouped(fs::file_size(folder / packed)),
                               file.sha256);
      std::swap(mirrors.front(), mirror);
      return;
    } catch (const Error& e) {
      failures += fmt::format("{}{}: {}. ", mirror, packed, e.what());
    }
  throw Error(fmt::format("{} cannot be fetched. {}{}", packed, failures, offline()));
}

// Whether the file is there already, plain or packed. One of that name that is another file is not ours to replace.
bool is_there(const RemoteFile& file, const fs::path& folder) {
  for (const char* ending : {"", ".gz"}) {
    const fs::path path = folder / fmt::format("{}{}", file.name, ending);
    if (!fs::exists(path)) continue;
    try {
      check_content(path, file);
    } catch (const Error& e) {
      throw Error(fmt::format("{}: {}; move it away, or choose another --data-dir", path.string(), e.what()));
    }
    std::cout << fmt::format("{:<26}  already there\n", path.filename().string());
    return true;
  }
  return false;
}

std::vector<std::string> mirrors_of(const Config& config) {
  if (config.mirror.empty()) return {std::begin(known_mirrors), std::end(known_mirrors)};
  for (const char* scheme : {"https://", "http://", "file://"})
    if (config.mirror.starts_with(scheme)) return {config.mirror + (config.mirror.ends_with('/') ? "" : "/")};
  throw UsageError(fmt::format("--mirror {}: must begin with https://, http:// or file://", config.mirror));
}

int fetch_all(const fs::path& folder, std::vector<std::string>& mirrors, bool quiet) {
  find_programs();
  std::error_code failure;
  const bool made = fs::create_directory(folder, failure);
  if (failure) throw Error(fmt::format("{}: cannot be made: {}", folder.string(), failure.message()));
  try {
    for (const RemoteFile& file : files)
      if (!is_there(file, folder)) fetch(file, folder, mirrors, quiet);
  } catch (...) {
    if (made) fs::remove(folder, failure);  // stays when a file in it is complete
    throw;
  }
  std::cout << fmt::format("mnist is in {0}: try tapedeck train --data mnist --data-dir {0}\n", folder.string());
  return exit_done;
}

}  // namespace

int run_data_fetch(const Config& config) {
  if (config.data != "mnist") throw UsageError(fmt::format("{} is nothing to download; only mnist is", config.data));
  if (config.data_dir.empty()) throw UsageError("needs --data-dir, the folder to download into");
  std::vector<std::string> mirrors = mirrors_of(config);
  const PassSignalsOn until_the_end;
  try {
    return fetch_all(config.data_dir, mirrors, config.quiet);
  } catch (const Interrupted&) {
    std::cerr << "tapedeck data fetch: interrupted" << std::endl;
    return exit_interrupted;
  }
}

}  // namespace tapedeck
