// tapedeck inspect RUN --prompt TEXT: what each attention head of a trained gpt looks at, as text, SVG or JSON.
#include <iostream>

#include "apps/attention_picture.h"
#include "apps/cli.h"
#include "apps/commands.h"
#include "apps/files.h"
#include "apps/record.h"
#include "apps/saved_gpt.h"
#include "data/utf8.h"

namespace tapedeck {
namespace {

std::vector<AttentionMap> read_maps(const std::vector<Tensor>& blocks) {  // [1, heads, T, T] of each
  std::vector<AttentionMap> maps;
  for (size_t layer = 0; layer < blocks.size(); ++layer) {
    const std::vector<double> all = blocks[layer].doubles();
    const int64_t heads = blocks[layer].shape[1], size = std::ssize(all) / heads;
    for (int64_t head = 0; head < heads; ++head)
      maps.push_back({static_cast<int64_t>(layer), head, {all.begin() + head * size, all.begin() + (head + 1) * size}});
  }
  return maps;
}

}  // namespace

int run_inspect(const Config& asked) {
  if (!asked.svg.empty()) refuse_to_replace("svg", asked.svg, asked.force);
  const SavedGpt gpt = load_gpt(asked);
  const std::vector<int32_t> prompt = gpt.prompt(asked);
  if (std::ssize(prompt) > gpt.model->shape.context)
    throw UsageError(text("--prompt: has {} tokens, and the model looks at {}; make it shorter", prompt.size(),
                          gpt.model->shape.context));
  const NoTape off;
  const std::vector<AttentionMap> maps = read_maps(gpt.model->attention_maps(gpt.as_ids(prompt)));
  std::vector<std::string> tokens;
  std::vector<std::string> shown;  // on a terminal
  for (const int32_t token : prompt) {
    const std::string name = gpt.tokenizer.decode(std::span(&token, 1));
    shown.push_back(printable(name));
    tokens.push_back(is_utf8(name) ? name : shown.back());  // JSON knows no bytes
  }
  if (!asked.svg.empty()) write_file(asked.svg, attention_svg(maps, shown));
  if (!asked.json) {
    std::cout << attention_text(maps, shown);
    return exit_done;
  }
  Json heads = Json::array();
  for (const AttentionMap& map : maps)
    heads.push_back({{"layer", map.layer}, {"head", map.head}, {"weights", map.weights}});
  std::cout << json_text({{"format_version", kFormatVersion},
                          {"command", "inspect"},
                          {"source", gpt.saved.source},
                          {"tokens", tokens},
                          {"heads", heads}})
            << "\n";
  return exit_done;
}

}  // namespace tapedeck
