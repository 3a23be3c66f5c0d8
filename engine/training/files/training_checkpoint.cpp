// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/files/training_checkpoint.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "base/json_values.h"
#include "base/log.h"
#include "base/strict_json.h"
#include "engine/checkpoint/atomic_file.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/training/files/training_folder.h"
#include "engine/training/parameters/trained_state.h"
#include "kernels/context/context.h"

namespace vitrine::engine {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kPieceBytes = std::uint64_t{64} << 20; ///< that pass through host memory together

/// Calls `visit` with (offset, bytes) of each part of a tensor.
template <class Visit> void forParts(std::uint64_t bytes, const Visit& visit) {
    for (std::uint64_t offset = 0; offset < bytes; offset += kPieceBytes) {
        visit(offset, std::min(kPieceBytes, bytes - offset));
    }
}

void writePieces(const std::string& path, kernels::Context& context, const TrainedState& state) {
    const std::vector<TrainedState::Piece> pieces = state.pieces();
    std::vector<TensorSpec> specs;
    specs.reserve(pieces.size());
    for (const TrainedState::Piece& piece : pieces) {
        specs.push_back({piece.name, piece.view.dtype, {piece.view.shape.count()}});
    }
    const auto writer = SafetensorsWriter::create(path, specs);
    std::vector<std::byte> host;
    for (const TrainedState::Piece& piece : pieces) {
        forParts(piece.view.bytes(), [&](std::uint64_t offset, std::uint64_t bytes) {
            host.resize(bytes);
            context.download(piece.view.as<std::byte>() + offset, host.data(), bytes);
            writer->write(host.data(), bytes);
        });
    }
    writer->finish();
}

[[noreturn]] void failAt(const fs::path& path, const std::error_code& error) {
    throw base::BadInput(fmt::format("{}: cannot be written: {}", path.string(), error.message()));
}

/// Makes room for a folder of ours. What somebody else has there stays.
void clearPlace(const fs::path& folder) {
    std::error_code none;
    if (fs::symlink_status(folder, none).type() != fs::file_type::not_found) {
        removeCheckpoint(folder.string());
    }
}

} // namespace

std::string writeTrainingCheckpoint(const std::string& output, std::int64_t step, kernels::Context& context,
                                    const TrainedState& state, const nlohmann::json& progress) {
    const fs::path folder = fs::path(output) / checkpointName(step);
    const fs::path partial = folder.string() + ".partial";
    std::error_code error;
    clearPlace(partial);
    if (!fs::create_directories(partial, error) || error) {
        failAt(partial, error);
    }
    writePieces((partial / kTrainerTensorsName).string(), context, state);
    nlohmann::json text = progress;
    text["step"] = step;
    writeTextFile((partial / kTrainerProgressName).string(),
                  text.dump(1, ' ', false, nlohmann::json::error_handler_t::replace));
    clearPlace(folder);
    fs::rename(partial, folder, error);
    if (error) {
        failAt(folder, error);
    }
    return folder.string();
}

std::uint64_t trainingCheckpointBytes(const TrainedState& state) {
    std::uint64_t bytes = 0;
    for (const TrainedState::Piece& piece : state.pieces()) {
        bytes += piece.view.bytes();
    }
    return bytes;
}

std::int64_t checkpointsAtOnce(std::int64_t first, std::int64_t last, std::int64_t every, std::int64_t keep,
                               std::int64_t there) {
    if (every <= 0 || first > last) {
        return 0;
    }
    const std::int64_t written = last / every - (first - 1) / every;
    return keep <= 0 ? written : std::min(written, std::max<std::int64_t>(keep - there, 0) + 1);
}

std::vector<std::int64_t> keepLatestCheckpoints(const std::string& output, std::int64_t count, std::int64_t step) {
    std::map<std::int64_t, std::string> own = namedCheckpoints(output);
    std::erase_if(
        own, [step](const auto& one) { return one.first > step || checkpointKind(one.second) != CheckpointKind::Own; });
    std::vector<std::int64_t> deleted;
    for (; static_cast<std::int64_t>(own.size()) > count; own.erase(own.begin())) {
        try {
            removeCheckpoint(own.begin()->second);
            deleted.push_back(own.begin()->first);
        } catch (const base::BadInput& error) {
            base::logWarning(error.message());
        }
    }
    return deleted;
}

std::string findTrainingCheckpoint(const std::string& folder) {
    if (isNamedCheckpoint(folder)) {
        return folder;
    }
    std::map<std::int64_t, std::string> complete = namedCheckpoints(folder);
    std::erase_if(complete, [](const auto& one) { return !isNamedCheckpoint(one.second); });
    if (complete.empty() && !abandonedTraining(folder).empty()) {
        throw base::BadInput(
            fmt::format("{}: the training there ended before its first checkpoint, so there is nothing "
                        "to go on from; run it without --resume",
                        folder));
    }
    if (complete.empty()) {
        throw base::BadInput(
            fmt::format("{}: holds no checkpoint of a training run; name the output folder of one that "
                        "was saved",
                        folder));
    }
    return complete.rbegin()->second;
}

nlohmann::json readTrainingProgress(const std::string& checkpoint) {
    const std::string path = (fs::path(checkpoint) / kTrainerProgressName).string();
    nlohmann::json progress = base::readStrictJson(path);
    if (!progress.is_object()) {
        throw base::BadInput(
            fmt::format("{}: is not a JSON object; the checkpoint is damaged, use an earlier one", path));
    }
    const std::optional<std::int64_t> step = base::integerAt(progress, "step");
    if (!step || *step < 0 || *step == std::numeric_limits<std::int64_t>::max()) {
        throw base::BadInput(fmt::format("{}: step: is missing or is no number of a step", path));
    }
    return progress;
}

void readTrainedState(const std::string& checkpoint, kernels::Context& context, TrainedState& state) {
    const auto file = SafetensorsFile::open((fs::path(checkpoint) / kTrainerTensorsName).string());
    std::vector<std::byte> host;
    for (const TrainedState::Piece& piece : state.pieces()) {
        const TensorEntry* entry = file->find(piece.name);
        if (entry == nullptr || entry->dtype != piece.view.dtype || entry->bytes != piece.view.bytes()) {
            throw base::BadInput(fmt::format("{}: {}: does not fit this run; resume with the model, the parameters and "
                                             "the optimizer of the run that saved it",
                                             file->path(), piece.name));
        }
        forParts(entry->bytes, [&](std::uint64_t offset, std::uint64_t bytes) {
            host.resize(bytes);
            file->read(*entry, offset, host.data(), bytes);
            context.upload(host.data(), piece.view.as<std::byte>() + offset, bytes);
        });
    }
    state.valuesFromMasters();
}

} // namespace vitrine::engine
