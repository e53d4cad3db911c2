#include "apps/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>

#include "engine/check.h"

namespace tapedeck {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void failed(const fs::path& path, const char* what, int cause) {
  throw Error(text("{}: cannot be {}: {}", path.string(), what, std::strerror(cause)));
}

// Writes all of it and forces it to the disk; `wanted` is the path to name in a message. On failure nothing is left at
// `path`, unless that is the wanted file itself.
void write_through(const fs::path& path, const fs::path& wanted, std::string_view bytes) {
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  if (!file) failed(wanted, "written", errno);
  errno = 0;
  bool good = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size() && std::fflush(file) == 0 &&
              force_to_disk(fileno(file));
  int cause = errno;
  if (std::fclose(file) != 0 && good) good = false, cause = errno;
  if (good) return;
  if (path != wanted) std::remove(path.c_str());
  failed(wanted, "written", cause);
}

void sync_folder(const fs::path& path) {
  const int folder = open(path.empty() ? "." : path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) failed(path, "opened", errno);
  const bool good = force_to_disk(folder);
  const int cause = errno;
  close(folder);
  if (!good) failed(path, "written", cause);
}

// Of what keeps a file from being opened; a full disk is none of the name's fault.
bool another_name_helps(int cause) {
  for (const int of_name : {ENOENT, ENOTDIR, EISDIR, EACCES, EPERM, EROFS, ENAMETOOLONG, ELOOP})
    if (cause == of_name) return true;
  return false;
}

fs::path temporary(const fs::path& path) { return path.string() + std::string(unfinished); }

}  // namespace

bool force_to_disk(int descriptor) { return fsync(descriptor) == 0 || errno == EINVAL || errno == EROFS; }

void write_file(const fs::path& path, std::string_view bytes) {
  std::error_code none;
  const fs::file_status there = fs::symlink_status(path, none);  // a device, pipe or link must not be renamed over
  if (fs::exists(there) && !fs::is_regular_file(there)) return write_through(path, path, bytes);
  write_through(temporary(path), path, bytes);
  if (std::rename(temporary(path).c_str(), path.c_str()) != 0) {
    const int cause = errno;
    std::remove(temporary(path).c_str());
    failed(path, "written", cause);
  }
  sync_folder(path.parent_path());
}

void check_writable(const fs::path& path) {
  std::error_code none;
  const fs::file_status there = fs::status(path, none);
  if (fs::is_directory(there)) throw UsageError(text("{}: is a folder, needs a file; name one in it", path.string()));
  if (fs::exists(there) && !fs::is_regular_file(there)) return;  // a device or pipe is only tried by writing to it
  if (std::FILE* const file = std::fopen(temporary(path).c_str(), "wb"))
    std::fclose(file);
  else if (const int cause = errno; another_name_helps(cause))
    throw UsageError(text("{}: cannot be written: {}; choose another name", path.string(), std::strerror(cause)));
  write_through(temporary(path), path, "");
  std::remove(temporary(path).c_str());
}

void write_folder(const fs::path& path, const std::map<std::string, std::string>& files) {
  const fs::path building = temporary(path);
  std::error_code ignored;
  fs::remove_all(building, ignored);
  try {
    const fs::path parent = path.parent_path();
    std::error_code cause;
    if (fs::create_directory(parent, cause)) sync_folder(parent.parent_path());
    if (cause) failed(path, "made", cause.value());
    if (fs::create_directory(building, cause); cause) failed(path, "made", cause.value());
    for (const auto& [name, bytes] : files) write_through(building / name, path / name, bytes);
    sync_folder(building);
    if (std::rename(building.c_str(), path.c_str()) != 0) failed(path, "made", errno);
    sync_folder(path.parent_path());
  } catch (...) {
    fs::remove_all(building, ignored);
    throw;
  }
}

void refuse_to_replace(const char* option, const std::string& path, bool force) {
  std::error_code none;
  if (!force && fs::is_regular_file(path, none))
    throw UsageError(text("--{} {}: is there already; choose another name, or --force to replace it", option, path));
}

void remove_folder(const fs::path& path) {
  std::error_code cause;
  fs::rename(path, temporary(path), cause);
  if (!cause) fs::remove_all(temporary(path), cause);
  if (cause) failed(path, "removed", cause.value());
}

std::string read_file(const fs::path& path) {
  std::error_code none;
  if (fs::is_directory(path, none)) failed(path, "read", EISDIR);
  std::ifstream in(path, std::ios::binary);
  if (!in) failed(path, "read", errno);
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  if (in.bad()) failed(path, "read", EIO);
  return bytes;
}

}  // namespace tapedeck
