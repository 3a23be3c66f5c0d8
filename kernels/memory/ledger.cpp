// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

#include "kernels/memory/ledger.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <utility>

namespace vitrine::kernels {

std::int32_t layerOfName(std::string_view name) {
    constexpr std::string_view kMark = "layers.";
    const std::size_t at = name.find(kMark);
    if (at == std::string_view::npos) {
        return -1;
    }
    std::int32_t layer = -1;
    const char* begin = name.data() + at + kMark.size();
    const auto [end, error] = std::from_chars(begin, name.data() + name.size(), layer);
    return error == std::errc{} && end != begin ? layer : -1;
}

namespace {

base::CategoryBytes sum(base::CategoryBytes a, const base::CategoryBytes& b) {
    std::transform(a.begin(), a.end(), b.begin(), a.begin(), std::plus{});
    return a;
}

std::uint64_t above(std::uint64_t value, std::uint64_t base) {
    return value > base ? value - base : 0;
}

} // namespace

void Ledger::add(base::MemoryCategory category, std::uint64_t bytes) {
    const auto slot = static_cast<std::size_t>(category);
    const base::CategoryBytes& current = statistics_.currentByCategory;
    statistics_.current += bytes;
    statistics_.currentByCategory[slot] += bytes;
    statistics_.maxByCategory[slot] = std::max(statistics_.maxByCategory[slot], current[slot]);
    statistics_.windowPeak = std::max(statistics_.windowPeak, statistics_.current);
    if (statistics_.current > statistics_.peak) {
        statistics_.peak = statistics_.current;
        statistics_.peakByCategory = current;
        statistics_.peakPlace = tracer_.place();
    }
    step_.maxByCategory[slot] = std::max(step_.maxByCategory[slot], above(current[slot], stepBase_[slot]));
    if (above(statistics_.current, stepBaseTotal_) > step_.peak) {
        step_.peak = statistics_.current - stepBaseTotal_;
        std::transform(current.begin(), current.end(), stepBase_.begin(), step_.peakByCategory.begin(), above);
    }
}

void Ledger::beginStep() {
    step_ = {};
    stepBase_ = statistics_.currentByCategory;
    stepBaseTotal_ = statistics_.current;
}

void Ledger::repeatStep(const StepMemory& step) {
    const base::CategoryBytes& current = statistics_.currentByCategory;
    const base::CategoryBytes most = sum(current, step.maxByCategory);
    std::transform(most.begin(), most.end(), statistics_.maxByCategory.begin(), statistics_.maxByCategory.begin(),
                   [](std::uint64_t a, std::uint64_t b) { return std::max(a, b); });
    statistics_.windowPeak = std::max(statistics_.windowPeak, statistics_.current + step.peak);
    if (statistics_.current + step.peak > statistics_.peak) {
        statistics_.peak = statistics_.current + step.peak;
        statistics_.peakByCategory = sum(current, step.peakByCategory);
        statistics_.peakPlace = tracer_.place();
    }
    statistics_.allocations += step.allocations;
    statistics_.frees += step.allocations;
}

void Ledger::addUntracked(std::uint64_t bytes) {
    if (bytes == 0) {
        return;
    }
    add(base::MemoryCategory::Untracked, bytes);
    tracer_.allocated(0, bytes, space_, base::MemoryCategory::Untracked, "context and libraries", DType::None, Shape{});
    reserved(static_cast<std::int64_t>(bytes));
}

void Ledger::allocated(void* address, std::uint64_t bytes, const Tag& tag) {
    const std::uint64_t id = tracer_.allocated(reinterpret_cast<std::uintptr_t>(address), bytes, space_, tag.category,
                                               tag.name, tag.dtype, tag.shape, tag.format);
    live_[address] = Live{id, bytes, tag.category, layerOfName(tag.name)};
    ++statistics_.allocations;
    ++step_.allocations;
    add(tag.category, bytes);
}

void Ledger::freed(void* address) noexcept {
    const auto it = live_.find(address);
    if (it == live_.end()) {
        return;
    }
    statistics_.current -= it->second.bytes;
    statistics_.currentByCategory[static_cast<std::size_t>(it->second.category)] -= it->second.bytes;
    ++statistics_.frees;
    tracer_.freed(it->second.id);
    live_.erase(it);
}

void Ledger::reserved(std::int64_t change) {
    statistics_.reserved = static_cast<std::uint64_t>(static_cast<std::int64_t>(statistics_.reserved) + change);
    statistics_.peakReserved = std::max(statistics_.peakReserved, statistics_.reserved);
    if (space_ == base::MemorySpace::Device) {
        tracer_.counter("reserved_bytes", static_cast<double>(statistics_.reserved));
    }
}

std::string Ledger::stepArenaName() const {
    const std::string_view step = tracer_.stepName();
    return step.empty() ? "arena of the steps" : "arena of the " + std::string(step) + " step";
}

std::uint64_t Ledger::addIdleArenas(base::OutOfMemoryDetails& details) const {
    std::uint64_t idle = 0;
    for (const auto& [arena, use] : arenas_) {
        const ArenaUse found = use();
        const std::uint64_t unused = above(found.bytes, found.used);
        if (unused == 0) {
            continue;
        }
        idle += unused;
        details.holders.push_back({"idle in the " + found.name, "", unused});
        // The name decides between equals: the order of a map of addresses does not repeat.
        if (std::pair(unused, found.name) > std::pair(details.arenaIdle, details.arena)) {
            details.arena = found.name;
            details.arenaBytes = found.bytes;
            details.arenaIdle = unused;
        }
    }
    std::sort(details.holders.begin(), details.holders.end(),
              [](const auto& a, const auto& b) { return a.category < b.category; });
    return idle;
}

base::OutOfMemory Ledger::failure(std::uint64_t requested, const Tag& tag, std::uint64_t budget,
                                  std::uint64_t largestFree) {
    base::OutOfMemoryDetails details;
    details.what = std::string(tag.name);
    details.category = std::string(base::categoryName(tag.category));
    details.requested = requested;
    details.budget = budget;
    details.held = statistics_.reserved; // slack inside arenas and pools cannot serve the request either
    details.largestFree = largestFree;
    std::map<std::pair<base::MemoryCategory, std::int32_t>, std::uint64_t> byHolder;
    for (const auto& [address, live] : live_) {
        byHolder[{live.category, live.layer}] += live.bytes;
    }
    const auto untracked = statistics_.currentByCategory[static_cast<std::size_t>(base::MemoryCategory::Untracked)];
    if (untracked > 0) {
        byHolder[{base::MemoryCategory::Untracked, -1}] = untracked;
    }
    const std::uint64_t slack = above(statistics_.reserved, statistics_.current + addIdleArenas(details));
    if (slack > 0) {
        details.holders.push_back({"reserved, not in use", "", slack});
    }
    for (const auto& [key, bytes] : byHolder) {
        const std::string layer = key.second < 0 ? std::string() : "layer " + std::to_string(key.second);
        details.holders.push_back({std::string(base::categoryName(key.first)), layer, bytes});
    }
    std::stable_sort(details.holders.begin(), details.holders.end(),
                     [](const auto& a, const auto& b) { return a.bytes > b.bytes; });

    base::OutOfMemoryEvent event;
    event.requested = requested;
    event.budget = budget;
    event.reserved = statistics_.reserved;
    event.largestFree = largestFree;
    event.category = tag.category;
    event.arenaBytes = details.arenaBytes;
    event.arenaIdle = details.arenaIdle;
    tracer_.outOfMemory(event, tag.name, details.arena);
    return base::OutOfMemory(std::move(details));
}

} // namespace vitrine::kernels
