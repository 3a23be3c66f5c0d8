// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/common/output_files.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "engine/checkpoint/output_check.h"
#include "engine/training/files/training_folder.h"
#include "engine/workload/experiment/experiment.h"
#include "engine/workload/experiment/workload_table.h"

namespace vitrine::engine {

namespace {

namespace fs = std::filesystem;

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

/// An earlier training is removed, so nothing of it may be what this one reads.
void checkRemoved(const NamedFile& folder, const std::vector<NamedFile>& others) {
    std::error_code none;
    for (const std::string& removed : earlierTraining(folder.path)) {
        const fs::path gone = fs::weakly_canonical(removed, none);
        for (const NamedFile& other : others) {
            const fs::path place = fs::weakly_canonical(other.path, none);
            const fs::path read = place.has_filename() ? place : place.parent_path();
            if (!other.path.empty() && (gone == read || gone.parent_path() == read || gone == read.parent_path())) {
                throw base::BadInput(
                    fmt::format("{}: --overwrite would remove {}, which is of {} {}; name another folder",
                                folder.option, removed, other.option, other.path));
            }
        }
    }
}

void checkFolder(const Experiment& experiment, const WorkloadOutput& output, const NamedFile& folder,
                 std::vector<NamedFile> others) {
    std::erase_if(others, [&](const NamedFile& other) { return other.option == output.resume; });
    checkOutputFolder(folder, others);
    if (folder.path.empty() || output.overwrite.empty() || goesOnIn(experiment.text(output.resume), folder.path)) {
        return; // a training that goes on writes where it wrote before
    }
    if (experiment.flag(output.overwrite)) {
        checkRemoved(folder, others);
    } else {
        requireNoTraining(folder, abandonedTraining(folder.path));
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
        if (experiment.has(output.key) && file.path.empty()) {
            throw base::BadInput(fmt::format("{}: is empty; name a {}, or leave the option out", output.key,
                                             output.kind != nullptr ? "file" : "folder"));
        }
        if (output.kind != nullptr) {
            checkOutputFile(file, *output.kind, others);
            others.push_back(file);
            continue;
        }
        checkFolder(experiment, output, file, others);
    }
}

std::vector<FolderLock> lockOutputs(const Experiment& experiment) {
    std::vector<FolderLock> locks;
    for (const WorkloadOutput& output : experiment.workload().outputs) {
        const std::string folder = experiment.text(output.key);
        if (output.kind == nullptr && !folder.empty() && !experiment.isPlan() && experiment.text("backend") != "meta") {
            locks.emplace_back(output.key, folder);
        }
    }
    return locks;
}

} // namespace vitrine::engine
