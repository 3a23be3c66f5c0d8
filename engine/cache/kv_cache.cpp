// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/cache/kv_cache.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>

#include "base/error.h"
#include "kernels/context/context.h"
#include "kernels/core/tracer.h"

namespace vitrine::engine {

KvCache::KvCache(kernels::Context& context, const ModelConfig& config, const KvCacheOptions& options)
    : context_(context), options_(options), kvHeads_(config.kvHeads), headDim_(config.headDim),
      halves_(config.kvHalves()) {
    if (options_.pageTokens < 0 || (isStatic() && options_.maxTokens < 1)) {
        throw base::Internal("a KV cache needs tokens in a page");
    }
    groups_ = kvGroups(config, options_);
    layerGroup_.resize(config.layers.size());
    layerPlace_.resize(config.layers.size());
    for (std::size_t group = 0; group < groups_.size(); ++group) {
        names_.push_back("kv_cache." + groups_[group].name);
        for (std::size_t slot = 0; slot < groups_[group].layers.size(); ++slot) {
            const auto layer = static_cast<std::size_t>(groups_[group].layers[slot]);
            layerGroup_[layer] = static_cast<int>(group);
            layerPlace_[layer] = static_cast<int>(slot);
        }
    }
    reserveRanges();
    if (isPaged()) {
        context_.tracer().counter("kv_pool_limit_bytes", static_cast<double>(kvPoolBytes(groups_, options_)));
    }
}

KvCache::~KvCache() = default;

/// Calls `visit(length)` for each live sequence.
template <class Visit> void KvCache::eachLength(Visit visit) const {
    for (int sequence = 0; sequence < book_.sequences(); ++sequence) {
        if (book_.live(sequence)) {
            visit(book_.length(sequence));
        }
    }
}

int KvCache::addSequence() {
    const int sequence = book_.addSequence();
    if (isStatic()) {
        try {
            growSequence(sequence, options_.maxTokens);
        } catch (...) {
            book_.removeSequence(sequence);
            throw;
        }
    }
    return sequence;
}

void KvCache::removeSequence(int sequence) {
    if (!isPaged()) {
        dropPages(sequence, 0);
    }
    book_.removeSequence(sequence);
    report();
}

std::int64_t KvCache::length(int sequence) const {
    return book_.length(sequence);
}

void KvCache::reserve(std::span<const KvAppend> appends) {
    for (const KvAppend& append : appends) {
        const std::int64_t length = this->length(append.sequence) + append.tokens;
        if (options_.maxTokens > 0 && length > options_.maxTokens) {
            throw base::BadInput(fmt::format("context: {} tokens do not fit the {} that the KV cache was made for",
                                             length, options_.maxTokens));
        }
        growSequence(append.sequence, append.tokens);
    }
    copyShared();
}

void KvCache::commit(std::span<const KvAppend> appends) {
    for (const KvAppend& append : appends) {
        if (append.keep) {
            book_.commit(append.sequence, append.tokens);
        }
    }
    report();
}

void KvCache::report() {
    reported_.resize(groups_.size());
    for (std::size_t group = 0; group < groups_.size(); ++group) {
        const std::uint64_t held = bytes(static_cast<int>(group));
        if (reported_[group] != held) {
            reported_[group] = held;
            context_.tracer().counter("kv_bytes." + groups_[group].name, static_cast<double>(held));
        }
    }
    context_.tracer().counter("kv_tokens", static_cast<double>(tokens()));
    if (isPaged() && context_.tracer().level() != kernels::ProfileLevel::Off) {
        const base::TimeNs time = context_.tracer().now();
        for (base::KvPageEvent& change : book_.takeChanges()) {
            change.time = time;
            context_.tracer().record(change);
        }
    }
}

std::int64_t KvCache::roomBeforeGrowth(std::span<const int> sequences) const {
    std::int64_t room = std::numeric_limits<std::int64_t>::max();
    for (const int number : sequences) {
        for (std::size_t group = 0; group < groups_.size(); ++group) {
            const KvGroup& kind = groups_[group];
            const auto held = static_cast<std::int64_t>(book_.pages(number, static_cast<int>(group)).size());
            const bool grows = !isStatic() && !(kind.ring() && held == kind.ringPages);
            if (grows) {
                room = std::min(room, held * kind.pageTokens - length(number));
            }
        }
    }
    return room;
}

void KvCache::trim(int sequence, std::int64_t length) {
    const std::int64_t before = this->length(sequence);
    if (length < 0 || length > before) {
        throw base::Internal("a cache is trimmed to fewer tokens than it has");
    }
    const std::int64_t longest = book_.longest(sequence);
    for (const KvGroup& group : groups_) {
        if (group.ring() && length < before && longest > group.ringTokens &&
            longest - length > options_.rollBackTokens) {
            throw base::Unsupported(
                "KV cache: a sliding layer has dropped tokens and cannot be rolled back; generate again");
        }
    }
    dropPages(sequence, length);
    if (isStatic()) {
        growSequence(sequence, options_.maxTokens - length);
    }
    report();
}

std::uint64_t KvCache::bytes(int group) const {
    return static_cast<std::uint64_t>(book_.counts(group).used) * groups_[static_cast<std::size_t>(group)].pageBytes;
}

std::uint64_t KvCache::bytes() const {
    std::uint64_t total = 0;
    for (std::size_t group = 0; group < groups_.size(); ++group) {
        total += bytes(static_cast<int>(group));
    }
    return total;
}

std::uint64_t KvCache::usedBytes() const {
    std::uint64_t bytes = 0;
    eachLength([&](std::int64_t length) {
        for (const KvGroup& group : groups_) {
            const std::int64_t kept = group.ring() ? std::min(length, group.window - 1) : length;
            bytes += static_cast<std::uint64_t>(kept) * group.tokenBytes;
        }
    });
    return bytes;
}

std::int64_t KvCache::tokens() const {
    std::int64_t total = 0;
    eachLength([&](std::int64_t length) { total += length; });
    return total;
}

} // namespace vitrine::engine
