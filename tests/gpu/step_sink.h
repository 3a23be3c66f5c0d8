// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/trace.h"

namespace vitrine::gpu {

/// The steps of a run as a reader of the trace sees them.
class StepSink final : public base::TraceSink {
public:
    struct Step {
        std::string name;
        std::int32_t index = 0;
        base::TimeNs begin = 0, end = 0;
    };

    base::StringId intern(std::string_view text) override {
        names_.emplace_back(text);
        return {static_cast<std::uint32_t>(names_.size())};
    }
    void record(const base::TraceEvent& event) override {
        if (const auto* made = std::get_if<base::StepTemplateEvent>(&event)) {
            templates_[made->step->id] =
                names_.at(std::get<base::ScopeBeginEvent>(made->step->events.front()).name.value - 1);
        } else if (const auto* replay = std::get_if<base::StepReplayedEvent>(&event)) {
            const std::string& name = templates_.at(replay->stepTemplate);
            ++replays[name];
            steps.push_back({name, replay->index, replay->begin, replay->end});
        } else if (const auto* begin = std::get_if<base::ScopeBeginEvent>(&event);
                   begin != nullptr && begin->kind == base::ScopeKind::Step) {
            open_[begin->id.value] = steps.size();
            steps.push_back({names_.at(begin->name.value - 1), begin->index, begin->time, 0});
        } else if (const auto* end = std::get_if<base::ScopeEndEvent>(&event);
                   end != nullptr && open_.contains(end->id.value)) {
            steps[open_.at(end->id.value)].end = end->time;
        }
    }

    std::vector<Step> steps;
    std::map<std::string, std::int64_t> replays; ///< how many, by the name of the step

private:
    std::vector<std::string> names_;
    std::map<std::uint32_t, std::string> templates_;
    std::map<std::uint64_t, std::size_t> open_;
};

} // namespace vitrine::gpu
