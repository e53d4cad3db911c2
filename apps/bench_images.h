// Made-up images for `tapedeck bench loader`: the same ones in memory, as text and as a shard.
#pragma once
#include <string>

#include "data/dataset.h"

namespace tapedeck {

class BenchImages {
 public:
  // 8,192 images of 28x28 bytes with 10 classes, in a new temporary folder. As in handwriting four of five bytes are 0,
  // which is what text writes shortest. Throws Error with path and cause.
  BenchImages();

  // Each opened anew, so that a reader begins without what an earlier one has checked or kept. Rows and splits agree.
  const Dataset& memory() const { return memory_; }
  Dataset csv() const;  // decoded at each read
  Dataset shard() const;

  int64_t csv_bytes() const, shard_bytes() const;

 private:
  struct Folder {
    Folder();
    ~Folder();  // with all in it
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    std::string path;
  };
  Folder folder_;
  Dataset memory_;
  std::string csv_ = folder_.path + "/images.csv", shard_ = folder_.path + "/images.shard";
};

}  // namespace tapedeck
