// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/sampling/sample.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "base/philox.h"
#include "kernels/device/abi/sample.h"
#include "kernels/ops/common/op_check.h"
#include "kernels/ops/sampling/sample_scratch.h"

namespace vitrine::kernels {

namespace {

bool punishesNewTokens(const SampleParameters& row) {
    return (row.frequencyPenalty != 0 || row.presencePenalty != 0) && row.historyLength > row.promptTokens;
}

} // namespace

void check(const Sample& op) {
    const OpCheck rule(Sample::kName);
    rule.shape(op.logits, "logits", {OpCheck::kAny, OpCheck::kAny});
    rule.floating(op.logits, "logits");
    rule.rowsContiguous(op.logits, "logits");
    const std::int64_t rows = op.logits.shape[0];
    const std::int64_t vocab = op.logits.shape[1];
    rule.require(vocab > 0, "logits", "the vocabulary is empty");
    rule.require(static_cast<std::int64_t>(op.parameters.size()) == rows, "parameters", "not one for each row");
    rule.shape(op.ids, "ids", {rows});
    rule.dtype(op.ids, "ids", DType::I32);
    if (!op.logprobs.empty()) {
        rule.shape(op.logprobs, "logprobs", {rows});
        rule.dtype(op.logprobs, "logprobs", DType::F32);
    }
    if (!op.drawLogprobs.empty()) {
        rule.shape(op.drawLogprobs, "drawLogprobs", {rows, kDrawLogprobs});
        rule.dtype(op.drawLogprobs, "drawLogprobs", DType::F32);
    }
    rule.require(op.topLogprobs >= 0 && op.topLogprobs <= vocab, "topLogprobs", "outside 0 to the vocabulary");
    if (op.topLogprobs > 0) {
        rule.shape(op.topIds, "topIds", {rows, op.topLogprobs});
        rule.dtype(op.topIds, "topIds", DType::I32);
        rule.shape(op.topLogprobValues, "topLogprobValues", {rows, op.topLogprobs});
        rule.dtype(op.topLogprobValues, "topLogprobValues", DType::F32);
    }
    if (!op.packed.empty()) {
        rule.shape(op.packed, "packed", {OpCheck::kAny});
        rule.dtype(op.packed, "packed", DType::I32);
        rule.require(op.packed.shape[0] >= rows * abi::kSampleRowWords, "packed", "shorter than its rows");
    }
    for (const SampleParameters& row : op.parameters) {
        rule.require(row.temperature >= 0, "parameters.temperature", "it is negative or NaN");
        rule.require(row.topK >= 0, "parameters.topK", "it is negative");
        rule.require(row.topP > 0 && row.topP <= 1, "parameters.topP", "outside (0, 1]");
        rule.require(row.minP >= 0 && row.minP <= 1, "parameters.minP", "outside [0, 1]");
        rule.require(row.repetitionPenalty > 0, "parameters.repetitionPenalty", "it is not positive");
        rule.require(std::isfinite(row.frequencyPenalty) && std::isfinite(row.presencePenalty), "parameters.penalties",
                     "not finite");
        rule.require(row.promptTokens >= 0, "parameters.promptTokens", "it is negative");
        rule.require(std::ranges::all_of(row.bias, [](const LogitBias& each) { return std::isfinite(each.bias); }),
                     "parameters.bias", "not finite");
        rule.require(row.historyLength >= 0 && (row.history != nullptr || row.historyLength == 0), "parameters.history",
                     "missing");
        rule.require(row.forbiddenCount >= 0 && (row.forbidden != nullptr || row.forbiddenCount == 0),
                     "parameters.forbidden", "missing");
    }
    rule.scratch(op.scratch, scratch(op, DeviceTraits{}));
}

Cost cost(const Sample& op, const DeviceTraits&) {
    Cost cost;
    cost.bytesRead = op.logits.bytes();
    cost.bytesWritten = op.ids.bytes();
    cost.flops = 4 * static_cast<std::uint64_t>(op.logits.shape.count());
    return cost;
}

std::uint64_t scratch(const Sample& op, const DeviceTraits&) {
    return SampleScratch(op, ScratchLayout()).bytes;
}

bool plainlyGreedy(std::span<const SampleParameters> parameters) {
    return std::ranges::all_of(parameters, [](const SampleParameters& row) {
        return row.temperature == 0 && (row.repetitionPenalty == 1 || row.historyLength == 0) &&
               row.forbiddenCount == 0 && row.bias.empty() && !punishesNewTokens(row);
    });
}

bool needsHistory(const SampleParameters& parameters) {
    return parameters.repetitionPenalty != 1 || parameters.frequencyPenalty != 0 || parameters.presencePenalty != 0;
}

std::vector<LogitChange> logitChanges(const SampleParameters& parameters) {
    std::vector<LogitChange> out;
    for (const LogitBias& each : parameters.bias) {
        out.push_back({each.id, each.bias});
    }
    if (punishesNewTokens(parameters)) {
        std::vector<std::int32_t> chosen(parameters.history + parameters.promptTokens,
                                         parameters.history + parameters.historyLength);
        std::ranges::sort(chosen);
        for (auto at = chosen.begin(); at != chosen.end();) {
            const auto end = std::find_if(at, chosen.end(), [id = *at](std::int32_t other) { return other != id; });
            const auto times = static_cast<float>(end - at);
            out.push_back({*at, -(parameters.frequencyPenalty * times + parameters.presencePenalty)});
            at = end;
        }
    }
    std::ranges::stable_sort(out, {}, &LogitChange::id);
    std::size_t kept = 0;
    for (const LogitChange& change : out) {
        if (kept > 0 && out[kept - 1].id == change.id) {
            out[kept - 1].added += change.added;
        } else {
            out[kept++] = change;
        }
    }
    out.resize(kept);
    return out;
}

std::vector<std::int32_t> packSampleParameters(std::span<const SampleParameters> parameters) {
    std::vector<std::int32_t> words(parameters.size() * abi::kSampleRowWords);
    const auto append = [&words](const std::int32_t* ids, std::int64_t count) {
        const auto begin = static_cast<int>(words.size());
        words.insert(words.end(), ids, ids + count);
        return begin;
    };
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        const SampleParameters& row = parameters[i];
        const bool penalized = row.repetitionPenalty != 1;
        const base::PhiloxKey key = base::philoxKey(row.seed, row.request);
        const auto position = static_cast<std::uint64_t>(row.position);
        abi::SampleRow out{};
        out.temperature = row.temperature;
        out.topP = row.topP;
        out.least = row.minP > 0 ? std::log(row.minP) : -std::numeric_limits<float>::infinity();
        out.repetitionPenalty = row.repetitionPenalty;
        out.topK = row.topK;
        out.seed = key.seed;
        out.request = key.stream;
        out.positionLow = static_cast<std::uint32_t>(position);
        out.positionHigh = static_cast<std::uint32_t>(position >> 32);
        out.historyLength = penalized ? static_cast<int>(row.historyLength) : 0;
        out.historyBegin = append(row.history, out.historyLength);
        out.forbiddenLength = static_cast<int>(row.forbiddenCount);
        out.forbiddenBegin = append(row.forbidden, out.forbiddenLength);
        const std::vector<LogitChange> changes = logitChanges(row);
        out.changesLength = static_cast<int>(changes.size());
        out.changesBegin = static_cast<int>(words.size());
        for (const LogitChange& change : changes) {
            words.push_back(change.id);
            words.push_back(std::bit_cast<std::int32_t>(change.added));
        }
        const auto packed = std::bit_cast<std::array<std::int32_t, abi::kSampleRowWords>>(out);
        std::ranges::copy(packed, words.begin() + static_cast<std::ptrdiff_t>(i * abi::kSampleRowWords));
    }
    const std::size_t rows = parameters.size() * abi::kSampleRowWords;
    const std::size_t lists = (words.size() - rows + kSampleListStep - 1) / kSampleListStep * kSampleListStep;
    words.resize(rows + lists);
    return words;
}

std::int32_t metaToken(const SampleParameters& parameters, std::int64_t vocab) {
    const auto random = base::philox4x32(base::philoxKey(parameters.seed, parameters.request),
                                         static_cast<std::uint64_t>(parameters.position), 0);
    return static_cast<std::int32_t>(random[0] % static_cast<std::uint64_t>(std::max<std::int64_t>(1, vocab)));
}

void execute(MetaContext&, const Sample&) {}

} // namespace vitrine::kernels
