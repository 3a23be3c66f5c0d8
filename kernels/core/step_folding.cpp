// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

#include "kernels/core/step_folding.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace vitrine::kernels {

namespace {

using base::AllocationEvent;
using base::FreeEvent;
using base::ScopeBeginEvent;
using base::ScopeEndEvent;
using base::TraceEvent;

/// FNV-1a over 64-bit words: the signature of a step's sequence of events.
class Signature {
public:
    void add(std::uint64_t word) {
        for (int shift = 0; shift < 64; shift += 8) {
            hash_ = (hash_ ^ ((word >> shift) & 0xFF)) * 0x100000001B3ULL;
        }
        ++words_;
    }
    std::uint64_t value() const { return hash_ ^ words_; }

private:
    std::uint64_t hash_ = 0xCBF29CE484222325ULL;
    std::uint64_t words_ = 0;
};

class StepSplitter {
public:
    StepSplitter(base::ScopeId root, base::TimeNs begin) : begin_(begin) {
        ids_.emplace(root.value, 0);
        nextRelative_ = 1;
    }

    StepSplit split(const std::vector<TraceEvent>& events, base::TimeNs end) {
        born_.reserve(events.size());
        ids_.reserve(events.size());
        out_.step.events.reserve(events.size());
        for (const TraceEvent& event : events) {
            if (const auto* allocation = std::get_if<AllocationEvent>(&event)) {
                born_.emplace(allocation->id, false);
            } else if (const auto* freed = std::get_if<FreeEvent>(&event)) {
                const auto it = born_.find(freed->id);
                if (it != born_.end()) {
                    it->second = true;
                }
            }
        }
        for (const TraceEvent& event : events) {
            std::visit([&](const auto& value) { take(value); }, event);
        }
        out_.step.duration = end - begin_;
        out_.step.idCount = nextRelative_;
        out_.signature = signature_.value();
        out_.ids = std::move(ids_);
        return std::move(out_);
    }

private:
    base::TimeNs relative(base::TimeNs time) const { return time - begin_; }

    std::uint64_t relativeId(std::uint64_t id) {
        const auto [it, isNew] = ids_.emplace(id, nextRelative_);
        nextRelative_ += isNew ? 1 : 0;
        return it->second;
    }

    void take(const AllocationEvent& event) {
        if (!born_.at(event.id)) {
            out_.outliving.emplace_back(event);
            return;
        }
        AllocationEvent inside = event;
        inside.time = relative(event.time);
        inside.id = relativeId(event.id);
        inside.scope.value = relativeId(event.scope.value);
        for (const std::uint64_t word : {std::uint64_t{1}, inside.id, inside.bytes, inside.scope.value, inside.address,
                                         std::uint64_t{event.name.value}, static_cast<std::uint64_t>(event.category)}) {
            signature_.add(word);
        }
        for (const std::int64_t dim : event.shape) {
            signature_.add(static_cast<std::uint64_t>(dim));
        }
        out_.step.events.emplace_back(inside);
    }
    void take(const FreeEvent& event) {
        const auto it = born_.find(event.id);
        if (it == born_.end()) {
            out_.outliving.emplace_back(event);
            return;
        }
        const FreeEvent inside{relative(event.time), relativeId(event.id)};
        signature_.add(2);
        signature_.add(inside.id);
        out_.step.events.emplace_back(inside);
    }
    void take(const ScopeBeginEvent& event) {
        ScopeBeginEvent inside = event;
        inside.time = relative(event.time);
        inside.id.value = relativeId(event.id.value);
        const bool isRoot = inside.id.value == 0;
        inside.parent.value = isRoot ? 0 : relativeId(event.parent.value);
        inside.index = isRoot ? -1 : event.index;
        out_.scopes.push_back({event.id, event.id, inside.id.value});
        for (const std::uint64_t word :
             {std::uint64_t{3}, inside.id.value, inside.parent.value, std::uint64_t{event.name.value},
              static_cast<std::uint64_t>(event.kind), static_cast<std::uint64_t>(inside.index),
              static_cast<std::uint64_t>(event.tokens)}) {
            signature_.add(word);
        }
        out_.step.events.emplace_back(inside);
    }
    void take(const ScopeEndEvent& event) {
        // Costs may grow from step to step (attention over a longer cache); they are not part of the signature.
        ScopeEndEvent inside = event;
        inside.time = relative(event.time);
        inside.id.value = relativeId(event.id.value);
        signature_.add(4);
        signature_.add(inside.id.value);
        out_.step.events.emplace_back(inside);
    }
    template <class Other> void take(const Other& event) { out_.outliving.emplace_back(event); }

    base::TimeNs begin_;
    StepSplit out_;
    Signature signature_;
    std::uint64_t nextRelative_ = 0;
    std::unordered_map<std::uint64_t, std::uint64_t> ids_;
    std::unordered_map<std::uint64_t, bool> born_; ///< allocations of the step: freed inside?
};

} // namespace

StepSplit splitStep(base::ScopeId root, base::TimeNs begin, base::TimeNs end, const std::vector<TraceEvent>& events) {
    return StepSplitter(root, begin).split(events, end);
}

/// What a step's own device memory came to at its peak, by category.
base::CategoryBytes peakInside(const base::StepTemplate& step) {
    std::unordered_map<std::uint64_t, const AllocationEvent*> alive;
    base::CategoryBytes now{};
    base::CategoryBytes peak{};
    std::uint64_t total = 0;
    std::uint64_t most = 0;
    for (const TraceEvent& event : step.events) {
        if (const auto* birth = std::get_if<AllocationEvent>(&event);
            birth != nullptr && birth->space == base::MemorySpace::Device) {
            alive.emplace(birth->id, birth);
            now[static_cast<std::size_t>(birth->category)] += birth->bytes;
            total += birth->bytes;
            if (total > most) {
                most = total;
                peak = now;
            }
        } else if (const auto* death = std::get_if<FreeEvent>(&event); death != nullptr && alive.contains(death->id)) {
            const AllocationEvent& gone = *alive.at(death->id);
            now[static_cast<std::size_t>(gone.category)] -= gone.bytes;
            total -= gone.bytes;
            alive.erase(death->id);
        }
    }
    return peak;
}

/// Where the step's own tensors begin.
std::uint64_t lowestAddress(const base::StepTemplate& step) {
    std::uint64_t lowest = std::numeric_limits<std::uint64_t>::max();
    for (const TraceEvent& event : step.events) {
        if (const auto* birth = std::get_if<AllocationEvent>(&event)) {
            lowest = std::min(lowest, birth->address);
        }
    }
    return lowest;
}

const StepTemplates::Entry* StepTemplates::bySignature(std::uint64_t signature) const {
    const auto found = std::ranges::find_if(entries_, [&](const Entry& entry) { return entry.signature == signature; });
    return found == entries_.end() ? nullptr : &*found;
}

const StepTemplates::Entry* StepTemplates::byId(std::optional<std::uint32_t> id) const {
    if (!id) {
        return nullptr;
    }
    const auto found = std::ranges::lower_bound(entries_, *id, {}, [](const Entry& entry) { return entry.step->id; });
    return found == entries_.end() || found->step->id != *id ? nullptr : &*found;
}

const StepTemplates::Entry& StepTemplates::add(std::uint64_t signature, base::StepTemplate step, std::string name) {
    return entries_.emplace_back(
        Entry{signature, std::make_shared<const base::StepTemplate>(std::move(step)), std::move(name)});
}

} // namespace vitrine::kernels
