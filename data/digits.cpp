#include "data/digits.h"

namespace tapedeck {
namespace {

// Of each image 64 pixels, the class, and a string's zero.
const char images[digits_rows][66] = {
#include "data/digits_images.inc"
};

}  // namespace

Dataset load_digits() {
  Dataset data{.name = "digits", .shape = "8x8x1", .features = 64, .classes = 10, .pixel_scale = 1.0f / 16};
  for (const char* image : images) {
    for (int i = 0; i < 64; ++i) {
      const int value = image[i] <= '9' ? image[i] - '0' : image[i] - 'A' + 10;
      data.pixels.push_back(static_cast<uint8_t>(value));
    }
    data.labels.push_back(image[64] - '0');
  }
  check_labels(data.labels, data.classes, "the embedded digits");
  split(data, digits_validation_rows, digits_test_rows, digits_split_seed);
  check(data);
  return data;
}

}  // namespace tapedeck
