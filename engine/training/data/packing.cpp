// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/data/packing.h"

#include <algorithm>
#include <cstddef>
#include <fmt/format.h>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <queue>
#include <utility>

#include "base/error.h"

namespace vitrine::engine {

namespace {

using Indices = std::vector<std::int32_t>;

/// Numbers of bins by the room that they have. Of bins with equal room the first one is taken.
class Rooms {
public:
    void add(std::int32_t room, std::int32_t bin) { bins_[room].push(bin); }
    /// Takes the bin with the least room that `length` fits into, and that room.
    std::optional<std::pair<std::int32_t, std::int32_t>> take(std::int32_t length) {
        const auto found = bins_.lower_bound(length);
        if (found == bins_.end()) {
            return std::nullopt;
        }
        const std::pair<std::int32_t, std::int32_t> out{found->second.top(), found->first};
        found->second.pop();
        if (found->second.empty()) {
            bins_.erase(found);
        }
        return out;
    }

private:
    std::map<std::int32_t, std::priority_queue<std::int32_t, Indices, std::greater<>>> bins_;
};

/// The bin of each row, -1 of those that no bin takes. Best fit decreasing; rows of equal length keep their order.
Indices bestFit(std::span<const std::int32_t> lengths, std::int32_t sequenceLength) {
    Indices order;
    for (std::size_t row = 0; row < lengths.size(); ++row) {
        if (lengths[row] > 0) {
            order.push_back(static_cast<std::int32_t>(row));
        }
    }
    const auto length = [&](std::int32_t row) { return lengths[static_cast<std::size_t>(row)]; };
    std::sort(order.begin(), order.end(), [&](std::int32_t one, std::int32_t other) {
        return std::pair(-length(one), one) < std::pair(-length(other), other);
    });
    Indices bins(lengths.size(), -1);
    Rooms rooms;
    std::int32_t count = 0;
    for (const std::int32_t row : order) {
        const auto found = rooms.take(length(row));
        const std::int32_t bin = found ? found->first : count++;
        const std::int32_t room = (found ? found->second : sequenceLength) - length(row);
        bins[static_cast<std::size_t>(row)] = bin;
        if (room > 0) {
            rooms.add(room, bin);
        }
    }
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

std::span<const std::int32_t> PackedRows::sequence(std::size_t number) const {
    const auto begin = static_cast<std::size_t>(begins_.at(number)),
               end = static_cast<std::size_t>(begins_[number + 1]);
    return std::span(rows_).subspan(begin, end - begin);
}

std::size_t PackedRows::sequenceOf(std::int32_t row) const {
    const auto found = std::find(rows_.begin(), rows_.end(), row);
    if (found == rows_.end()) {
        return size();
    }
    const auto after = std::upper_bound(begins_.begin(), begins_.end(), found - rows_.begin());
    return static_cast<std::size_t>(after - begins_.begin()) - 1;
}

PackedRows placeRows(std::span<const std::int32_t> lengths, const PackingOptions& options) {
    PackedRows out;
    Indices bins = options.pack ? bestFit(lengths, static_cast<std::int32_t>(options.sequenceLength)) : Indices{};
    const auto taken = static_cast<std::size_t>(
        std::count_if(lengths.begin(), lengths.end(), [](std::int32_t length) { return length > 0; }));
    out.rows_.reserve(taken);
    if (!options.pack) { // one row a sequence
        for (std::size_t row = 0; row < lengths.size(); ++row) {
            if (lengths[row] > 0) {
                out.rows_.push_back(static_cast<std::int32_t>(row));
            }
        }
        out.begins_.resize(taken + 1);
        std::iota(out.begins_.begin(), out.begins_.end(), 0);
        return out;
    }
    // Bins get new numbers in the order of their first rows, and rows are counted into them.
    const auto most = bins.empty() ? bins.end() : std::max_element(bins.begin(), bins.end());
    Indices numbers(bins.empty() ? 0 : static_cast<std::size_t>(*most + 1), -1);
    out.begins_.push_back(0);
    for (std::int32_t& bin : bins) {
        if (bin < 0) {
            continue;
        }
        std::int32_t& number = numbers[static_cast<std::size_t>(bin)];
        if (number < 0) {
            number = static_cast<std::int32_t>(out.begins_.size()) - 1;
            out.begins_.push_back(0);
        }
        bin = number;
        ++out.begins_[static_cast<std::size_t>(number) + 1];
    }
    std::partial_sum(out.begins_.begin(), out.begins_.end(), out.begins_.begin());
    Indices next(out.begins_.begin(), out.begins_.end() - 1);
    out.rows_.resize(taken);
    for (std::size_t row = 0; row < bins.size(); ++row) {
        if (bins[row] >= 0) {
            out.rows_[static_cast<std::size_t>(next[static_cast<std::size_t>(bins[row])]++)] =
                static_cast<std::int32_t>(row);
        }
    }
    return out;
}

PackingResult packRows(std::span<const TrainingRow> rows, const PackingOptions& options) {
    requirePackable(rows, options);
    PackingResult result;
    Indices lengths(rows.size(), 0);
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
        lengths[i] = static_cast<std::int32_t>(kept.count);
    }
    const PackedRows placed = placeRows(lengths, options);
    result.sequences.reserve(placed.size());
    for (std::size_t number = 0; number < placed.size(); ++number) {
        PackedSequence sequence;
        for (const std::int32_t index : placed.sequence(number)) {
            const TrainingRow& row = rows[static_cast<std::size_t>(index)];
            appendRow(sequence, row, keptTokens(row, options.sequenceLength));
        }
        sequence.rows.assign(placed.sequence(number).begin(), placed.sequence(number).end());
        result.sequences.push_back(std::move(sequence));
    }
    return result;
}

} // namespace vitrine::engine
