// Data sets made by formula: two features, so that a person can plot what a network does. Their random numbers come
// from one fixed seed, so every run and every machine has the same rows.
#pragma once
#include "data/dataset.h"

namespace tapedeck {

// Three arms of 1,000 points that wind around each other; class k, radius r uniform in [0, 1):
//   (r sin a, r cos a),  a = 4 (k + r) + 0.2 z,  z standard normal        [CS231n, "Minimal neural network case study"]
// No line separates them, so a net without a hidden layer stays near 1/2, and a small one with one nears 1.
Dataset make_spirals(const DataOptions& options);

// Four normal clouds of 1,000 points with deviation 1 around the corners (±2, ±2) of a square. The best that any
// classifier can do is known: nearest corner, right with probability Φ(2)² = 0.9550.
Dataset make_blobs(const DataOptions& options);

}  // namespace tapedeck
