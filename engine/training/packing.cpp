// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/packing.h"

#include <algorithm>
#include <cstddef>
#include <fmt/format.h>
#include <limits>
#include <set>
#include <tuple>
#include <utility>

#include "base/error.h"

namespace vitrine::engine {

namespace {

using Indices = std::vector<std::int32_t>;

std::vector<Indices> oneByOne(const Indices& chosen) {
    std::vector<Indices> bins;
    bins.reserve(chosen.size());
    for (const std::int32_t row : chosen) {
        bins.push_back({row});
    }
    return bins;
}

/// Best fit decreasing. Rows of equal length keep their order, and of bins with equal room the first one is taken.
std::vector<Indices> bestFit(std::span<const TrainingRow> rows, Indices order, std::int64_t sequenceLength) {
    const auto length = [&](std::int32_t row) {
        return keptTokens(rows[static_cast<std::size_t>(row)], sequenceLength).count;
    };
    std::stable_sort(order.begin(), order.end(),
                     [&](std::int32_t one, std::int32_t other) { return length(one) > length(other); });
    std::vector<Indices> bins;
    std::set<std::pair<std::int64_t, std::size_t>> rooms; ///< free tokens and number of each bin that has some
    for (const std::int32_t row : order) {
        std::int64_t room = sequenceLength;
        std::size_t bin = bins.size();
        if (const auto found = rooms.lower_bound({length(row), 0}); found != rooms.end()) {
            std::tie(room, bin) = *found;
            rooms.erase(found);
        } else {
            bins.emplace_back();
        }
        bins[bin].push_back(row);
        if (room > length(row)) {
            rooms.emplace(room - length(row), bin);
        }
    }
    for (Indices& bin : bins) {
        std::sort(bin.begin(), bin.end());
    }
    std::sort(bins.begin(), bins.end());
    return bins;
}

/// Adds the kept tokens of a row as a document.
void appendRow(PackedSequence& sequence, const TrainingRow& row, const KeptTokens& kept) {
    const auto begin = static_cast<std::size_t>(kept.begin), end = begin + static_cast<std::size_t>(kept.count);
    sequence.tokens.insert(sequence.tokens.end(), row.tokens.begin() + kept.begin,
                           row.tokens.begin() + kept.begin + kept.count);
    for (std::size_t i = begin + 1; i < end; ++i) {
        sequence.targets.push_back(row.trained[i] != 0 ? row.tokens[i] : -1);
    }
    sequence.targets.push_back(-1);
    sequence.lengths.push_back(static_cast<std::int32_t>(kept.count));
}

void requirePackable(std::span<const TrainingRow> rows, const PackingOptions& options) {
    constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
    if (options.sequenceLength < 1 || options.sequenceLength > kMost || std::cmp_greater(rows.size(), kMost)) {
        throw base::Internal(
            fmt::format("packing {} rows into sequences of {} tokens", rows.size(), options.sequenceLength));
    }
    for (const TrainingRow& row : rows) {
        if (row.tokens.empty() || row.tokens.size() != row.trained.size()) {
            throw base::Internal(
                fmt::format("line {}: {} tokens and {} marks", row.line, row.tokens.size(), row.trained.size()));
        }
    }
}

} // namespace

KeptTokens keptTokens(const TrainingRow& row, std::int64_t sequenceLength) {
    const auto all = static_cast<std::int64_t>(row.tokens.size());
    const std::int64_t count = std::min(all, sequenceLength);
    return {row.keepsEnd ? all - count : 0, count};
}

std::int64_t trainedTokens(const TrainingRow& row, const KeptTokens& kept) {
    const auto begin = row.trained.begin() + kept.begin;
    return std::count_if(begin + std::min<std::int64_t>(1, kept.count), begin + kept.count,
                         [](std::uint8_t mark) { return mark != 0; });
}

PackingResult packRows(std::span<const TrainingRow> rows, const PackingOptions& options) {
    requirePackable(rows, options);
    PackingResult result;
    Indices chosen;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const TrainingRow& row = rows[i];
        const KeptTokens kept = keptTokens(row, options.sequenceLength);
        if (const std::int64_t cut = static_cast<std::int64_t>(row.tokens.size()) - kept.count; cut > 0) {
            ++result.cutRows;
            result.cutTokens += cut;
            result.cutLines.push_back(row.line);
        }
        const std::int64_t trained = trainedTokens(row, kept);
        if (trained == 0) {
            ++result.untrainableRows;
            continue;
        }
        result.trainedTokens += trained;
        result.totalTokens += kept.count;
        chosen.push_back(static_cast<std::int32_t>(i));
    }
    const std::vector<Indices> bins =
        options.pack ? bestFit(rows, std::move(chosen), options.sequenceLength) : oneByOne(chosen);
    result.sequences.reserve(bins.size());
    for (const Indices& bin : bins) {
        PackedSequence sequence;
        for (const std::int32_t index : bin) {
            const TrainingRow& row = rows[static_cast<std::size_t>(index)];
            appendRow(sequence, row, keptTokens(row, options.sequenceLength));
        }
        sequence.rows = bin;
        result.sequences.push_back(std::move(sequence));
    }
    return result;
}

} // namespace vitrine::engine
