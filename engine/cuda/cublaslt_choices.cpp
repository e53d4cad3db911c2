#include "engine/cuda/cublaslt_choices.h"

#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "engine/check.h"

namespace tapedeck {
namespace {

constexpr std::string_view first_line = "tapedeck gemm choices 1";
constexpr std::string_view hex_digits = "0123456789abcdef";

std::string hex(const cublasLtMatmulAlgo_t& algorithm) {
  unsigned char bytes[sizeof algorithm];
  std::memcpy(bytes, &algorithm, sizeof bytes);
  std::string out;
  for (const unsigned char byte : bytes) out += {hex_digits[byte >> 4], hex_digits[byte & 15]};
  return out;
}

std::optional<cublasLtMatmulAlgo_t> from_hex(std::string_view digits) {
  unsigned char bytes[sizeof(cublasLtMatmulAlgo_t)];
  if (digits.size() != 2 * sizeof bytes) return {};
  for (size_t i = 0; i < sizeof bytes; ++i) {
    const size_t high = hex_digits.find(digits[2 * i]), low = hex_digits.find(digits[2 * i + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos) return {};
    bytes[i] = static_cast<unsigned char>(high << 4 | low);
  }
  cublasLtMatmulAlgo_t algorithm;
  std::memcpy(&algorithm, bytes, sizeof bytes);
  return algorithm;
}

// Nothing where one line is not as it should be.
std::optional<std::map<std::string, cublasLtMatmulAlgo_t>> read(std::istream& in) {
  std::map<std::string, cublasLtMatmulAlgo_t> choices;
  std::string line;
  if (!std::getline(in, line) || line != first_line) return {};
  while (std::getline(in, line)) {
    const size_t colon = line.find(": ");
    if (colon == std::string::npos) return {};
    const auto algorithm = from_hex(std::string_view(line).substr(colon + 2));
    if (!algorithm) return {};
    choices[line.substr(0, colon)] = *algorithm;
  }
  return choices;
}

}  // namespace

CublasLtChoices::CublasLtChoices(std::filesystem::path file) : file_(std::move(file)) {
  std::ifstream in(file_);
  if (!in) return;
  if (auto choices = read(in))
    choices_ = std::move(*choices);
  else
    std::fputs(text("tapedeck: {} is damaged or of another version: ignored\n", file_.string()).c_str(), stderr);
}

const cublasLtMatmulAlgo_t* CublasLtChoices::find(const std::string& key) const {
  const auto found = choices_.find(key);
  return found == choices_.end() ? nullptr : &found->second;
}

void CublasLtChoices::remember(const std::string& key, const cublasLtMatmulAlgo_t& algorithm) {
  choices_[key] = algorithm;
  write();
}

void CublasLtChoices::write() {
  std::map<std::string, cublasLtMatmulAlgo_t> all = choices_;
  if (std::ifstream in(file_); in)
    if (auto of_others = read(in)) all.merge(*of_others);
  std::error_code error;
  std::filesystem::create_directories(file_.parent_path(), error);
  const std::filesystem::path temporary = file_.string() + text(".{}", static_cast<int64_t>(getpid()));
  std::ofstream out(temporary);
  out << first_line << '\n';
  for (const auto& [key, algorithm] : all) out << key << ": " << hex(algorithm) << '\n';
  out.close();
  if (out) std::filesystem::rename(temporary, file_, error);
  if ((!out || error) && !std::exchange(noted_, true))
    std::fputs(text("tapedeck: cannot write {}: products are timed again in each run\n", file_.string()).c_str(),
               stderr);
}

}  // namespace tapedeck
