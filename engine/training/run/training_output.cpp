// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/run/training_output.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "engine/checkpoint/atomic_file.h"
#include "engine/checkpoint/output_check.h"
#include "engine/checkpoint/shards.h"
#include "engine/training/files/training_checkpoint.h"
#include "engine/training/files/training_folder.h"

namespace vitrine::engine {

namespace {

namespace fs = std::filesystem;

constexpr const char* kMetricTable = "metrics.csv";
constexpr const char* kBoardFolder = "tensorboard";

} // namespace

TrainingOutput::TrainingOutput(TrainingOutputOptions options) : options_(std::move(options)) {}

void TrainingOutput::begin(std::int64_t firstStep, std::int64_t steps) {
    if (!isWritten()) {
        return;
    }
    requireFreePlaces(firstStep, steps);
    removeEarlier(firstStep);
    removeLeftOvers();
    open(firstStep);
}

void TrainingOutput::open(std::int64_t firstStep) {
    const std::string& folder = options_.folder;
    board_ = std::make_unique<TensorBoardFile>(folder + "/" + kBoardFolder, firstStep);
    std::vector<std::string> files = {kMetricTable,
                                      fmt::format("{}/{}", kBoardFolder, fs::path(board_->path()).filename().string())};
    files.insert(files.end(), options_.resultFiles.begin(), options_.resultFiles.end());
    noteTrainingFiles(folder, files);
    std::vector<std::string> columns = options_.columns;
    if (options_.evaluationColumn) {
        columns.push_back("eval_" + options_.evaluation);
    }
    table_ = std::make_unique<MetricTable>(folder + "/" + kMetricTable, columns, firstStep);
}

void TrainingOutput::removeEarlier(std::int64_t firstStep) const {
    const bool overwrite = options_.overwrite;
    if (!goesOnIn(options_.resume, options_.folder)) {
        if (overwrite || !abandonedTraining(options_.folder).empty()) {
            removeEarlierTraining(options_.folder);
        }
        return;
    }
    for (const auto& [step, path] : namedCheckpoints(options_.folder)) {
        if (step < firstStep || checkpointKind(path) != CheckpointKind::Own) {
            continue;
        }
        if (!overwrite) {
            base::logWarning(fmt::format("{}: is later than the checkpoint that the run goes on from, and stays until "
                                         "the run comes there; --overwrite removes it at once",
                                         path));
            return;
        }
        removeCheckpoint(path);
    }
}

/// Of processes that were killed while they wrote. No other run writes here now.
void TrainingOutput::removeLeftOvers() const {
    const auto isOwn = [](const std::string& name) {
        return isModelFile(name) || name == kTrainingFilesName || name == "adapter_config.json" ||
               name == "adapter_model.safetensors";
    };
    removeParts(options_.folder, isOwn);
    removeParts(options_.folder + "/merged", isOwn);
    for (const std::string& partial : partialCheckpoints(options_.folder)) {
        removeCheckpoint(partial);
    }
}

/// Before the first step: a run of days must not fail at its first checkpoint.
void TrainingOutput::requireFreePlaces(std::int64_t firstStep, std::int64_t steps) const {
    const std::int64_t every = options_.saveEvery;
    for (const auto& [step, path] : namedCheckpoints(options_.folder)) {
        if (every > 0 && step >= firstStep && step <= steps && step % every == 0 &&
            checkpointKind(path) != CheckpointKind::Own) {
            throw base::BadInput(fmt::format("output: {} is in the place of a checkpoint of this run; move it, or name "
                                             "another folder",
                                             path));
        }
    }
}

void TrainingOutput::holdFolder() const {
    if (isWritten()) {
        std::ranges::for_each(options_.locks, &FolderLock::renew);
    }
}

void TrainingOutput::writeStep(std::int64_t step, std::span<const double> values) {
    if (table_ == nullptr) {
        return;
    }
    holdFolder();
    if (std::error_code none; !fs::exists(options_.folder + "/" + kMetricTable, none)) {
        base::logWarning(fmt::format("output: {} is gone; it is made again, and {} begins with step {}",
                                     options_.folder, kMetricTable, step));
        open(step);
    }
    writeRow(step, values);
    std::vector<NamedMetric> named;
    named.reserve(options_.columns.size());
    for (std::size_t i = 0; i < options_.columns.size(); ++i) {
        if (!std::isnan(values[i])) {
            named.push_back({"train/" + options_.columns[i], values[i]});
        }
    }
    board_->write(step, named);
}

void TrainingOutput::writeRow(std::int64_t step, std::span<const double> values) {
    std::vector<double> row(values.begin(), values.end());
    if (options_.evaluationColumn) {
        row.push_back(step == evaluatedStep_ ? evaluated_ : std::numeric_limits<double>::quiet_NaN());
    }
    table_->write(step, row);
}

void TrainingOutput::writeEvaluation(std::int64_t step, double value) {
    if (board_ == nullptr) {
        return;
    }
    evaluatedStep_ = step;
    evaluated_ = value;
    const NamedMetric named{"eval/" + options_.evaluation, value};
    board_->write(step, std::span(&named, 1));
    if (options_.evaluationColumn && step == 0) {
        writeRow(0, std::vector<double>(options_.columns.size(), std::numeric_limits<double>::quiet_NaN()));
    }
}

std::vector<std::int64_t> TrainingOutput::save(std::int64_t step, kernels::Context& context, const TrainedState& state,
                                               const nlohmann::json& progress) {
    try {
        holdFolder();
        writeTrainingCheckpoint(options_.folder, step, context, state, progress);
    } catch (const base::BadInput& error) {
        saveElsewhere(error, step, context, state, progress);
    } catch (const base::Internal& error) {
        saveElsewhere(error, step, context, state, progress);
    }
    const std::int64_t keep = options_.keepCheckpoints;
    return keep > 0 ? keepLatestCheckpoints(options_.folder, keep, step) : std::vector<std::int64_t>();
}

/// Hours of training must not be lost with the folder.
void TrainingOutput::saveElsewhere(const base::Error& why, std::int64_t step, kernels::Context& context,
                                   const TrainedState& state, const nlohmann::json& progress) const {
    std::string place;
    try {
        const fs::path spare = fs::temp_directory_path() / fmt::format("vitrine-training-{}", ::getpid());
        place = writeTrainingCheckpoint(spare.string(), step, context, state, progress);
    } catch (const std::exception&) {
        throw base::BadInput(why.message()); // there is no other place
    }
    throw base::BadInput(
        fmt::format("{}; the training after step {} is saved in {}: go on from there with --resume and "
                    "another --output",
                    why.message(), step, place));
}

} // namespace vitrine::engine
