// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/finetune/prepared_data.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <utility>

#include "base/error.h"
#include "engine/checkpoint/token_rows.h"
#include "engine/training/data/chat_mask.h"
#include "engine/training/data/data_split.h"
#include "engine/workload/common/row_options.h"

namespace vitrine::engine {

namespace {

constexpr std::int64_t kReservedRows = 65536;

TrainingRow wholeRow(std::vector<std::int32_t> tokens, std::int64_t line) {
    TrainingRow row;
    row.trained.assign(tokens.size(), 1);
    row.tokens = std::move(tokens);
    row.line = line;
    return row;
}

std::vector<TrainingRow> arbitraryRows(const Run& run, const ModelSource& source) {
    std::vector<TrainingRow> rows;
    const std::int64_t count = arbitraryRowCount(run);
    rows.reserve(static_cast<std::size_t>(std::min(count, kReservedRows)));
    const std::int64_t length = run.spec.integer("prompt_length");
    for (std::int64_t i = 0; i < count; ++i) {
        // A plan holds as much for one token as for another, and random ones take longer than all the rest of it.
        std::vector<std::int32_t> tokens =
            run.spec.isPlan() ? std::vector<std::int32_t>(static_cast<std::size_t>(length))
                              : arbitraryTokens(length, source.config.vocab, run.seed(), static_cast<std::uint32_t>(i));
        rows.push_back(wholeRow(std::move(tokens), i + 1));
    }
    return rows;
}

std::vector<TrainingRow> tensorRows(const std::string& path, const ModelSource& source) {
    std::vector<TrainingRow> rows;
    std::vector<std::vector<std::int32_t>> tokens = readTokenRows(path);
    checkTokenIds(tokens, source.config.vocab, path + ": input_ids");
    rows.reserve(tokens.size());
    for (std::vector<std::int32_t>& row : tokens) {
        rows.push_back(wholeRow(std::move(row), static_cast<std::int64_t>(rows.size()) + 1));
    }
    return rows;
}

std::int64_t longestRow(const RowTable& rows) {
    std::uint32_t longest = 1;
    for (const RowFacts& row : rows) {
        longest = std::max(longest, row.tokens);
    }
    return longest;
}

/// Moves the rows with these ascending indices out of `rows`.
template <class Rows> Rows takeRows(Rows& rows, const std::vector<std::int64_t>& indices) {
    Rows out;
    std::size_t kept = 0;
    auto next = indices.begin();
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (next != indices.end() && std::cmp_equal(*next, i)) {
            out.push_back(std::move(rows[i]));
            ++next;
        } else if (kept++ != i) {
            rows[kept - 1] = std::move(rows[i]);
        }
    }
    rows.resize(kept);
    return out;
}

/// Tokens after which the model stops.
std::vector<std::int32_t> endsOf(const TrainingRowOptions& options) {
    std::vector<std::int32_t> ends = options.format != nullptr ? options.format->answerEnds() : options.eosTokens;
    ends.insert(ends.end(), options.eosTokens.begin(), options.eosTokens.end());
    return ends;
}

DataRowOptions choiceOf(const Run& run, const TrainingRowOptions& options) {
    DataRowOptions out;
    out.ends = endsOf(options);
    out.keepDuplicates = run.spec.text("duplicates") == "keep";
    out.sequenceLength = run.spec.maybeInteger("sequence_length").value_or(0);
    out.longRows = longRowsByName(run.spec.text("long_rows"));
    out.exceptions = parseLongRowExceptions(run.spec.text("long_row_exceptions"), "long_row_exceptions");
    return out;
}

/// Why a file has no row to train on.
std::string nothingUsed(const std::string& path, const DataRows& rows) {
    if (rows.rows() == 0) {
        return path + ": holds no row; write one JSON object on each line, or one array of them";
    }
    const auto& leftOut = rows.leftOut();
    const auto unread = std::find_if(leftOut.begin(), leftOut.end(),
                                     [](const LeftOutRow& row) { return row.reason == LeftOutReason::Unreadable; });
    if (rows.count(LeftOutReason::NoAnswer) == 0 && unread != leftOut.end()) {
        return fmt::format("{}: {}", rowPlace(path, unread->line, isArrayOfRows(path)), unread->why);
    }
    return path + ": no row has a token that is trained; conversations need an answer of the assistant, rows of tokens "
                  "a second token that is trained";
}

DataRows readRows(const std::string& path, TrainingRowOptions options, const Run& run, const PrepareWatch& watch) {
    DataRowOptions choice = choiceOf(run, options);
    if (!watch.keepTokens && !isTensorFile(path)) {
        choice.readAgain = [path, options](const RowFacts& row) {
            return readTrainingRow(path, row.line, row.offset, options);
        };
    }
    DataRows rows(std::move(choice));
    options.countTemplate = watch.countTemplate;
    options.enough = watch.enough;
    const auto tell = [&] {
        if (watch.read) {
            watch.read(rows);
        }
    };
    options.unreadable = [&](std::int64_t line, const std::string& why) {
        rows.addUnreadable(line, why);
        tell();
    };
    forTrainingRows(path, options, run.stop, run.sinks.progress, [&](TrainingRow row) {
        rows.add(std::move(row));
        tell();
    });
    if (rows.used().empty()) {
        throw base::BadInput(nothingUsed(path, rows));
    }
    return rows;
}

/// Rows that are not of a file of lines; their tokens stay in memory.
void takeWholeRows(PreparedData& data, std::vector<TrainingRow> rows, const Run& run) {
    const std::int64_t length = run.spec.maybeInteger("sequence_length").value_or(0);
    for (const TrainingRow& row : rows) {
        data.training.push_back(factsOf(row, length, data.eosTokens));
    }
    data.fileRows = static_cast<std::int64_t>(rows.size());
    data.trainingTokens = std::move(rows);
}

void takeRowsOfFile(PreparedData& data, const Run& run, const PrepareWatch& watch) {
    DataRows rows = readRows(data.file, data.rowOptions, run, watch);
    data.fileRows = rows.rows();
    data.inArray = isArrayOfRows(data.file);
    data.leftOut = rows.leftOut();
    for (std::size_t reason = 0; reason < kLeftOutReasons; ++reason) {
        data.leftOutCounts[reason] = rows.count(static_cast<LeftOutReason>(reason));
    }
    data.conversations = rows.conversations();
    data.templateTokens = rows.templateTokens();
    data.training = rows.takeUsed();
    data.trainingTokens = rows.takeTokens();
    data.stopped = watch.enough && watch.enough();
}

void splitHeld(PreparedData& data, const Run& run) {
    const double share = run.spec.real("validation");
    if (share > 0) {
        const DataSplit split = splitRows(static_cast<std::int64_t>(data.training.size()), {share, 0, run.seed()},
                                          data.file + ": validation");
        data.held = takeRows(data.training, split.validation);
        if (!data.trainingTokens.empty()) {
            data.heldTokens = takeRows(data.trainingTokens, split.validation);
        }
    }
}

bool anyTrained(const RowTable& rows) {
    return std::ranges::any_of(rows, [](const RowFacts& row) { return row.trained > 0; });
}

/// Without a length, rows share sequences of the model's context. No row is cut, and a sequence is no longer than all
/// rows together.
std::int64_t unsetLength(const RowTable& rows, bool packs, std::int64_t context) {
    const std::int64_t longest = longestRow(rows);
    if (!packs) {
        return longest;
    }
    std::int64_t all = 0;
    for (const RowFacts& row : rows) {
        all += row.tokens;
    }
    return std::max(longest, std::min(context, all));
}

void placeTraining(PreparedData& data, const Run& run, std::int64_t context) {
    const std::optional<std::int64_t> length = run.spec.maybeInteger("sequence_length");
    // Rows of a tokens file stand as they are: their file says what a sequence is.
    data.packs = run.spec.flag("pack") && (length || (run.spec.has("data") && context > 0));
    data.length = length ? *length : unsetLength(data.training, data.packs, context);
    data.heldLength = length.value_or(longestRow(data.held));
    const bool trains = anyTrained(data.training);
    if (!trains || (!data.held.empty() && !anyTrained(data.held))) {
        throw base::BadInput(
            fmt::format("{}: no token counts for the loss; give rows of two tokens or more, or a longer "
                        "sequence_length",
                        !trains ? "data" : "eval_data"));
    }
    std::vector<std::int32_t> lengths;
    lengths.reserve(data.training.size());
    for (const RowFacts& row : data.training) {
        lengths.push_back(row.trained > 0 ? static_cast<std::int32_t>(row.kept(data.length)) : 0);
    }
    data.packed = placeRows(lengths, data.packing());
}

} // namespace

