// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/experiment/workload_table.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/error.h"
#include "engine/workload/experiment/workloads.h"

namespace vitrine::engine {
namespace {

struct Tables {
    std::vector<const Workload*> workloads;
    std::vector<OptionSpec> options;
};

template <class Options> auto optionIn(Options& options, std::string_view key) {
    return std::find_if(options.begin(), options.end(), [&](const OptionSpec& option) { return option.key == key; });
}

std::vector<OptionSpec> optionsOf(const std::vector<const Workload*>& workloads) {
    const std::span<const OptionSpec> shared = sharedOptionTable();
    std::vector<OptionSpec> options(shared.begin(), shared.end());
    for (const Workload* workload : workloads) {
        const auto place = optionIn(options, workload->ownOptionsBefore);
        options.insert(place, workload->ownOptions.begin(), workload->ownOptions.end());
    }
    return options;
}

Tables& tables() {
    static Tables made = [] {
        Tables out;
        out.workloads = {&kGenerateWorkload,   &kLoadWorkload,    &kLogitsWorkload,    &kTokenizeWorkload,
                         &kSynthesizeWorkload, &kConvertWorkload, &kPrecisionWorkload, &kBenchWorkload,
                         &kAttentionWorkload,  &kBatchWorkload,   &kServeWorkload,     &kFinetuneWorkload,
                         &kRlWorkload,         &kScoreWorkload};
        out.options = optionsOf(out.workloads);
        return out;
    }();
    return made;
}

} // namespace

std::span<const Workload* const> workloadTable() {
    return tables().workloads;
}

const Workload* findWorkload(std::string_view name) {
    const std::vector<const Workload*>& all = tables().workloads;
    const auto found = std::find_if(all.begin(), all.end(), [&](const Workload* row) { return row->name == name; });
    return found == all.end() ? nullptr : *found;
}

const Workload* workloadOfRun(std::string_view runWorkload) {
    constexpr std::string_view kPlan = "plan ";
    return findWorkload(runWorkload.starts_with(kPlan) ? runWorkload.substr(kPlan.size()) : runWorkload);
}

bool showsIn(const Workload& workload, std::string_view view) {
    return std::find(workload.views.begin(), workload.views.end(), view) != workload.views.end();
}

std::string_view defaultTextOf(const OptionSpec& option, const Workload& workload) {
    const auto own = std::ranges::find(workload.defaults, option.key, &WorkloadDefault::key);
    return own == workload.defaults.end() ? option.defaultText : own->text;
}

std::vector<const Workload*> workloadsOfForm(std::string_view view) {
    std::vector<const Workload*> out;
    for (const Workload* workload : tables().workloads) {
        if (workload->formView == view) {
            out.push_back(workload);
        }
    }
    std::stable_sort(out.begin(), out.end(),
                     [](const Workload* a, const Workload* b) { return a->formPlace < b->formPlace; });
    return out;
}

std::span<const OptionSpec> optionTable() {
    return tables().options;
}

const OptionSpec* findOption(std::string_view key) {
    const std::vector<OptionSpec>& options = tables().options;
    const auto found = optionIn(options, key);
    return found == options.end() ? nullptr : &*found;
}

bool optionApplies(const OptionSpec& option, std::string_view workload, bool plan) {
    if (option.planOnly) {
        return plan;
    }
    const Workload* row = findWorkload(workload);
    if (row == nullptr) {
        return false;
    }
    const std::uint32_t sets = row->optionSets | (row->plan != nullptr ? kPlanningOptions : 0);
    const auto named = std::find(row->optionKeys.begin(), row->optionKeys.end(), option.key);
    return (option.sets & sets) != 0 || named != row->optionKeys.end() ||
           optionIn(row->ownOptions, option.key) != row->ownOptions.end();
}

WorkloadRegistration::WorkloadRegistration(const Workload& workload) : workload_(&workload) {
    const bool known = findWorkload(workload.name) != nullptr;
    if (known || std::any_of(workload.ownOptions.begin(), workload.ownOptions.end(),
                             [](const OptionSpec& option) { return findOption(option.key) != nullptr; })) {
        throw base::Internal(
            fmt::format("workload {}: its name or one of its options is registered already", workload.name));
    }
    Tables& all = tables();
    all.workloads.push_back(&workload);
    all.options = optionsOf(all.workloads);
}

WorkloadRegistration::~WorkloadRegistration() {
    Tables& all = tables();
    std::erase(all.workloads, workload_);
    all.options = optionsOf(all.workloads);
}

} // namespace vitrine::engine
