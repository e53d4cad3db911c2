#include "engine/cuda/cublaslt.h"

#include <algorithm>
#include <utility>

#include "engine/cache_folder.h"
#include "engine/check.h"

namespace tapedeck {
namespace {

std::filesystem::path choices_file(const std::string& gpu, size_t version) {
  std::string name = text("gemm-{}-{}.txt", gpu, version);
  for (char& c : name)
    if (c == ' ' || c == '/') c = '-';
  return cache_folder() / name;
}

size_t bytes_of_c(const Gemm& g) {
  return static_cast<size_t>((g.batch - 1) * g.stride_c + g.m * g.n) * size_of(g.type_of_c());
}

}  // namespace

CublasLt::CublasLt(const CublasLtFunctions& functions, CublasLtHost host, const std::string& gpu)
    : f_(functions), host_(std::move(host)) {
  const cublasStatus_t status = f_.create(&handle_);
  CHECK(status == CUBLAS_STATUS_SUCCESS, "cuda: cuBLASLt does not start: {}", f_.status_name(status));
  choices_ = std::make_unique<CublasLtChoices>(choices_file(gpu, f_.version()));
}

CublasLt::~CublasLt() { f_.destroy(handle_); }

bool CublasLt::run(const Gemm& g, const Place& place) {
  // Only cuBLASLt can read its masks, and it only its own: a mask goes to the side that wrote it.
  if (g.epilogue == Epilogue::drelu) {
    if (g.k == 0 || !its_own_masks_.contains(g.aux)) return false;  // k = 0 gives 0 whatever the mask says
    if (multiply(g, place)) return true;
    CHECK(
        g.bias_gradient || g.output,
        "gemm: cuBLASLt wrote a mask of relu but cannot read it in {}: pass the output too, or use another activation",
        in_words(g));
    return false;  // it is asked again without the bias gradient; then a kernel of ours reads the output
  }
  const bool done = multiply(g, place);
  if (g.epilogue == Epilogue::bias_relu && g.aux) {
    if (done)
      its_own_masks_.insert(g.aux);
    else
      its_own_masks_.erase(g.aux);
  }
  return done;
}

bool CublasLt::multiply(const Gemm& g, const Place& place) {
  if (g.k == 0 || !CublasLtProblem::can_express(g)) return false;
  const CublasLtProblem problem(f_, g, place.workspace_bytes);
  cublasLtMatmulAlgo_t algorithm;
  if (!choose(problem, g, place, algorithm)) return false;
  check_cublaslt(f_, problem.multiply(handle_, algorithm, g.c, place.workspace, place.stream), "cublasLtMatmul", g);
  return true;
}

bool CublasLt::choose(const CublasLtProblem& problem, const Gemm& g, const Place& place, cublasLtMatmulAlgo_t& chosen) {
  const std::string key = problem.key();
  if (impossible_.contains(key)) return false;
  if (const cublasLtMatmulAlgo_t* remembered = choices_->find(key)) {
    if (accepted_.contains(key) || problem.accepts(handle_, *remembered)) {
      accepted_.insert(key);
      chosen = *remembered;
      return true;
    }
    choices_->forget(key);
  }
  constexpr int most = 16;
  const auto candidates = problem.algorithms(handle_, most);
  if (candidates.empty()) {
    impossible_.insert(key);
    return false;
  }
  if (host_.capturing()) {
    chosen = candidates.front();
    return true;
  }
  chosen = fastest(problem, g, place, candidates);
  choices_->remember(key, chosen);
  accepted_.insert(key);
  return true;
}

cublasLtMatmulAlgo_t CublasLt::fastest(const CublasLtProblem& problem, const Gemm& g, const Place& place,
                                       const std::vector<cublasLtMatmulAlgo_t>& candidates) const {
  // With beta the product reads C, so C must not change until the algorithm that counts runs. Everything else that a
  // product writes (aux, bias gradient) it writes anew each time.
  const std::shared_ptr<void> beside = g.beta == 0 ? nullptr : host_.scratch(bytes_of_c(g));
  void* const out = beside ? beside.get() : g.c;
  cublasLtMatmulAlgo_t best = candidates.front();
  double best_seconds = 0;
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
  bool any = false;
  for (const cublasLtMatmulAlgo_t& candidate : candidates) {
    const auto once = [&] {
      return host_.seconds([&] { status = problem.multiply(handle_, candidate, out, place.workspace, place.stream); });
    };
    once();  // loads the kernel
    if (status != CUBLAS_STATUS_SUCCESS) continue;
    double seconds = once();
    for (int repeat = 0; repeat < 2; ++repeat) seconds = std::min(seconds, once());
    if (any && seconds >= best_seconds) continue;
    best = candidate, best_seconds = seconds, any = true;
  }
  if (!any) check_cublaslt(f_, status, "cublasLtMatmul", g);
  return best;
}

}  // namespace tapedeck
