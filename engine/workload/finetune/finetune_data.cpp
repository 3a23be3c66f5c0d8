// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/finetune/finetune_data.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <utility>

#include "base/sha256.h"
#include "engine/workload/experiment/results.h"
#include "engine/workload/finetune/prepared_data.h"

namespace vitrine::engine {

namespace {

constexpr std::size_t kShownLines = 20; ///< of cut rows in the result

/// Lines that were left out for a reason; the result shows the first ones.
std::vector<std::int64_t> firstLines(const std::vector<std::int64_t>& lines) {
    return {lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(std::min(lines.size(), kShownLines))};
}

/// The rows of a plan that names no data: their lengths, without tokens.
std::optional<PackingResult> plannedRows(const Run& run) {
    const auto is = [&](const char* key) { return !run.spec.text(key).empty(); };
    const std::int64_t length = run.spec.maybeInteger("prompt_length").value_or(0);
    if (!run.spec.isPlan() || is("data") || is("tokens_file") || is("eval_data") || run.spec.has("sequence_length") ||
        run.spec.real("validation") > 0 || length < 2) {
        return std::nullopt;
    }
    PackedSequence row;
    row.lengths = {static_cast<std::int32_t>(length)};
    PackingResult out;
    out.sequences.assign(static_cast<std::size_t>(arbitraryRowCount(run)), row);
    out.totalTokens = length * arbitraryRowCount(run);
    out.trainedTokens = out.totalTokens - arbitraryRowCount(run);
    return out;
}

} // namespace

FinetuneData::FinetuneData(const Run& run, const ModelSource& source) {
    PreparedData prepared;
    if (auto rows = plannedRows(run)) {
        packed_ = std::move(*rows);
    } else {
        PrepareWatch watch;
        watch.keepTokens = true;
        prepared = prepareData(run, source, watch);
        packed_ = packRows(prepared.trainingTokens, prepared.packing());
        if (!prepared.heldTokens.empty()) {
            const PackingResult held = packRows(prepared.heldTokens, prepared.heldPacking());
            validation_.assign(held.sequences.begin(), held.sequences.end());
        }
    }
    validationRows_ = static_cast<std::int64_t>(prepared.held.size());
    leftOut_ = std::move(prepared.leftOut);
    leftOutCounts_ = prepared.leftOutCounts;
    const bool hasData = !run.spec.text("data").empty();
    const bool hasTokens = !run.spec.text("tokens_file").empty();
    microBatches_ = run.spec.integer("accumulate");
    microBatch_ =
        run.spec.maybeInteger("batch").value_or(hasTokens ? static_cast<std::int64_t>(packed_.sequences.size()) : 1);
    makeOrder(run, hasData && run.spec.flag("shuffle"));
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
        if (!batch.lengths.empty()) {
            out.push_back(std::move(batch));
        }
    }
    return out;
}

std::int64_t FinetuneData::largestBatch() const {
    std::vector<std::int64_t> lengths;
    lengths.reserve(packed_.sequences.size());
    for (const PackedSequence& sequence : packed_.sequences) {
        lengths.push_back(sequence.count());
    }
    std::sort(lengths.rbegin(), lengths.rend());
    lengths.resize(std::min(lengths.size(), static_cast<std::size_t>(microBatch_)));
    return std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
}

std::string FinetuneData::rowsDigest() const {
    base::Sha256 hash;
    const auto add = [&hash](const std::vector<std::int32_t>& numbers) {
        hash.add(fmt::format("{}\n", numbers.size()));
        hash.add({reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(std::int32_t)});
    };
    const auto addBatch = [&add](const TrainingBatch& batch) {
        add(batch.tokens);
        add(batch.targets);
        add(batch.lengths);
    };
    std::ranges::for_each(packed_.sequences, addBatch);
    hash.add("held\n");
    std::ranges::for_each(validation_, addBatch);
    return hash.hex();
}

void FinetuneData::addMetrics(nlohmann::json& metrics) const {
    metrics[result::kSequences.key] = packed_.sequences.size();
    metrics[result::kDataTokens.key] = packed_.totalTokens;
    metrics[result::kPredictedTokens.key] = packed_.trainedTokens;
    metrics[result::kValidationRows.key] = validationRows_;
    metrics[result::kCutRows.key] = packed_.cutRows;
    metrics[result::kCutTokens.key] = packed_.cutTokens;
    metrics[result::kCutLines.key] = firstLines(packed_.cutLines);
    const auto leftOut = [this](LeftOutReason reason) { return leftOutCounts_[static_cast<std::size_t>(reason)]; };
    metrics[result::kRowsWithoutTargets.key] = packed_.untrainableRows + leftOut(LeftOutReason::NoAnswer);
    metrics[result::kUnreadableRows.key] = leftOut(LeftOutReason::Unreadable);
    metrics[result::kDuplicateRows.key] = leftOut(LeftOutReason::Duplicate);
    metrics[result::kSkippedRows.key] = leftOut(LeftOutReason::TooLong);
    std::vector<std::int64_t> lines;
    lines.reserve(leftOut_.size());
    for (const LeftOutRow& row : leftOut_) {
        lines.push_back(row.line);
    }
    metrics[result::kLeftOutLines.key] = firstLines(lines);
}

} // namespace vitrine::engine
