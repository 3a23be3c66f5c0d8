// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/cli/command_line.h"

#include <algorithm>
#include <fmt/format.h>
#include <memory>
#include <vector>

#include "app/cli/commands/commands.h"
#include "app/runner/host/outcome.h"
#include "app/runner/machine/environment.h"
#include "base/edit_distance.h"

namespace vitrine::app {

namespace {

/// Prints help as the option table words it: the kind of value after the flag, and each default once.
class HelpFormatter final : public CLI::Formatter {
public:
    std::string make_option_opts(const CLI::Option* option) const override {
        std::string text = option->get_type_name().empty() ? "" : " " + option->get_type_name();
        if (option->get_expected_max() > 1 && option->get_positional()) {
            text += " ...";
        }
        return text;
    }
};

/// ", did you mean NAME?", or a mere semicolon when no name is near.
std::string suggestion(const std::string& wrong, const std::vector<std::string>& names) {
    const auto nearest = std::min_element(names.begin(), names.end(), [&](const auto& x, const auto& y) {
        return base::editDistance(wrong, x) < base::editDistance(wrong, y);
    });
    if (nearest == names.end() || base::editDistance(wrong, *nearest) > std::max<std::size_t>(2, wrong.size() / 2)) {
        return ";";
    }
    return fmt::format(", did you mean {}?", *nearest);
}

std::vector<std::string> optionNames(const CLI::App& command) {
    std::vector<std::string> names;
    for (const CLI::App* app = &command; app != nullptr; app = app->get_parent()) {
        for (const CLI::Option* option : app->get_options()) {
            for (const std::string& name : option->get_lnames()) {
                names.push_back("--" + name);
            }
        }
    }
    return names;
}

std::vector<std::string> subcommandNames(const CLI::App& command) {
    std::vector<std::string> names;
    for (const CLI::App* sub : command.get_subcommands([](const CLI::App*) { return true; })) {
        names.push_back(sub->get_name());
    }
    return names;
}

} // namespace

void buildCommandLine(CLI::App& app, CommandLine& line) {
    app.name("vitrine");
    app.description("Runs language models and shows what they hold in memory and do while they run.");
    app.footer(
        "Example:\n  vitrine plan generate --model synthetic:gpt-oss-20b --prompt-length 4096 --vram-budget 16GiB\n"
        "`vitrine COMMAND --help` lists the options of a command.\n"
        "Exit codes: 0 done, 2 wrong input, 3 out of memory, 130 stopped by Ctrl-C, 1 anything else.\n");
    app.formatter(std::make_shared<HelpFormatter>());
    // A word after a command is its argument even where another command has that name: bench load.
    app.require_subcommand(0, 1);
    app.get_formatter()->column_width(34);
    app.set_version_flag("--version", fmt::format("vitrine {}", programVersion()), "Show the version and exit");
    app.add_flag("--json", line.options.json, "Print one JSON object on standard output and nothing else there");
    app.add_flag("-v,--verbose", line.options.verbosity, "Say more on standard error; -vv: everything");
    addDoctor(app, line);
    addRun(app, line);
    addSweep(app, line);
    addTokenize(app, line);
    addLogits(app, line);
    addGenerate(app, line);
    addBatch(app, line);
    addFinetune(app, line);
    addRl(app, line);
    addScore(app, line);
    addData(app, line);
    addServe(app, line);
    addLoad(app, line);
    addSynthesize(app, line);
    addConvert(app, line);
    addPrecision(app, line);
    addPlan(app, line);
    addBench(app, line);
    addSession(app, line);
    addKernels(app, line);
    addMask(app, line);
    addAttention(app, line);
    addWorker(app, line);
    addCompletion(app, line);
}

const CLI::App* chosenCommand(const CLI::App& app) {
    const CLI::App* command = &app;
    while (!command->get_subcommands().empty()) {
        command = command->get_subcommands().back();
    }
    return command;
}

std::string commandPath(const CLI::App& command) {
    return command.get_parent() == nullptr ? command.get_name()
                                           : commandPath(*command.get_parent()) + " " + command.get_name();
}

std::string usageError(const CLI::App& app, const CLI::ParseError& error) {
    const CLI::App& command = *chosenCommand(app);
    const std::string help = fmt::format("`{} --help` lists what it takes", commandPath(command));
    const std::vector<std::string> rest = app.remaining(true);
    if (rest.empty()) {
        return fmt::format("{}; {}", oneLine(error.what()), help);
    }
    const std::string word = rest.front().substr(0, rest.front().find('='));
    if (word.starts_with('-')) {
        return fmt::format("{}: unknown option{} {}", word, suggestion(word, optionNames(command)), help);
    }
    const std::vector<std::string> names = subcommandNames(command);
    if (!names.empty()) {
        return fmt::format("{}: unknown command{} {}", word, suggestion(word, names), help);
    }
    return fmt::format("{}: one argument too many; {}", word, help);
}

} // namespace vitrine::app
