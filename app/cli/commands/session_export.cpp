// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <memory>
#include <nlohmann/json.hpp>

#include "app/cli/commands/session_commands.h"
#include "app/runner/runs/run_export.h"
#include "base/error.h"
#include "engine/checkpoint/atomic_file.h"
#include "sessions/plain_export.h"

namespace vitrine::app {

namespace {

using sessions::OpenMode;
using sessions::SessionFile;

struct ExportText {
    std::string file;
    std::string run;
    std::string format = "sqlite";
    std::string output;
    bool allocations = false;
};

/// The run that was named; else all runs for formats that hold several, the last one for others.
std::vector<sessions::RunId> chosenRuns(const SessionFile& session, const ExportText& words) {
    const bool severalFit = words.format == "sqlite" || words.format == "session";
    if (!words.run.empty() || !severalFit) {
        return {resolveRun(session, words.run.empty() ? std::nullopt : std::optional(parseRun(words.run)))};
    }
    std::vector<sessions::RunId> runs;
    for (const sessions::RunInfo& run : session.runs()) {
        runs.push_back(run.id);
    }
    return runs;
}

int exportRuns(const ExportText& words, const GlobalOptions& options) {
    const auto session = SessionFile::open(words.file, OpenMode::ReadOnly);
    const std::vector<sessions::RunId> runs = chosenRuns(*session, words);
    if (words.format == "session" && engine::isSameFile(words.file, words.output)) {
        throw base::BadInput(words.output + ": is the session that is exported; name another file");
    }
    std::vector<std::string> files{words.output};
    if (words.format == "sqlite") {
        sessions::exportPlainTables(*session, runs, words.output);
    } else if (words.format == "session") {
        const auto target = SessionFile::open(words.output, OpenMode::CreateOrOpen);
        for (const sessions::RunId run : runs) {
            session->copyRunTo(run, *target);
        }
    } else if (words.format == "rollouts") {
        exportRollouts(*session, runs.front(), words.output);
    } else if (words.format == "csv") {
        files = exportCsv(*session, runs.front(), words.output);
    } else {
        exportChromeTrace(*session, runs.front(), words.output, words.allocations);
    }
    if (options.json) {
        printJson({{"files", files}, {"runs", runs}});
    } else {
        for (const std::string& file : files) {
            printOut(file + "\n");
        }
    }
    return 0;
}

} // namespace

void addSessionExport(CLI::App& session, CommandLine& line) {
    CLI::App* command = addCommand(session, "export", "Write runs for other tools",
                                   "vitrine session export runs.vitrine 3 --format chrome --output run3.json");
    const auto words = std::make_shared<ExportText>();
    command->add_option("file", words->file, "Session file")->type_name("FILE")->required();
    command->add_option("run", words->run, "Number of the run; left out: the last one, for sqlite and session all")
        ->type_name("RUN");
    command
        ->add_option("--format", words->format,
                     "sqlite: every event in plain tables; csv: a folder of tables, those of batches too; chrome: "
                     "trace JSON that Perfetto opens; "
                     "session: append the runs to another session file; rollouts: the answers of a run of rl, for rl "
                     "--rollouts (default sqlite)")
        ->type_name("sqlite|csv|chrome|session|rollouts")
        ->check(CLI::IsMember({"sqlite", "csv", "chrome", "session", "rollouts"}));
    command->add_option("--output", words->output, "File to write; for csv the folder")->type_name("FILE")->required();
    command->add_flag("--allocations", words->allocations, "chrome: also a slice for every allocation (large)");
    command->callback([&line, words] { line.action = [&line, words] { return exportRuns(*words, line.options); }; });
}

} // namespace vitrine::app
