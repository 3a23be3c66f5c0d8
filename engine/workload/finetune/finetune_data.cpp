// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/finetune/finetune_data.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "engine/checkpoint/token_rows.h"
#include "engine/training/data_split.h"
#include "engine/workload/experiment/results.h"

namespace vitrine::engine {

namespace {

constexpr std::size_t kShownLines = 20; ///< of cut rows in the result
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
    const std::int64_t count = run.spec.maybeInteger("batch").value_or(1) * run.spec.integer("accumulate");
    rows.reserve(static_cast<std::size_t>(std::min(count, kReservedRows)));
    for (std::int64_t i = 0; i < count; ++i) {
        rows.push_back(wholeRow(arbitraryTokens(run.spec.integer("prompt_length"), source.config.vocab, run.seed(),
                                                static_cast<std::uint32_t>(i)),
                                i + 1));
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

} // namespace

FinetuneData::FinetuneData(const Run& run, const ModelSource& source) {
    const std::string data = run.spec.text("data");
    const std::string tokens = run.spec.text("tokens_file");
    const TrainingRowOptions options =
        data.empty() && run.spec.text("eval_data").empty() ? TrainingRowOptions{} : rowOptions(run, source);
    rows_ = !data.empty()     ? readTrainingRows(data, options, run.stop, run.sinks.progress)
            : !tokens.empty() ? tensorRows(tokens, source)
                              : arbitraryRows(run, source);
    const double share = run.spec.real("validation");
    std::vector<TrainingRow> held;
    if (share > 0) {
        const DataSplit split = splitRows(static_cast<std::int64_t>(rows_.size()), {share, 0, run.seed()},
                                          (data.empty() ? tokens : data) + ": validation");
        held = chosenRows(rows_, split.validation);
        rows_ = chosenRows(rows_, split.training);
    }
    if (const std::string path = run.spec.text("eval_data"); !path.empty()) {
        held = readTrainingRows(path, options, run.stop, run.sinks.progress);
    }
    makeSequences(held, run);
    const std::int64_t sequences = static_cast<std::int64_t>(packed_.sequences.size());
    microBatches_ = run.spec.integer("accumulate");
    microBatch_ = run.spec.maybeInteger("batch").value_or(tokens.empty() ? 1 : sequences);
    makeOrder(run, !data.empty() && run.spec.flag("shuffle"));
}

void FinetuneData::makeSequences(const std::vector<TrainingRow>& held, const Run& run) {
    const std::optional<std::int64_t> length = run.spec.maybeInteger("sequence_length");
    packed_ = packRows(rows_, {length.value_or(longestRow(rows_)), length.has_value() && run.spec.flag("pack")});
    rows_.clear();
    validationRows_ = static_cast<std::int64_t>(held.size());
    if (!held.empty()) {
        const PackingResult result = packRows(held, {length.value_or(longestRow(held)), false});
        validation_.assign(result.sequences.begin(), result.sequences.end());
    }
    if (packed_.trainedTokens == 0 || (!held.empty() && validation_.empty())) {
        throw base::BadInput(
            fmt::format("{}: no token counts for the loss; give rows of two tokens or more, or a longer "
                        "sequence_length",
                        packed_.trainedTokens == 0 ? "data" : "eval_data"));
    }
}

void FinetuneData::makeOrder(const Run& run, bool shuffle) {
    order_.sequences = static_cast<std::int64_t>(packed_.sequences.size());
    order_.microBatchSize = microBatch_;
    order_.microBatches = microBatches_;
    order_.shuffle = shuffle;
    order_.seed = run.seed();
    order_.epochs = run.spec.has("steps") ? 0 : run.spec.integer("epochs");
    steps_ = run.spec.maybeInteger("steps").value_or(DataOrder(order_).steps());
}

std::vector<TrainingBatch> FinetuneData::batches(std::int64_t step) {
    DataOrder order(order_);
    std::vector<TrainingBatch> out;
    for (std::int64_t micro = 0; micro < microBatches_; ++micro) {
        TrainingBatch batch;
        for (const std::int64_t index : order.indices(step - 1, micro)) {
            batch.append(packed_.sequences[static_cast<std::size_t>(index)]);
        }
        if (!batch.tokens.empty()) {
            out.push_back(std::move(batch));
        }
    }
    return out;
}

std::int64_t FinetuneData::largestBatch() const {
    std::vector<std::int64_t> lengths;
    lengths.reserve(packed_.sequences.size());
    for (const PackedSequence& sequence : packed_.sequences) {
        lengths.push_back(static_cast<std::int64_t>(sequence.tokens.size()));
    }
    std::sort(lengths.rbegin(), lengths.rend());
    lengths.resize(std::min(lengths.size(), static_cast<std::size_t>(microBatch_)));
    return std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
}

void FinetuneData::addMetrics(nlohmann::json& metrics) const {
    metrics[result::kSequences.key] = packed_.sequences.size();
    metrics[result::kDataTokens.key] = packed_.totalTokens;
    metrics[result::kPredictedTokens.key] = packed_.trainedTokens;
    metrics[result::kValidationRows.key] = validationRows_;
    metrics[result::kCutRows.key] = packed_.cutRows;
    metrics[result::kCutTokens.key] = packed_.cutTokens;
    const std::size_t shown = std::min(packed_.cutLines.size(), kShownLines);
    metrics[result::kCutLines.key] = std::vector<std::int64_t>(
        packed_.cutLines.begin(), packed_.cutLines.begin() + static_cast<std::ptrdiff_t>(shown));
    metrics[result::kRowsWithoutTargets.key] = packed_.untrainableRows;
}

} // namespace vitrine::engine
