// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/finetune/prepared_data.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <utility>

#include "base/error.h"
#include "engine/checkpoint/token_rows.h"
#include "engine/training/data_split.h"

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

TrainingRowOptions rowOptions(const Run& run, const ModelSource& source) {
    TrainingRowOptions out;
    out.vocab = source.config.vocab;
    out.eosTokens = source.generation.eosTokens.empty() ? source.config.eosTokens : source.generation.eosTokens;
    out.chat.date = run.spec.text("date");
    out.chat.addGenerationPrompt = false;
    if (source.tokenizerFile.empty()) {
        return out;
    }
    out.tokenizer = Tokenizer::load(source.tokenizerFile);
    const std::string family(familyName(source.config.family));
    const std::string name = run.spec.text("chat_format");
    const std::optional<ChatFormatKind> kind =
        name == "auto" ? chooseChatFormat(family, *out.tokenizer, source.chatTemplate) : chatFormatByName(name);
    if (kind) {
        out.format = std::make_shared<const ChatFormat>(*kind, out.tokenizer, family, source.chatTemplate);
    }
    return out;
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

std::int64_t longestRow(const std::vector<TrainingRow>& rows) {
    std::size_t longest = 1;
    for (const TrainingRow& row : rows) {
        longest = std::max(longest, row.tokens.size());
    }
    return static_cast<std::int64_t>(longest);
}

std::vector<TrainingRow> chosenRows(const std::vector<TrainingRow>& rows, const std::vector<std::int64_t>& indices) {
    std::vector<TrainingRow> out;
    out.reserve(indices.size());
    for (const std::int64_t index : indices) {
        out.push_back(rows[static_cast<std::size_t>(index)]);
    }
    return out;
}

DataRowOptions choiceOf(const Run& run) {
    DataRowOptions out;
    out.keepDuplicates = run.spec.text("duplicates") == "keep";
    out.sequenceLength = run.spec.maybeInteger("sequence_length").value_or(0);
    out.longRows = longRowsByName(run.spec.text("long_rows"));
    out.exceptions = parseLongRowExceptions(run.spec.text("long_row_exceptions"), "long_row_exceptions");
    return out;
}

/// Why a file has no row to train on.
std::string nothingUsed(const std::string& path, const DataRows& rows) {
    if (rows.rows() == 0) {
        return path + ": holds no row; write one JSON object on each line";
    }
    const auto& leftOut = rows.leftOut();
    const auto unread = std::find_if(leftOut.begin(), leftOut.end(),
                                     [](const LeftOutRow& row) { return row.reason == LeftOutReason::Unreadable; });
    if (rows.count(LeftOutReason::NoAnswer) == 0 && unread != leftOut.end()) {
        return fmt::format("{}: line {}: {}", path, unread->line, unread->why);
    }
    return path + ": no row has a token that is trained; conversations need an answer of the assistant, rows of tokens "
                  "a second token that is trained";
}

DataRows readRows(const std::string& path, TrainingRowOptions options, const Run& run, const PrepareWatch& watch) {
    DataRows rows(choiceOf(run));
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

void splitHeld(PreparedData& data, const Run& run) {
    const double share = run.spec.real("validation");
    if (share > 0) {
        const DataSplit split = splitRows(static_cast<std::int64_t>(data.training.size()), {share, 0, run.seed()},
                                          data.file + ": validation");
        data.held = chosenRows(data.training, split.validation);
        data.training = chosenRows(data.training, split.training);
    }
}

void pack(PreparedData& data, const Run& run) {
    const std::optional<std::int64_t> length = run.spec.maybeInteger("sequence_length");
    data.length = length.value_or(longestRow(data.training));
    data.packs = length.has_value() && run.spec.flag("pack");
    data.packed = packRows(data.training, {data.length, data.packs});
    if (!data.held.empty()) {
        data.heldPacked = packRows(data.held, {length.value_or(longestRow(data.held)), false});
    }
    if (data.packed.trainedTokens == 0 || (!data.held.empty() && data.heldPacked.sequences.empty())) {
        throw base::BadInput(
            fmt::format("{}: no token counts for the loss; give rows of two tokens or more, or a longer "
                        "sequence_length",
                        data.packed.trainedTokens == 0 ? "data" : "eval_data"));
    }
}

} // namespace

std::int64_t arbitraryRowCount(const Run& run) {
    return run.spec.maybeInteger("batch").value_or(1) * run.spec.integer("accumulate");
}

PreparedData prepareData(const Run& run, const ModelSource& source, const PrepareWatch& watch) {
    PreparedData out;
    const std::string data = run.spec.text("data");
    const std::string tokens = run.spec.text("tokens_file");
    const std::string apart = run.spec.text("eval_data");
    const TrainingRowOptions options = data.empty() && apart.empty() ? TrainingRowOptions{} : rowOptions(run, source);
    out.file = data.empty() ? tokens : data;
    out.tokenizer = options.tokenizer;
    out.format = options.format;
    out.eosTokens = options.eosTokens;
    if (!data.empty()) {
        DataRows rows = readRows(data, options, run, watch);
        out.fileRows = rows.rows();
        out.leftOut = rows.leftOut();
        out.training = rows.takeUsed();
        out.stopped = watch.enough && watch.enough();
    } else {
        out.training = !tokens.empty() ? tensorRows(tokens, source) : arbitraryRows(run, source);
        out.fileRows = static_cast<std::int64_t>(out.training.size());
    }
    splitHeld(out, run);
    if (!apart.empty()) {
        out.held = readRows(apart, options, run, {}).takeUsed();
        out.heldApart = true;
    }
    pack(out, run);
    return out;
}

} // namespace vitrine::engine