TrainingRow PreparedData::row(std::int32_t index) const {
    const auto at = static_cast<std::size_t>(index);
    if (!trainingTokens.empty()) {
        return trainingTokens[at];
    }
    const RowFacts& facts = training[at];
    TrainingRow out = readTrainingRow(file, facts.line, facts.offset, rowOptions);
    out.keepsEnd = facts.keepsEnd;
    if (factsOf(out, 0, {}).hash != facts.hash || out.tokens.size() != facts.tokens) {
        throw base::BadInput(rowPlace(file, facts.line, isArrayOfRows(file)) +
                             ": it has changed since the file was read");
    }
    return out;
}

std::int64_t arbitraryRowCount(const Run& run) {
    return run.spec.maybeInteger("batch").value_or(1) * run.spec.integer("accumulate");
}

PreparedData prepareData(const Run& run, const ModelSource& source, const PrepareWatch& watch) {
    PreparedData out;
    const std::string data = run.spec.text("data");
    const std::string tokens = run.spec.text("tokens_file");
    const std::string apart = run.spec.text("eval_data");
    out.rowOptions = data.empty() && apart.empty() ? TrainingRowOptions{} : rowOptions(run, source);
    out.file = data.empty() ? tokens : data;
    out.tokenizer = out.rowOptions.tokenizer;
    out.format = out.rowOptions.format;
    out.eosTokens = out.rowOptions.eosTokens;
    if (!data.empty()) {
        takeRowsOfFile(out, run, watch);
    } else {
        takeWholeRows(out, !tokens.empty() ? tensorRows(tokens, source) : arbitraryRows(run, source), run);
    }
    splitHeld(out, run);
    if (!apart.empty()) {
        PrepareWatch quiet;
        quiet.keepTokens = watch.keepTokens;
        DataRows rows = readRows(apart, out.rowOptions, run, quiet);
        out.held = rows.takeUsed();
        out.heldTokens = rows.takeTokens();
        out.heldApart = true;
    }
    placeTraining(out, run, source.config.maxPositions);
    return out;
}

} // namespace vitrine::engine
