// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <algorithm>
#include <charconv>
#include <ctime>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/cli/commands/commands.h"
#include "app/cli/commands/session_commands.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/units.h"
#include "engine/workload/common/result_text.h"
#include "engine/workload/experiment/results.h"

namespace vitrine::app {

namespace {

using nlohmann::json;
using sessions::OpenMode;
using sessions::RunInfo;
using sessions::SessionFile;

/// JSON text of the file as a value; damaged text stays readable as a string.
json parsed(const std::string& text) {
    json value = json::parse(text, nullptr, false);
    return value.is_discarded() ? json(text) : value;
}

json runJson(const RunInfo& run) {
    return {{"id", run.id},
            {"name", run.name},
            {"workload", run.workload},
            {"status", sessions::runStatusName(run.status)},
            {"error", run.error},
            {"started_ms", run.startedMs},
            {"ended_ms", run.endedMs},
            {"lost_records", run.lostRecords},
            {"tags", run.tags},
            {"note", run.note},
            {"metrics", parsed(run.metricsJson)}};
}

std::string localTime(std::int64_t unixMs) {
    const auto seconds = static_cast<std::time_t>(unixMs / 1000);
    std::tm parts{};
    ::localtime_r(&seconds, &parts);
    return fmt::format("{:%Y-%m-%d %H:%M:%S}", parts);
}

std::string duration(const RunInfo& run) {
    const std::int64_t end = run.endedMs > 0 ? run.endedMs : base::wallClockMs();
    return base::formatDuration(std::max<std::int64_t>(0, end - run.startedMs) * 1'000'000);
}

/// A number of the metrics as text; empty when the run has none.
std::string metric(const RunInfo& run, const engine::ResultField& field) {
    const json metrics = parsed(run.metricsJson);
    const json* value = engine::valueOf(metrics, field);
    return value != nullptr ? engine::resultValueText(field.key, *value) : "";
}

/// Tokens per second: of decoding, or of a batch with its prompts.
std::string rate(const RunInfo& run) {
    const std::string decode = metric(run, engine::result::kDecodeTokensPerSecond);
    return decode.empty() ? metric(run, engine::result::kTokensPerSecond) : decode;
}

/// How many records of its trace a run lost; empty: none.
std::string lostText(const RunInfo& run) {
    return run.lostRecords == 0 ? "" : base::formatGrouped(static_cast<std::int64_t>(run.lostRecords));
}

int listRuns(const std::vector<std::string>& files, const GlobalOptions& options) {
    json list = json::array();
    std::vector<std::vector<std::string>> rows{
        {"run", "started", "took", "status", "peak", "tokens/s", "lost", "name", "tags"}};
    for (const std::string& file : files) {
        const auto session = SessionFile::open(file, OpenMode::ReadOnly);
        for (const RunInfo& run : session->runs()) {
            json row = runJson(run);
            row["file"] = file;
            list.push_back(std::move(row));
            rows.push_back({std::to_string(run.id), localTime(run.startedMs), duration(run),
                            std::string(sessions::runStatusName(run.status)), lostText(run),
                            metric(run, engine::result::kPeakBytes), rate(run), lostText(run), run.name,
                            fmt::format("{}", fmt::join(run.tags, " "))});
        }
    }
    if (options.json) {
        printJson({{"runs", std::move(list)}});
    } else {
        printOut(rows.size() == 1 ? "no runs\n" : engine::tableText(rows));
    }
    return 0;
}

json streamsJson(const SessionFile& session, sessions::RunId run) {
    constexpr std::size_t kBatch = 64;
    json streams = json::array();
    for (const std::string& stream : session.streams(run)) {
        std::uint64_t chunks = 0;
        std::uint64_t rows = 0;
        std::uint64_t next = 0;
        for (auto batch = session.chunks(run, stream, next, kBatch); !batch.empty();
             batch = session.chunks(run, stream, next, kBatch)) {
            for (const base::ColumnChunk& chunk : batch) {
                ++chunks;
                rows += chunk.rows;
                next = chunk.sequence + 1;
            }
        }
        streams.push_back({{"name", stream}, {"chunks", chunks}, {"rows", rows}});
    }
    return streams;
}

std::string showText(const RunInfo& run, const json& full) {
    std::string text = fmt::format("run {}  {}\nstatus    {}{}\nstarted   {}, took {}\n", run.id, run.name,
                                   sessions::runStatusName(run.status), run.error.empty() ? "" : ": " + run.error,
                                   localTime(run.startedMs), duration(run));
    if (!run.tags.empty()) {
        text += fmt::format("tags      {}\n", fmt::join(run.tags, " "));
    }
    if (!run.note.empty()) {
        text += fmt::format("note      {}\n", run.note);
    }
    if (run.lostRecords > 0) {
        text += fmt::format("lost      {} records: its timeline has gaps\n", lostText(run));
    }
    for (const char* part : {"spec", "environment", "metrics"}) {
        text += fmt::format("\n{}\n{}\n", part, full[part].dump(2, ' ', false, json::error_handler_t::replace));
    }
    text += "\nstreams\n";
    for (const json& stream : full["streams"]) {
        text += fmt::format("  {}: {} rows in {} chunks\n", stream.value("name", ""),
                            stream.value("rows", std::uint64_t{0}), stream.value("chunks", std::uint64_t{0}));
    }
    for (const auto& [kind, body] : full["texts"].items()) {
        if (kind.starts_with("tokens.")) {
            continue; // logprobs line by line are for programs: --json has them
        }
        text += fmt::format("\n{}\n{}\n", kind, body.get<std::string>());
    }
    return text;
}

int showRun(const std::string& file, std::optional<sessions::RunId> which, const GlobalOptions& options) {
    const auto session = SessionFile::open(file, OpenMode::ReadOnly);
    const RunInfo run = session->run(resolveRun(*session, which));
    json full = runJson(run);
    full["spec"] = parsed(run.specJson);
    full["environment"] = parsed(run.environmentJson);
    full["texts"] = json::object();
    for (const sessions::RunText& text : session->texts(run.id)) {
        full["texts"][text.kind] = text.body;
    }
    full["timeline_notes"] = json::array();
    for (const sessions::TimelineNote& note : session->timelineNotes(run.id)) {
        full["timeline_notes"].push_back(
            {{"id", note.id}, {"time_begin", note.timeBegin}, {"time_end", note.timeEnd}, {"body", note.body}});
    }
    full["images"] = session->images(run.id);
    full["streams"] = streamsJson(*session, run.id);
    if (options.json) {
        printJson(full);
    } else {
        printOut(showText(run, full));
    }
    return 0;
}

/// What the parser fills; lives as long as the action.
struct Words {
    std::string file;
    std::string run;
    std::string text;
    std::vector<std::string> files;
    std::vector<std::string> tags;
    bool add = false;
    bool remove = false;
};

std::optional<sessions::RunId> chosenRun(const Words& words) {
    return words.run.empty() ? std::nullopt : std::optional(parseRun(words.run));
}

int done(const GlobalOptions& options, const RunInfo& run) {
    if (options.json) {
        printJson(runJson(run));
    }
    return 0;
}

int setTags(const Words& words, const GlobalOptions& options) {
    for (const std::string& tag : words.tags) {
        requireUtf8("tags", tag);
    }
    const auto session = SessionFile::open(words.file, OpenMode::ReadWrite);
    const sessions::RunId run = resolveRun(*session, chosenRun(words));
    std::vector<std::string> tags = words.tags;
    if (words.add || words.remove) {
        tags = session->run(run).tags;
        for (const std::string& tag : words.tags) {
            tags.erase(std::remove(tags.begin(), tags.end(), tag), tags.end());
            if (words.add) {
                tags.push_back(tag);
            }
        }
    }
    session->setTags(run, tags);
    return done(options, session->run(run));
}

} // namespace

sessions::RunId parseRun(const std::string& text) {
    sessions::RunId run = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), run);
    if (code != std::errc{} || end != text.data() + text.size() || run <= 0) {
        throw base::BadInput(fmt::format("{}: not the number of a run; `vitrine session ls FILE` lists them", text));
    }
    return run;
}

