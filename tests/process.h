// The built program as a process of its own, to be watched, signalled and killed.
#pragma once
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/gpu.h"
#include "tests/this_build.h"

namespace tapedeck::test {

class Process {
 public:
  // tapedeck train …, its two streams going to files in `folder`.
  Process(std::vector<std::string> words, const std::string& folder)
      : out_(folder + "/stdout.txt"), err_(folder + "/stderr.txt") {
    words = on_cpu(std::move(words));
    words.insert(words.begin(), build_dir() + "/tapedeck");
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    id_ = fork();
    if (id_ < 0) throw std::runtime_error("no process for a test");
    if (id_ == 0) {
      for (const auto& [path, descriptor] : {std::pair{out_, 1}, std::pair{err_, 2}})
        dup2(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644), descriptor);
      execv(argv[0], argv.data());
      _exit(127);
    }
  }
  ~Process() {
    if (id_ <= 0) return;
    kill(id_, SIGKILL);
    waitpid(id_, nullptr, 0);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t id() const { return id_; }
  void signal(int number) { kill(id_, number); }

  // Its exit code, 128 + number where a signal ended it, as shells say it; -1: it still runs after so many seconds.
  int wait(double seconds = 60) {
    int status = 0;
    const auto ended = [&] { return waitpid(id_, &status, WNOHANG) == id_; };
    if (!within(seconds, ended)) return -1;
    id_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  std::string out() const { return text(out_); }
  std::string err() const { return text(err_); }

  // Asks again and again until it is so; false: not within that time.
  static bool within(double seconds, const std::function<bool()>& so) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    while (!so()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    return true;
  }

 private:
  static std::string text(const std::string& path) {
    std::ostringstream all;
    all << std::ifstream(path).rdbuf();
    return all.str();
  }

  pid_t id_;
  std::string out_, err_;
};

}  // namespace tapedeck::test
