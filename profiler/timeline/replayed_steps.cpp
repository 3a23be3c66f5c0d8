// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/timeline/replayed_steps.h"

#include <unordered_map>

namespace vitrine::profiler {

std::vector<TemplateEvent> templateEvents(const std::vector<TemplateMemory>& memory,
                                          const std::function<MemoryChange(std::uint32_t)>& birthOf) {
    std::vector<TemplateEvent> events;
    events.reserve(memory.size());
    std::unordered_map<std::uint64_t, std::uint32_t> bornAs; // id to event
    for (const TemplateMemory& item : memory) {
        if (!events.empty() && item.time < events.back().time) {
            return {};
        }
        const auto place = static_cast<std::uint32_t>(events.size());
        TemplateEvent event{.time = item.time, .id = item.id, .def = item.block};
        if (item.death) {
            const auto birth = bornAs.find(item.id);
            if (birth == bornAs.end() || !events[birth->second].outlives()) {
                return {};
            }
            TemplateEvent& other = events[birth->second];
            other.partner = place;
            event.partner = birth->second;
            event.def = other.def;
            event.change = MemoryChange(other.change.bytes(), other.change.space(),
                                        static_cast<base::MemoryCategory>(other.change.category()), true);
        } else {
            if (!bornAs.emplace(item.id, place).second) {
                return {};
            }
            event.change = birthOf(item.block);
        }
        events.push_back(event);
    }
    std::uint32_t births = 0;
    std::uint32_t outliving = 0;
    for (TemplateEvent& event : events) {
        event.births = births;
        event.outliving = outliving;
        births += event.change.death() ? 0 : 1;
        outliving += !event.change.death() && event.outlives() ? 1 : 0;
    }
    return events;
}

} // namespace vitrine::profiler