sessions::RunId resolveRun(const SessionFile& session, std::optional<sessions::RunId> run) {
    if (run) {
        return session.run(*run).id;
    }
    const std::vector<RunInfo> runs = session.runs();
    if (runs.empty()) {
        throw base::BadInput(fmt::format("{}: the session holds no runs", session.path()));
    }
    return runs.back().id;
}

void addSession(CLI::App& app, CommandLine& line) {
    CLI::App* session = addCommand(app, "session", "List, show, compare, annotate and export saved runs",
                                   "vitrine session ls runs.vitrine");
    const auto words = std::make_shared<Words>();
    const auto action = [&line](CLI::App* command, std::function<int()> work) {
        command->callback([&line, work = std::move(work)] { line.action = work; });
    };

    CLI::App* list =
        addCommand(*session, "ls", "List the runs of session files", "vitrine session ls runs.vitrine --json");
    list->add_option("files", words->files, "Session files")->type_name("FILE")->required();
    action(list, [words, &line] { return listRuns(words->files, line.options); });

    CLI::App* show =
        addCommand(*session, "show", "Everything of one run but its events", "vitrine session show runs.vitrine 3");
    show->add_option("file", words->file, "Session file")->type_name("FILE")->required();
    show->add_option("run", words->run, "Number of the run; the last one if left out")->type_name("RUN");
    action(show, [words, &line] { return showRun(words->file, chosenRun(*words), line.options); });

    CLI::App* note = addCommand(*session, "note", "Write a note to a run; an empty text removes it",
                                "vitrine session note runs.vitrine 3 \"budget too small\"");
    note->add_option("file", words->file, "Session file")->type_name("FILE")->required();
    note->add_option("run", words->run, "Number of the run")->type_name("RUN")->required();
    note->add_option("text", words->text, "The note")->type_name("TEXT")->required();
    action(note, [words, &line] {
        requireUtf8("text", words->text);
        const auto file = SessionFile::open(words->file, OpenMode::ReadWrite);
        const sessions::RunId run = resolveRun(*file, chosenRun(*words));
        file->setNote(run, words->text);
        return done(line.options, file->run(run));
    });

    CLI::App* tag = addCommand(*session, "tag", "Set the tags of a run; --add and --remove change some",
                               "vitrine session tag runs.vitrine 3 --add baseline");
    tag->add_option("file", words->file, "Session file")->type_name("FILE")->required();
    tag->add_option("run", words->run, "Number of the run")->type_name("RUN")->required();
    tag->add_option("tags", words->tags, "Tags; none removes all")->type_name("TAG");
    CLI::Option* adding = tag->add_flag("--add", words->add, "Keep the others");
    tag->add_flag("--remove", words->remove, "Remove these, keep the others")->excludes(adding);
    action(tag, [words, &line] { return setTags(*words, line.options); });

    addSessionExport(*session, line);
    addSessionCompare(*session, line);
}

} // namespace vitrine::app
