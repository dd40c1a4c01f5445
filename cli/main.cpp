// The command line as a whole: parses it and runs the verb.
#include <csignal>
#include <cstdio>
#include <iostream>

#include "backends/register_all.h"
#include "cli/arguments.h"
#include "cli/outcome.h"
#include "models/suggest.h"

namespace {

using namespace tally::cli;

std::vector<std::string> verb_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* s : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(s->get_name());
  return names;
}

/// The option that was probably meant by the first word that is none; "" where there is none such.
std::string meant_option(const CLI::App& app, int argc, char** argv) {
  const CLI::App* verb = &app;
  while (!verb->get_subcommands().empty()) verb = verb->get_subcommands().back();
  std::vector<std::string> names;
  for (const CLI::Option* o : verb->get_options())
    for (const std::string& name : o->get_lnames()) names.push_back("--" + name);
  for (int i = 1; i < argc; ++i) {
    const std::string word = std::string(argv[i]).substr(0, std::string_view(argv[i]).find('='));
    if (!word.starts_with("--") || std::find(names.begin(), names.end(), word) != names.end())
      continue;
    return tally::closest(word, names);
  }
  return "";
}

int usage_error(const CLI::App& app, int argc, char** argv, const CLI::ParseError& e) {
  if (argc > 1 && argv[1][0] != '-') {
    const auto names = verb_names(app);
    if (std::find(names.begin(), names.end(), argv[1]) == names.end()) {
      std::fprintf(stderr, "tally: unknown verb '%s'%s; `tally --help` lists the verbs\n", argv[1],
                   tally::did_you_mean(argv[1], names).c_str());
      return 2;
    }
  }
  const bool unknown = dynamic_cast<const CLI::ExtrasError*>(&e) != nullptr;
  const std::string meant = unknown ? meant_option(app, argc, argv) : "";
  std::fprintf(stderr,
               "tally: %s%s; `tally --help` and `tally VERB --help` show what is understood\n",
               e.what(), meant.empty() ? "" : ("; did you mean " + meant + "?").c_str());
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error to report, not an end
  CLI::App app("Tally: train small language models and see what every step costs", "tally");
  app.require_subcommand(1);
  app.set_version_flag("--version", TALLY_VERSION, "Print the version and stop");
  Options options;
  if (argc > 0) options.train.program = argv[0];
  Run run;
  add_training(app, options, run);
  add_text(app, options, run);
  add_insight(app, options, run);
  return outcome_of([&] {
    try {
      app.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
      std::cout << app.help();  // of the verb named, where one is
      return 0;
    } catch (const CLI::CallForVersion&) {
      std::cout << "tally " TALLY_VERSION "\n";
      return 0;
    } catch (const CLI::ParseError& e) {
      return usage_error(app, argc, argv, e);
    }
    tally::register_all();
    return run();
  });
}
