// What guards the buffers of a checked arena: fresh memory is filled with 0xFF, which is NaN in every floating format,
// and a red zone behind each buffer shows who writes past its end. Under AddressSanitizer red zones and freed memory
// are poisoned as well, so that it stops the program at the access itself.
//
// On a device whose work is deferred all this must happen when the device gets there, not when the host asks: a kernel
// that still waits may use a buffer which the host has freed. So the functions here belong to the device's time.
// Any thread may call any member.
#pragma once
#include <cstddef>
#include <map>
#include <mutex>
#include <string>

namespace tapedeck {

class RedZones {
 public:
  static constexpr size_t bytes = 256;  // at least so much lies behind each buffer

  void open(char* buffer, size_t size, size_t padded);  // a new buffer; [size, padded) is its red zone
  void close(char* buffer) noexcept;                    // freed; an unknown one is ignored
  void check();  // throws Error naming the first buffer that was written past its end, freed meanwhile or not

 private:
  struct Buffer {
    size_t size, padded;
  };
  using Open = std::map<char*, Buffer>;
  void forget(Open::iterator buffer);
  void forget_overlapping(char* begin, size_t bytes);

  std::mutex mutex_;
  Open open_;
  std::string overrun_;  // found when a buffer was closed, reported by the next check
};

}  // namespace tapedeck
