#include "apps/cli.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <map>
#include <new>

#include "apps/machine.h"
#include "apps/options.h"
#include "data/nearest.h"
#include "engine/check.h"

namespace tapedeck {
namespace {

std::string overview(std::span<const Command> commands) {
  std::string out = "tapedeck trains small neural networks and says how long they took to reach a target.\n\n";
  out += "usage: tapedeck COMMAND [options]\n\n";
  for (const Command& command : commands) out += fmt::format("  {:<13} {}\n", command.name, command.help);
  out += "\n  --version     compiler, flags, libraries and commit\n";
  out += "  --help        this page; after a command: its options\n\n";
  return out + "Try `tapedeck train`: it trains on handwritten digits until 97 % are right.\n";
}

std::string help(const Command& command) {
  const unsigned bit = command_bit(command.name);
  std::string positionals, lines;
  Config defaults;
  for (const Option& option : all_options()) {
    if (!(option.commands & bit)) continue;
    const bool positional = option.is_positional();
    std::string name = (positional ? "" : "--") + std::string(option.name);
    if (positional)
      positionals += option.form == Option::Form::word   ? fmt::format(" [{}]", option.name)
                     : option.form == Option::Form::list ? fmt::format(" {}...", option.name)
                                                         : fmt::format(" {}", option.name);
    std::string notes(option.choices);
    if (!positional && !option.is_flag()) {
      const std::string value = option.fallback ? option.fallback : value_text(defaults, option);
      notes += (notes.empty() ? "default " : "; default ") + value;
    }
    lines += fmt::format("  {:<16} {}{}\n", name, option.help, notes.empty() ? "" : " [" + notes + "]");
  }
  return fmt::format(
      "tapedeck {0}: {1}\n\nusage: tapedeck {0}{2} [options]\n\n{3}  {4:<16} this page\n\nexample: {5}\n", command.name,
      command.help, positionals, lines, "--help", command.example);
}

std::string nearest_command(std::string_view name, std::span<const Command> commands) {
  const Command* best = &commands.front();
  for (const Command& command : commands)
    if (edit_distance(name, command.name) < edit_distance(name, best->name)) best = &command;
  return best->name;
}

// CLI11 splits the line into options and their raw texts, and lets everything pass that we judge ourselves.
struct Parser {
  CLI::App app;
  std::map<std::string, CLI::App*, std::less<>> nodes;  // by command name: "train", "data", "data info"

  explicit Parser(std::span<const Command> commands) {
    open(app);
    app.add_flag("--version");
    for (const Command& command : commands) {
      const std::string name = command.name;
      CLI::App* parent = &app;
      if (const size_t space = name.find(' '); space != name.npos) {  // a command within a command
        CLI::App*& group = nodes[name.substr(0, space)];
        if (!group) group = open(*app.add_subcommand(name.substr(0, space)));
        parent = group;
      }
      CLI::App* leaf = nodes[name] = open(*parent->add_subcommand(name.substr(name.find(' ') + 1)));
      for (const Option& option : all_options())
        if (option.commands & command_bit(command.name)) add(*leaf, option);
    }
  }

  static CLI::App* open(CLI::App& node) {
    node.set_help_flag();
    node.add_flag("-h,--help");
    node.allow_extras();
    node.require_subcommand(0, 1);  // what follows a command is not a second one, though it may read like one
    return &node;
  }

