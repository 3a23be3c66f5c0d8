// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What exports call the kinds of scopes and the states of slots, requests and pages.

#include <string_view>

#include "base/trace.h"

namespace vitrine::profiler {

constexpr std::string_view scopeKindName(base::ScopeKind kind) {
    constexpr std::string_view kNames[] = {"run", "phase", "step", "layer", "op"};
    return kNames[static_cast<std::size_t>(kind)];
}

constexpr std::string_view slotStateName(base::SlotState state) {
    constexpr std::string_view kNames[base::kSlotStateCount] = {"idle", "prefill", "decode", "padding", "preempted"};
    return kNames[static_cast<std::size_t>(state)];
}

constexpr std::string_view requestPhaseName(base::RequestChange phase) {
    constexpr std::string_view kNames[base::kRequestChangeCount] = {"arrived", "admitted", "first_token", "preempted",
                                                                    "resumed", "finished", "cancelled",   "refused"};
    return kNames[static_cast<std::size_t>(phase)];
}

constexpr std::string_view pageStateName(base::PageState state) {
    constexpr std::string_view kNames[base::kPageStateCount] = {"free", "used", "cached"};
    return kNames[static_cast<std::size_t>(state)];
}

} // namespace vitrine::profiler
