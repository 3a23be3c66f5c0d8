// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/cache/kv_range.h"

#include <algorithm>
#include <atomic>

#include "kernels/context/context.h"
#include "kernels/context/device_group.h"
#include "kernels/memory/memory.h"

namespace vitrine::engine {

KvRange::KvRange(kernels::Context& context, bool everyRank, std::uint64_t bytes, const kernels::Tag& tag)
    : context_(context) {
    const bool several = everyRank && context.group() != nullptr;
    ranges_.resize(several ? static_cast<std::size_t>(context.group()->size()) : 1);
    const auto reserve = [&](kernels::Context& of, int rank) {
        ranges_[static_cast<std::size_t>(rank)] = of.memory().reserveRange(bytes, tag);
    };
    try {
        onEveryRank(reserve);
    } catch (...) {
        onEveryRank([&](kernels::Context&, int rank) { ranges_[static_cast<std::size_t>(rank)].reset(); });
        throw;
    }
}

/// The memory of a rank goes on its thread.
KvRange::~KvRange() {
    onEveryRank([&](kernels::Context&, int rank) { ranges_[static_cast<std::size_t>(rank)].reset(); });
}

void KvRange::onEveryRank(const std::function<void(kernels::Context& context, int rank)>& work) const {
    if (ranges_.size() == 1) {
        work(context_, 0);
        return;
    }
    context_.group()->run([&](kernels::Context& context) { work(context, context.rank()); });
}

std::uint64_t KvRange::backed() const {
    std::uint64_t least = ranges_.front()->backed();
    for (const auto& range : ranges_) {
        least = std::min(least, range->backed());
    }
    return least;
}

void KvRange::grow(std::uint64_t bytes, const kernels::Tag& tag) {
    const std::uint64_t before = backed();
    try {
        onEveryRank([&](kernels::Context&, int rank) { ranges_[static_cast<std::size_t>(rank)]->grow(bytes, tag); });
    } catch (...) {
        if (ranges_.size() > 1) {
            shrink(before);
        }
        throw;
    }
}

bool KvRange::tryGrow(std::uint64_t bytes) {
    const std::uint64_t before = backed();
    std::atomic<bool> grew = true;
    onEveryRank([&](kernels::Context&, int rank) {
        if (!ranges_[static_cast<std::size_t>(rank)]->tryGrow(bytes)) {
            grew = false;
        }
    });
    if (!grew && ranges_.size() > 1) {
        shrink(before);
    }
    return grew;
}

void KvRange::shrink(std::uint64_t bytes) {
    onEveryRank([&](kernels::Context&, int rank) { ranges_[static_cast<std::size_t>(rank)]->shrink(bytes); });
}

void KvRange::enter(std::uint64_t offset, std::uint64_t bytes, const kernels::Tag& tag) {
    onEveryRank(
        [&](kernels::Context&, int rank) { ranges_[static_cast<std::size_t>(rank)]->enter(offset, bytes, tag); });
}

void KvRange::leave(std::uint64_t offset) {
    onEveryRank([&](kernels::Context&, int rank) { ranges_[static_cast<std::size_t>(rank)]->leave(offset); });
}

} // namespace vitrine::engine
