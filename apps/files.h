// Files that survive: whole or not at all, also when the machine stops while they are written.
//   write under another name, fsync, rename over the old one, fsync the folder   [Pillai et al. 2014, OSDI, §3]
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

namespace tapedeck {

// Replaces or creates a file so that a reader sees the old or the new one, never half. What is not a plain file
// (/dev/stdout) is written in place. Throws Error with path and cause.
void write_file(const std::filesystem::path& path, std::string_view bytes);

// Whether write_file would find room for a name there, before hours go into what is to be written. Throws
// UsageError where another name would help (a folder that is missing, or may not be written to), else Error.
void check_writable(const std::filesystem::path& path);

// Throws UsageError where a file of this name is there already, unless forced. Devices and pipes are written to.
void refuse_to_replace(const char* option, const std::string& path, bool force);

// Makes a folder that holds these files; it appears at once, complete. Throws Error with path and cause, and then
// nothing is left of it. The folder must not exist; the one above its parent must.
void write_folder(const std::filesystem::path& path, const std::map<std::string, std::string>& files);

// fsync, where there is a disk to force things to: pipes and devices have none. False with errno on failure.
bool force_to_disk(int descriptor);

// Takes a folder away so that no half of it is ever seen under its name.
void remove_folder(const std::filesystem::path& path);

// The ending of what is being written or taken away; what bears it after a crash may be deleted.
inline constexpr std::string_view unfinished = ".tmp";

std::string read_file(const std::filesystem::path& path);  // all its bytes; throws Error with path and cause

}  // namespace tapedeck
