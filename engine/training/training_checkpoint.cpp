// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/training_checkpoint.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fmt/format.h>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "base/json_values.h"
#include "base/strict_json.h"
#include "engine/checkpoint/atomic_file.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/training/trained_state.h"
#include "kernels/context/context.h"

namespace vitrine::engine {

namespace {

namespace fs = std::filesystem;

constexpr const char* kProgressFile = "trainer_state.json";
constexpr const char* kTensorFile = "trainer_state.safetensors";
constexpr std::string_view kFolderPrefix = "checkpoint-";
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

std::optional<std::int64_t> stepOf(const fs::path& folder) {
    const std::string name = folder.filename().string();
    std::int64_t step = 0;
    const char* const end = name.data() + name.size();
    if (!name.starts_with(kFolderPrefix)) {
        return std::nullopt;
    }
    const auto parsed = std::from_chars(name.data() + kFolderPrefix.size(), end, step);
    return parsed.ec == std::errc() && parsed.ptr == end ? std::optional(step) : std::nullopt;
}

[[noreturn]] void failAt(const fs::path& path, const std::error_code& error) {
    throw base::BadInput(fmt::format("{}: cannot be written: {}", path.string(), error.message()));
}

bool hasProgress(const fs::path& folder) {
    std::error_code none;
    return fs::exists(folder / kProgressFile, none);
}

/// The complete checkpoints of a folder by their steps.
std::map<std::int64_t, fs::path> completeCheckpoints(const fs::path& folder) {
    std::map<std::int64_t, fs::path> out;
    std::error_code error;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
        const std::optional<std::int64_t> step = stepOf(it->path());
        if (step && hasProgress(it->path())) {
            out[*step] = it->path();
        }
    }
    return out;
}

} // namespace

std::string writeTrainingCheckpoint(const std::string& output, std::int64_t step, kernels::Context& context,
                                    const TrainedState& state, const nlohmann::json& progress,
                                    const std::function<void(const std::string& folder)>& more) {
    const fs::path folder = fs::path(output) / fmt::format("{}{}", kFolderPrefix, step);
    const fs::path partial = folder.string() + ".partial";
    std::error_code error;
    fs::remove_all(partial, error);
    if (!fs::create_directories(partial, error) || error) {
        failAt(partial, error);
    }
    writePieces((partial / kTensorFile).string(), context, state);
    if (more) {
        more(partial.string());
    }
    nlohmann::json text = progress;
    text["step"] = step;
    writeTextFile((partial / kProgressFile).string(), text.dump(1));
    fs::remove_all(folder, error);
    fs::rename(partial, folder, error);
    if (error) {
        failAt(folder, error);
    }
    return folder.string();
}

std::vector<std::int64_t> keepLatestCheckpoints(const std::string& output, std::int64_t count) {
    std::map<std::int64_t, fs::path> complete = completeCheckpoints(output);
    std::vector<std::int64_t> deleted;
    while (static_cast<std::int64_t>(complete.size()) > count) {
        std::error_code error;
        fs::remove_all(complete.begin()->second, error);
        if (!error) {
            deleted.push_back(complete.begin()->first);
        }
        complete.erase(complete.begin());
    }
    return deleted;
}

std::string findTrainingCheckpoint(const std::string& folder) {
    if (hasProgress(folder)) {
        return folder;
    }
    const std::map<std::int64_t, fs::path> complete = completeCheckpoints(folder);
    if (complete.empty()) {
        throw base::BadInput(
            fmt::format("{}: holds no checkpoint of a training run; name the output folder of one that "
                        "was saved",
                        folder));
    }
    return complete.rbegin()->second.string();
}

nlohmann::json readTrainingProgress(const std::string& checkpoint) {
    const std::string path = (fs::path(checkpoint) / kProgressFile).string();
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
    const auto file = SafetensorsFile::open((fs::path(checkpoint) / kTensorFile).string());
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
