// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "base/error.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/units.h"

namespace vitrine::base {

namespace {

constexpr std::size_t kHoldersInMessage = 3;
constexpr std::size_t kHoldersKept = 8;

/// Whether smaller prefill steps would need less: their arena is asked for, or lies idle.
bool prefillArena(const OutOfMemoryDetails& details) {
    return details.arena.find("prefill") != std::string::npos || details.what.find("prefill") != std::string::npos;
}

/// What helps depends on what was asked for.
std::string_view advice(std::string_view category) {
    if (category == "weights") {
        return "load quantized weights, choose a smaller model or raise the memory budget";
    }
    if (category == "kv_cache") {
        return "use a shorter context, fewer sequences or a smaller KV dtype, or raise the memory budget";
    }
    if (category == "optimizer" || category == "gradients") {
        return "train an adapter (LoRA, QLoRA) in place of all weights or raise the memory budget";
    }
    return "use a smaller batch or a shorter context, or raise the memory budget";
}

/// Layers of a category together, largest first: one layer of many would mislead in a sentence.
std::vector<OutOfMemoryDetails::Holder> byCategory(const std::vector<OutOfMemoryDetails::Holder>& holders) {
    std::vector<OutOfMemoryDetails::Holder> out;
    for (const OutOfMemoryDetails::Holder& holder : holders) {
        const auto it =
            std::find_if(out.begin(), out.end(), [&](const auto& other) { return other.category == holder.category; });
        if (it == out.end()) {
            out.push_back({holder.category, "", holder.bytes});
        } else {
            it->bytes += holder.bytes;
        }
    }
    std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
    return out;
}

std::string outOfMemorySentence(const OutOfMemoryDetails& details) {
    const std::uint64_t free = details.budget > details.held ? details.budget - details.held : 0;
    std::string text = fmt::format("{}: out of memory: {} asked for, {} of {} free",
                                   details.what.empty() ? "allocation" : details.what, formatBytes(details.requested),
                                   formatBytes(free), formatBytes(details.budget));
    if (details.largestFree < free) {
        text += fmt::format(" (largest free block {})", formatBytes(details.largestFree));
    }
    const std::vector<OutOfMemoryDetails::Holder> holders = byCategory(details.holders);
    const std::size_t shown = std::min(kHoldersInMessage, holders.size());
    for (std::size_t i = 0; i < shown; ++i) {
        text +=
            fmt::format("{}{} {}", i == 0 ? "; held by " : ", ", holders[i].category, formatBytes(holders[i].bytes));
    }
    text += "; ";
    const std::string_view largest = holders.empty() ? std::string_view{} : std::string_view(holders.front().category);
    std::string_view help = advice(details.category.empty() ? largest : std::string_view(details.category));
    if (prefillArena(details)) {
        constexpr std::string_view kUse = "use ";
        text += help.starts_with(kUse) ? "use a smaller prefill chunk, " : "use a smaller prefill chunk or ";
        help.remove_prefix(help.starts_with(kUse) ? kUse.size() : 0);
    }
    text += help;
    return text;
}

} // namespace

std::string_view errorKindName(ErrorKind kind) {
    switch (kind) {
    case ErrorKind::BadInput:
        return "bad_input";
    case ErrorKind::Unsupported:
        return "unsupported";
    case ErrorKind::OutOfMemory:
        return "out_of_memory";
    case ErrorKind::Cancelled:
        return "cancelled";
    case ErrorKind::DeviceFault:
        return "device_fault";
    case ErrorKind::Internal:
        return "internal";
    }
    return "internal";
}

int exitCode(ErrorKind kind) {
    switch (kind) {
    case ErrorKind::BadInput:
    case ErrorKind::Unsupported:
        return 2;
    case ErrorKind::OutOfMemory:
        return 3;
    case ErrorKind::Cancelled:
        return 130;
    case ErrorKind::DeviceFault:
    case ErrorKind::Internal:
        return 1;
    }
    return 1;
}

OutOfMemory::OutOfMemory(OutOfMemoryDetails details)
    : Error(ErrorKind::OutOfMemory, outOfMemorySentence(details)), details_(std::move(details)) {
    if (details_.holders.size() > kHoldersKept) {
        details_.holders.resize(kHoldersKept);
    }
}

} // namespace vitrine::base
