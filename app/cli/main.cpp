// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// The command line program: parses, does what was asked, turns the result into an exit code.

#include <algorithm>
#include <csignal>
#include <string_view>

#include "app/cli/command_line.h"
#include "base/error.h"
#include "base/log.h"

namespace {

using vitrine::app::CommandLine;

/// Whether --json was given, when parsing itself fails.
bool wantsJson(int argc, char** argv) {
    return std::any_of(argv, argv + argc, [](const char* word) { return std::string_view(word) == "--json"; });
}

int runCommand(int argc, char** argv, CommandLine& line) {
    namespace app = vitrine::app;
    CLI::App parser;
    app::buildCommandLine(parser, line);
    try {
        parser.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
        app::printOut(parser.help());
        return 0;
    } catch (const CLI::CallForVersion& version) {
        app::printOut(std::string(version.what()) + "\n");
        return 0;
    } catch (const CLI::ParseError& error) {
        line.options.json = wantsJson(argc, argv);
        throw vitrine::base::BadInput(app::usageError(parser, error));
    }
    if (!line.action) {
        throw vitrine::base::BadInput("no command given; `" + app::commandPath(*app::chosenCommand(parser)) +
                                      " --help` lists them");
    }
    using vitrine::base::LogLevel;
    if (line.options.verbosity > 0) {
        vitrine::base::setLogLevel(line.options.verbosity > 1 ? LogLevel::Debug : LogLevel::Info);
    }
    return line.action();
}

} // namespace

int main(int argc, char** argv) {
    vitrine::app::keepStandardStreams();
    // When the reader of our output goes away, a write fails. Without this line, a signal would end the program in the
    // middle of a run.
    std::signal(SIGPIPE, SIG_IGN);
    // The same for a file that reaches its largest size (ulimit -f).
    std::signal(SIGXFSZ, SIG_IGN);
    CommandLine line;
    try {
        return runCommand(argc, argv, line);
    } catch (...) {
        return vitrine::app::reportFailure(line.options, std::current_exception());
    }
}
