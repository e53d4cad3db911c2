#include "apps/sweep/parallel_parts.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "apps/interrupt.h"
#include "apps/options.h"
#include "engine/check.h"

namespace tapedeck {
namespace {

constexpr const char* kParent = "TAPEDECK_PART_OF";  // environment of a part: the process that started it

std::vector<std::string> words_of(const Config& config, const std::filesystem::path& folder, int64_t part) {
  constexpr std::string_view own[] = {"parallel", "part", "out", "threads", "quiet", "json", "config"};
  std::vector<std::string> words = {"tapedeck", "sweep"};
  for (const Option& option : all_options()) {
    if (!(option.commands & kSweep) || config.origin(option.name) < Origin::file) continue;
    if (std::find(std::begin(own), std::end(own), option.name) != std::end(own)) continue;
    const std::string value = value_text(config, option);
    if (value.empty() || (option.is_flag() && value == "false")) continue;
    words.push_back("--" + std::string(option.name));
    if (!option.is_flag()) words.push_back(value);
  }
  for (const std::string& word :
       {std::string("--out"), folder.string(), std::string("--part"), fmt::format("{}/{}", part, config.parallel),
        std::string("--threads"), fmt::format("{}", std::max<int64_t>(1, config.threads / config.parallel)),
        std::string("--quiet")})
    words.push_back(word);
  return words;
}

// For as long as it lives, what this thread starts runs on its share of the cores.
class Cores {
 public:
  Cores(int64_t part, int64_t of) {
    CPU_ZERO(&before_);
    sched_getaffinity(0, sizeof before_, &before_);
    std::vector<int> allowed;
    for (int core = 0; core < CPU_SETSIZE; ++core)
      if (CPU_ISSET(core, &before_)) allowed.push_back(core);
    const auto n = static_cast<int64_t>(allowed.size());
    cpu_set_t mine;
    CPU_ZERO(&mine);
    for (int64_t i = 0; i < std::max<int64_t>(1, n / of); ++i)  // fewer cores than parts: some share one
      CPU_SET(allowed[static_cast<size_t>((part * n / of + i) % n)], &mine);
    sched_setaffinity(0, sizeof mine, &mine);
  }
  ~Cores() { sched_setaffinity(0, sizeof before_, &before_); }
  Cores(const Cores&) = delete;
  Cores& operator=(const Cores&) = delete;

 private:
  cpu_set_t before_;
};

// A process group of its own: Ctrl-C reaches us, and we pass it on, once.
pid_t start(const std::vector<std::string>& words) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);  // the report is the whole sweep's
  pid_t id = 0;
  setenv(kParent, std::to_string(getpid()).c_str(), 1);
  const int failure = posix_spawn(&id, "/proc/self/exe", &files, &attributes, argv.data(), environ);
  unsetenv(kParent);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  CHECK(failure == 0, "a part of the sweep cannot be started: {}", std::strerror(failure));
  return id;
}

}  // namespace

void run_parts(const Config& config, const std::filesystem::path& folder) {
  std::vector<pid_t> running;
  for (int64_t part = 0; part < config.parallel; ++part) {
    const Cores cores(part, config.parallel);
    running.push_back(start(words_of(config, folder, part + 1)));
  }
  bool broken = false;
  const auto ended = [&](pid_t id) {
    int status = 0;
    if (waitpid(id, &status, WNOHANG) == 0) return false;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) broken = true;
    return true;
  };
  for (bool told = false; !running.empty();) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    running.erase(std::remove_if(running.begin(), running.end(), ended), running.end());
    if ((!broken && !Interruption::asked()) || std::exchange(told, true)) continue;
    for (const pid_t id : running) kill(id, SIGTERM);
    if (!Interruption::asked()) std::cerr << "a part of the sweep failed or was killed: going on one cell at a time\n";
  }
}

bool is_part_of_parallel() { return std::getenv(kParent) != nullptr; }

bool orphaned() {
  const char* const parent = std::getenv(kParent);
  return parent && std::to_string(getppid()) != parent;
}

}  // namespace tapedeck
