// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/cli/session_commands.h"
#include "base/error.h"
#include "sessions/plain_export.h"

namespace vitrine::app {

namespace {

using sessions::OpenMode;
using sessions::SessionFile;

struct ExportWords {
    std::string file;
    std::string run;
    std::string format = "sqlite";
    std::string output;
};

int exportRuns(const ExportWords& words, const GlobalOptions& options) {
    const auto session = SessionFile::open(words.file, OpenMode::ReadOnly);
    std::vector<sessions::RunId> runs;
    if (!words.run.empty()) {
        runs.push_back(resolveRun(*session, parseRun(words.run)));
    } else {
        for (const sessions::RunInfo& run : session->runs()) {
            runs.push_back(run.id);
        }
    }
    if (words.format == "sqlite") {
        sessions::exportPlainTables(*session, runs, words.output);
    } else if (words.format == "session") {
        const auto target = SessionFile::open(words.output, OpenMode::CreateOrOpen);
        for (const sessions::RunId run : runs) {
            session->copyRunTo(run, *target);
        }
    }
    if (options.json) {
        printJson({{"files", {words.output}}, {"runs", runs}});
    } else {
        printOut(words.output + "\n");
    }
    return 0;
}

} // namespace

void addSessionExport(CLI::App& session, CommandLine& line) {
    CLI::App* command = addCommand(session, "export", "Write runs for other tools",
                                   "vitrine session export runs.vitrine 3 --format sqlite --output run3.db");
    const auto words = std::make_shared<ExportWords>();
    command->add_option("file", words->file, "Session file")->type_name("FILE")->required();
    command->add_option("run", words->run, "Number of the run; left out: all")->type_name("RUN");
    command
        ->add_option("--format", words->format,
                     "sqlite: plain tables; session: append the runs to another session file")
        ->type_name("sqlite|session")
        ->check(CLI::IsMember({"sqlite", "session"}));
    command->add_option("--output", words->output, "File to write")->type_name("FILE")->required();
    command->callback([&line, words] { line.action = [&line, words] { return exportRuns(*words, line.options); }; });
}

} // namespace vitrine::app
