// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/data/row_facts.h"

#include <algorithm>

#include "engine/training/data/packing.h"

namespace vitrine::engine {

namespace {

constexpr std::size_t kFirstSlots = 1024;

/// FNV-1a over the ids, folded; rows with equal hashes are compared.
std::uint32_t hashOfTokens(const std::vector<std::int32_t>& tokens) {
    std::uint64_t hash = 0xcbf29ce484222325U;
    for (const std::int32_t token : tokens) {
        hash = (hash ^ static_cast<std::uint32_t>(token)) * 0x100000001b3U;
    }
    return static_cast<std::uint32_t>(hash ^ hash >> 32);
}

/// Whether an answer that is whole ends with a token after which the model stops, and that token is trained.
bool endsTrained(const TrainingRow& row, const KeptTokens& kept, std::span<const std::int32_t> ends) {
    for (std::int64_t i = kept.begin + 1; i < kept.begin + kept.count; ++i) {
        const auto at = static_cast<std::size_t>(i);
        if (row.trained[at] != 0 && std::find(ends.begin(), ends.end(), row.tokens[at]) != ends.end()) {
            return true;
        }
    }
    return false;
}

} // namespace

std::int64_t RowFacts::kept(std::int64_t sequenceLength) const {
    return std::min<std::int64_t>(tokens, sequenceLength);
}

RowFacts factsOf(const TrainingRow& row, std::int64_t sequenceLength, std::span<const std::int32_t> ends) {
    const auto tokens = static_cast<std::int64_t>(row.tokens.size());
    const KeptTokens kept = keptTokens(row, sequenceLength > 0 ? sequenceLength : tokens);
    RowFacts out;
    out.offset = row.offset;
    out.line = static_cast<std::uint32_t>(row.line);
    out.tokens = static_cast<std::uint32_t>(tokens);
    out.trained = static_cast<std::uint32_t>(trainedTokens(row, kept));
    out.trainedWhole = static_cast<std::uint32_t>(trainedTokens(row, {0, tokens}));
    out.hash = hashOfTokens(row.tokens);
    out.keepsEnd = row.keepsEnd;
    out.endTrained = endsTrained(row, kept, ends);
    return out;
}

std::optional<std::uint32_t> RowsByHash::find(const RowTable& rows, std::uint32_t hash,
                                              const std::function<bool(const RowFacts&)>& same) const {
    if (slots_.empty()) {
        return std::nullopt;
    }
    for (std::size_t slot = slotOf(hash); slots_[slot] != 0; slot = (slot + 1) % slots_.size()) {
        const std::uint32_t row = slots_[slot] - 1;
        if (rows[row].hash == hash && same(rows[row])) {
            return row;
        }
    }
    return std::nullopt;
}

void RowsByHash::addLast(const RowTable& rows) {
    const auto last = static_cast<std::uint32_t>(rows.size() - 1);
    if (++used_ * 4 > slots_.size() * 3) {
        std::vector<std::uint32_t> before(std::max(kFirstSlots, slots_.size() * 2), 0);
        before.swap(slots_);
        for (const std::uint32_t entry : before) {
            if (entry != 0) {
                put(rows[entry - 1].hash, entry - 1);
            }
        }
    }
    put(rows[last].hash, last);
}

std::size_t RowsByHash::slotOf(std::uint32_t hash) const {
    // Consecutive rows of text begin alike; the product spreads their hashes over the table.
    return static_cast<std::size_t>(hash * std::uint64_t{0x9E3779B97F4A7C15U} >> 32) % slots_.size();
}

void RowsByHash::put(std::uint32_t hash, std::uint32_t row) {
    std::size_t slot = slotOf(hash);
    while (slots_[slot] != 0) {
        slot = (slot + 1) % slots_.size();
    }
    slots_[slot] = row + 1;
}

} // namespace vitrine::engine
