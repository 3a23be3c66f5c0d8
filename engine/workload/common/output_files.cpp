// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/common/output_files.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include "engine/checkpoint/output_check.h"
#include "engine/workload/experiment/experiment.h"
#include "engine/workload/experiment/workload_table.h"

namespace vitrine::engine {

namespace {

bool isOutput(const Workload& workload, std::string_view key) {
    return std::any_of(workload.outputs.begin(), workload.outputs.end(),
                       [&](const WorkloadOutput& output) { return output.key == key; });
}

/// What the experiment reads: the options that name files, without those that are names of other things.
std::vector<NamedFile> inputFiles(const Experiment& experiment) {
    std::vector<NamedFile> files;
    for (const OptionSpec& option : optionTable()) {
        if (!namesFiles(option) || isOutput(experiment.workload(), option.key) || !experiment.has(option.key)) {
            continue;
        }
        const std::vector<std::string> paths = option.type == OptionType::TextList
                                                   ? experiment.texts(option.key)
                                                   : std::vector<std::string>{experiment.text(option.key)};
        for (const std::string& path : paths) {
            std::error_code none;
            if (std::filesystem::exists(path, none)) {
                files.push_back({option.key, path});
            }
        }
    }
    return files;
}

bool isSamePlace(const std::filesystem::path& a, const std::filesystem::path& b) {
    std::error_code none;
    return std::filesystem::equivalent(a, b, none);
}

void checkFolder(const Experiment& experiment, const WorkloadOutput& output, const NamedFile& folder,
                 std::vector<NamedFile> others) {
    std::erase_if(others, [&](const NamedFile& other) { return other.option == output.resume; });
    checkOutputFolder(folder, others);
    if (output.overwrite.empty() || experiment.flag(output.overwrite)) {
        return;
    }
    // A training that goes on writes where it wrote before.
    const std::filesystem::path from = experiment.text(output.resume);
    if (!isSamePlace(from, folder.path) && !isSamePlace((from / "").parent_path().parent_path(), folder.path)) {
        requireNoTraining(folder);
    }
}

} // namespace

void checkOutputs(const Experiment& experiment, const std::string& sessionFile) {
    std::vector<NamedFile> others = inputFiles(experiment);
    others.push_back({"session", sessionFile});
    for (const WorkloadOutput& output : experiment.workload().outputs) {
        if (experiment.isPlan() && !output.ofPlans) {
            continue;
        }
        const NamedFile file{output.key, experiment.text(output.key)};
        if (output.kind != nullptr) {
            checkOutputFile(file, *output.kind, others);
            others.push_back(file);
            continue;
        }
        checkFolder(experiment, output, file, others);
    }
}

} // namespace vitrine::engine
