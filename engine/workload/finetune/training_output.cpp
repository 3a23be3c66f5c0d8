// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/finetune/training_output.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <system_error>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "engine/checkpoint/atomic_file.h"
#include "engine/checkpoint/output_check.h"
#include "engine/checkpoint/shards.h"
#include "engine/training/files/training_checkpoint.h"
#include "engine/training/files/training_folder.h"
#include "engine/workload/finetune/finetune_run.h"

namespace vitrine::engine {

namespace {

namespace fs = std::filesystem;

constexpr const char* kMetricTable = "metrics.csv";
constexpr const char* kBoardFolder = "tensorboard";

} // namespace

TrainingOutput::TrainingOutput(const Run& run, const ModelSource& source, bool computesValues)
    : run_(run), source_(source), folder_(run.spec.text("output")), written_(run.spec.has("output") && computesValues) {
}

void TrainingOutput::begin(std::int64_t firstStep, std::int64_t steps) {
    if (!written_) {
        return;
    }
    requireFreePlaces(firstStep, steps);
    removeEarlier(firstStep);
    removeLeftOvers();
    open(firstStep);
}

void TrainingOutput::open(std::int64_t firstStep) {
    board_ = std::make_unique<TensorBoardFile>(folder_ + "/" + kBoardFolder, firstStep);
    noteTrainingFiles(folder_, resultFiles());
    table_ = std::make_unique<MetricTable>(
        folder_ + "/" + kMetricTable,
        std::vector<std::string>{"loss", "learning_rate", "grad_norm", "tokens_per_second"}, firstStep);
}

void TrainingOutput::removeEarlier(std::int64_t firstStep) const {
    const bool overwrite = run_.spec.flag("overwrite");
    if (!goesOnIn(run_.spec.text("resume"), folder_)) {
        if (overwrite) {
            removeEarlierTraining(folder_);
        }
        return;
    }
    for (const auto& [step, path] : namedCheckpoints(folder_)) {
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
    removeParts(folder_, isOwn);
    removeParts(folder_ + "/merged", isOwn);
    for (const std::string& partial : partialCheckpoints(folder_)) {
        removeCheckpoint(partial);
    }
}

/// Before the first step: a run of days must not fail at its first checkpoint.
void TrainingOutput::requireFreePlaces(std::int64_t firstStep, std::int64_t steps) const {
    const std::int64_t every = run_.spec.integer("save_every");
    for (const auto& [step, path] : namedCheckpoints(folder_)) {
        if (every > 0 && step >= firstStep && step <= steps && step % every == 0 &&
            checkpointKind(path) != CheckpointKind::Own) {
            throw base::BadInput(fmt::format("output: {} is in the place of a checkpoint of this run; move it, or name "
                                             "another folder",
                                             path));
        }
    }
}

/// Of this run, from the folder on.
std::vector<std::string> TrainingOutput::resultFiles() const {
    std::vector<std::string> out = {kMetricTable,
                                    fmt::format("{}/{}", kBoardFolder, fs::path(board_->path()).filename().string())};
    const auto addModel = [&](const std::string& place) {
        for (const char* name : {"config.json", "model.safetensors"}) {
            out.push_back(place + name);
        }
        for (const std::string& name :
             source_.folder.empty() ? std::vector<std::string>() : smallFiles(source_.folder)) {
            out.push_back(place + name);
        }
    };
    if (finetuneMethod(run_.spec) == FinetuneMethod::Full) {
        addModel("");
        return out;
    }
    out.insert(out.end(), {"adapter_config.json", "adapter_model.safetensors"});
    if (run_.spec.text("merge") != "none") {
        addModel("merged/");
    }
    return out;
}

void TrainingOutput::holdFolder() const {
    if (written_) {
        std::ranges::for_each(run_.locks, &FolderLock::renew);
    }
}

void TrainingOutput::writeStep(std::int64_t step, std::span<const double> values) {
    if (table_ == nullptr) {
        return;
    }
    holdFolder();
    if (std::error_code none; !fs::exists(folder_ + "/" + kMetricTable, none)) {
        base::logWarning(fmt::format("output: {} is gone; it is made again, and {} begins with step {}", folder_,
                                     kMetricTable, step));
        open(step);
    }
    table_->write(step, values);
    constexpr std::array<const char*, 4> kNames = {"train/loss", "train/learning_rate", "train/grad_norm",
                                                   "train/tokens_per_second"};
    std::vector<NamedMetric> named;
    for (std::size_t i = 0; i < kNames.size(); ++i) {
        named.push_back({kNames[i], values[i]});
    }
    board_->write(step, named);
}

void TrainingOutput::writeEvaluation(std::int64_t step, double loss) {
    if (board_ != nullptr) {
        const NamedMetric named{"eval/loss", loss};
        board_->write(step, std::span(&named, 1));
    }
}

std::vector<std::int64_t> TrainingOutput::save(std::int64_t step, kernels::Context& context, const TrainedState& state,
                                               const nlohmann::json& progress) {
    try {
        holdFolder();
        writeTrainingCheckpoint(folder_, step, context, state, progress);
    } catch (const base::BadInput& error) {
        saveElsewhere(error, step, context, state, progress);
    } catch (const base::Internal& error) {
        saveElsewhere(error, step, context, state, progress);
    }
    const std::int64_t keep = run_.spec.integer("keep_checkpoints");
    return keep > 0 ? keepLatestCheckpoints(folder_, keep, step) : std::vector<std::int64_t>();
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