  static void add(CLI::App& node, const Option& option) {
    const bool positional = option.is_positional();
    const std::string name = (positional ? "" : "--") + std::string(option.name);
    CLI::Option* added = option.is_flag() ? node.add_flag(name) : node.add_option(name);
    if (!option.is_flag()) added->expected(positional ? 1 : 0, 1);  // a missing value is an empty text
    if (option.form == Option::Form::list) added->allow_extra_args();
    added->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);  // a repetition is ours to refuse
  }
};

// The options of one command as they stood on the line.
std::vector<Setting> settings(const CLI::App& leaf, unsigned command) {
  std::vector<Setting> out;
  for (const Option& option : all_options()) {
    if (!(option.commands & command)) continue;
    const bool positional = option.is_positional();
    const CLI::Option* given = leaf.get_option((positional ? "" : "--") + std::string(option.name));
    if (given->empty() && option.is_positional() && option.form != Option::Form::word)
      throw UsageError(fmt::format("{} is missing: {}", option.name, option.help));
    for (const std::string& value : given->results()) out.push_back({option.name, value});
  }
  return out;
}

void refuse_leftovers(const CLI::App& leaf, unsigned command) {
  for (const std::string& word : leaf.remaining()) {
    if (!word.starts_with("-")) throw UsageError(fmt::format("unexpected argument \"{}\"", word));
    const std::string name = word.substr(0, word.find('='));
    const std::string nearest =
        nearest_option(name.substr(std::min(name.find_first_not_of('-'), name.size())), command);
    throw UsageError(fmt::format("unknown option {}; {}", name,
                                 nearest.empty() ? "this command takes none" : "the nearest is --" + nearest));
  }
}

// What went out of memory, and which options of this command ask for less of it. A message that names options already
// stays as it is.
std::string with_hint(const std::string& message, const Config& config) {
  if (message.find("--") != message.npos) return message;
  struct Size {
    std::string_view option, of;  // of: the only kind of model or data that it belongs to
  };
  static constexpr Size sizes[] = {{"batch", ""},     {"batches", ""},  {"sizes", ""},
                                   {"tokens", ""},    {"contexts", ""}, {"context", "text:"},
                                   {"hidden", "mlp"}, {"width", "gpt"}, {"layers", "gpt"}};
  const unsigned bit = command_bit(config.command);
  std::string list;
  for (const auto& [option, of] : sizes) {
    const bool of_model = of == "mlp" || of == "gpt";
    const bool fits = of_model ? config.model == of || !find_option("model", bit) : config.data.starts_with(of);
    if (!find_option(option, bit) || !fits) continue;
    const bool in_pieces = option == "batch" && find_option("accumulate", bit);
    list += fmt::format("{}--{}{}", list.empty() ? "a smaller " : ", ", option,
                        in_pieces ? " with a larger --accumulate" : "");
  }
  if (find_option("recompute", bit) && config.model == "gpt" && config.recompute == Recompute())
    list += ", --recompute blocks";
  if (config.memory_limit)
    list += fmt::format("{}a --memory-limit above {} bytes", list.empty() ? "" : " or ", *config.memory_limit);
  return fmt::format("{}: try {}", message, list.empty() ? "a machine with more memory" : list);
}

int run_parsed(const Parser& parser, std::span<const Command> commands, const char*& running) {
  for (const Command& command : commands) {
    const CLI::App& leaf = *parser.nodes.at(command.name);
    if (!leaf.parsed()) continue;
    running = command.name;
    for (const CLI::App* node = &leaf; node; node = node->get_parent())  // --help may stand before the command too
      if (node->get_option("--help")->count()) {
        std::cout << help(command);
        return exit_done;
      }
    const unsigned bit = command_bit(command.name);
    if (!parser.app.remaining().empty())
      throw UsageError(
          fmt::format("\"{}\" stands before the command; options follow it", parser.app.remaining().front()));
    refuse_leftovers(leaf, bit);
    const Config config = configure(command.name, settings(leaf, bit), std::getenv("OMP_NUM_THREADS"));
    try {
      return command.run(config);
    } catch (const OutOfMemory& e) {
      throw OutOfMemory(with_hint(e.what(), config));
    } catch (const std::bad_alloc&) {
      throw OutOfMemory(with_hint("out of memory: the system gave no more", config));
    } catch (const std::length_error&) {
      throw OutOfMemory(with_hint("out of memory: a size is larger than memory can be", config));
    }
  }
  const std::vector<CLI::App*> groups = parser.app.get_subcommands();  // "data" without a command within
  const std::string prefix = groups.empty() ? "" : groups.front()->get_name() + " ";
  const std::vector<std::string> words = parser.app.remaining(true);
  if (!words.empty())
    throw UsageError(fmt::format("unknown command \"{}{}\"; the nearest is {}", prefix, words.front(),
                                 nearest_command(prefix + words.front(), commands)));
  std::vector<Command> shown;
  for (const Command& command : commands)
    if (std::string_view(command.name).starts_with(prefix)) shown.push_back(command);
  std::cout << (parser.app.get_option("--version")->count() ? version_text() : overview(shown));
  return exit_done;
}

// The words of the line, last first, as CLI11 wants them. It takes no value that begins like an option, which that of
// compare's --a is: the two are joined to one word.
std::vector<std::string> words_from_the_last(int argc, const char* const* argv) {
  std::vector<std::string> words;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool side = std::string_view(argv[1]) == "compare" && (word == "--a" || word == "--b") && i + 1 < argc;
    words.push_back(side ? word + "=" + argv[++i] : word);
  }
  std::reverse(words.begin(), words.end());
  return words;
}

int report(const char* command, std::string_view message, ExitCode code) {
  std::cout.flush();  // what was printed before stands before the message
  std::cerr << "tapedeck" << (*command ? " " : "") << command << ": " << message << std::endl;
  return code;
}

}  // namespace

int run_command_line(int argc, const char* const* argv, std::span<const Command> commands) {
  const char* running = "";
  int code = exit_failed;
  try {
    Parser parser(commands);
    parser.app.parse(words_from_the_last(argc, argv));
    code = run_parsed(parser, commands, running);
    errno = 0;
    if (!std::cout.flush() || std::fflush(stdout) != 0)
      return report(running, fmt::format("stdout: cannot be written: {}", errno ? std::strerror(errno) : "write error"),
                    exit_failed);
    return code;
  } catch (const CLI::ParseError& e) {
    return report(running, e.what(), exit_usage);
  } catch (const UsageError& e) {
    return report(running, e.what(), exit_usage);
  } catch (const OutOfMemory& e) {
    return report(running, e.what(), exit_out_of_memory);
  } catch (const Diverged& e) {
    return report(running, e.what(), exit_diverged);
  } catch (const std::filesystem::filesystem_error& e) {
    return report(running, fmt::format("{}: {}", e.path1().string(), e.code().message()), exit_failed);
  } catch (const std::exception& e) {
    return report(running, e.what(), exit_failed);
  }
}

}  // namespace tapedeck
