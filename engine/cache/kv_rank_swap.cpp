// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/cache/kv_rank_swap.h"

#include <algorithm>

#include "base/error.h"
#include "kernels/context/context.h"

namespace vitrine::engine {
namespace {

constexpr std::uint64_t kSlab = std::uint64_t{32} << 20;
constexpr std::uint64_t kShareOfPool = 8;

std::uint64_t placeOf(std::span<const KvGroup> groups) {
    std::uint64_t place = 0;
    for (const KvGroup& group : groups) {
        place = std::max(place, kernels::alignedBytes(group.pageBytes));
    }
    return place;
}

} // namespace

std::uint64_t KvRankSwap::halfFor(std::span<const KvGroup> groups, const KvCacheOptions& options) {
    const std::uint64_t share = kvPoolBytes(groups, options) / (kShareOfPool * kHalves);
    return std::max(placeOf(groups), std::min(kHalf, kernels::alignedBytes(share)));
}

KvRankSwap::KvRankSwap(kernels::Context& context, KvCache& cache, std::int64_t pages, std::uint64_t half, int place)
    : context_(context), cache_(cache), cachePlace_(place), limit_(pages), place_(placeOf(cache.groups())),
      out_(context), in_(context) {
    // Small pools need no more than themselves.
    const std::uint64_t pool = kvPoolBytes(cache.groups(), cache.options());
    half_ = std::max(place_, std::min(kernels::alignedBytes(half), kernels::alignedBytes(pool)));
    const std::uint64_t bytes = kHalves * half_;
    // Of exactly this size: what a batch takes was decided before.
    arena_ = context.memory().reserveArena(bytes, "kv_cache.staging");
    staging_ =
        kernels::Buffer(*arena_, bytes, {base::MemoryCategory::Workspace, "kv_cache.staging", kernels::DType::U8, {}});
    auto* data = static_cast<std::byte*>(staging_.data());
    for (Half* part : {&outHalves_[0], &outHalves_[1], &inHalves_[0], &inHalves_[1]}) {
        part->data = data;
        data += half_;
    }
    if (limit_ > 0 && context.memory().host().largestFree() >= place_) {
        addSlab();
    }
}

void KvRankSwap::addSlab() {
    // A host budget that is nearly used up is good for fewer.
    const std::uint64_t room = std::min(kSlab, context_.memory().host().largestFree());
    const std::int64_t places =
        std::min(std::max<std::int64_t>(static_cast<std::int64_t>(room / place_), 1), limit_ - places_);
    slabs_.emplace_back(context_.memory().host(), static_cast<std::uint64_t>(places) * place_,
                        kernels::Tag{base::MemoryCategory::KvCache, "kv_cache.swapped", kernels::DType::U8, {}});
    places_ += places;
    auto* data = static_cast<std::byte*>(slabs_.back().data());
    for (std::int64_t place = places; place > 0; --place) {
        free_.push_back(data + static_cast<std::uint64_t>(place - 1) * place_);
    }
}

std::byte* KvRankSwap::takePlace() {
    if (held_ >= limit_) {
        throw base::Internal("more pages go to the host than it was made to hold");
    }
    if (free_.empty()) {
        addSlab();
    }
    std::byte* const place = free_.back();
    free_.pop_back();
    most_ = std::max(most_, ++held_);
    return place;
}

void KvRankSwap::giveBack(const std::vector<std::byte*>& places) {
    // The next write to these places is made on the stream that wrote them, after the reads from them.
    free_.insert(free_.end(), places.rbegin(), places.rend());
    held_ -= static_cast<std::int64_t>(places.size());
}

std::vector<KvRankSwap::Item> KvRankSwap::itemsOf(std::span<const std::vector<std::int32_t>> pages,
                                                  const std::vector<std::byte*>& places) {
    std::vector<Item> items;
    for (std::size_t group = 0; group < pages.size(); ++group) {
        for (const std::int32_t page : pages[group]) {
            items.push_back({cache_.pageData(static_cast<int>(group), page, cachePlace_), places.at(items.size()),
                             cache_.groups()[group].pageBytes});
        }
    }
    if (items.size() != places.size()) {
        throw base::Internal("a request comes back with other pages than it went with");
    }
    return items;
}

/// Calls `move(items)` for stretches of them that fit half a staging buffer.
template <class Move> void KvRankSwap::eachPiece(const std::vector<Item>& items, Move move) const {
    const auto most = static_cast<std::size_t>(half_ / place_);
    for (std::size_t at = 0; at < items.size(); at += most) {
        move(std::span(items).subspan(at, std::min(most, items.size() - at)));
    }
}

void KvRankSwap::out(std::int32_t request, std::span<const std::vector<std::int32_t>> pages) {
    Away away;
    try {
        for (const std::vector<std::int32_t>& list : pages) {
            for (std::size_t i = 0; i < list.size(); ++i) {
                away.places.push_back(takePlace());
            }
        }
    } catch (...) {
        giveBack(away.places);
        throw;
    }
    eachPiece(itemsOf(pages, away.places), [&](std::span<const Item> items) {
        Half& half = outHalves_[nextOut_++ % outHalves_.size()];
        out_.opsAfter(half.freed);
        for (std::size_t i = 0; i < items.size(); ++i) {
            context_.copy(items[i].page, half.data + i * place_, items[i].bytes);
        }
        out_.after(out_.pointOfOps());
        out_.after(broughtBack_);
        for (std::size_t i = 0; i < items.size(); ++i) {
            out_.toHost(half.data + i * place_, items[i].place, items[i].bytes);
        }
        half.freed = out_.point();
    });
    away.written = out_.point();
    away_.insert_or_assign(request, std::move(away));
}

void KvRankSwap::in(std::int32_t request, std::span<const std::vector<std::int32_t>> pages) {
    const auto found = away_.find(request);
    if (found == away_.end()) {
        throw base::Internal("a request comes back that did not go");
    }
    const Away away = std::move(found->second);
    away_.erase(found);
    in_.after(away.written);
    eachPiece(itemsOf(pages, away.places), [&](std::span<const Item> items) {
        Half& half = inHalves_[nextIn_++ % inHalves_.size()];
        in_.after(half.freed);
        for (std::size_t i = 0; i < items.size(); ++i) {
            in_.toDevice(items[i].place, half.data + i * place_, items[i].bytes);
        }
        in_.opsAfter(in_.point());
        for (std::size_t i = 0; i < items.size(); ++i) {
            context_.copy(half.data + i * place_, items[i].page, items[i].bytes);
        }
        half.freed = in_.pointOfOps();
    });
    broughtBack_ = in_.point();
    giveBack(away.places);
}

void KvRankSwap::drop(std::int32_t request) {
    const auto found = away_.find(request);
    if (found != away_.end()) {
        giveBack(found->second.places);
        away_.erase(found);
    }
}

} // namespace vitrine::engine
