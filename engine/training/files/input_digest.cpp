// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/files/input_digest.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <vector>

#include "base/sha256.h"

namespace vitrine::engine {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kSampleBytes = std::uint64_t{64} << 20; ///< of all files together
constexpr std::uint64_t kSamplePiece = std::uint64_t{64} << 10;
constexpr std::uint64_t kReadBytes = std::uint64_t{1} << 20;

std::uint64_t sizeOf(const std::string& path) {
    std::error_code error;
    const bool regular = fs::is_regular_file(path, error);
    const std::uintmax_t size = regular ? fs::file_size(path, error) : 0;
    return error ? 0 : size;
}

void addBytes(base::Sha256& hash, std::ifstream& file, std::uint64_t begin, std::uint64_t count) {
    std::string bytes(count, '\0');
    file.clear();
    file.seekg(static_cast<std::streamoff>(begin));
    file.read(bytes.data(), static_cast<std::streamsize>(count));
    hash.add(std::string_view(bytes).substr(0, static_cast<std::size_t>(file.gcount())));
}

/// All of a file, or `share` bytes of it in pieces from its first to its last byte.
void addFile(base::Sha256& hash, const std::string& path, std::uint64_t share, const base::StopToken& stop) {
    const std::uint64_t size = sizeOf(path);
    std::ifstream file(path, std::ios::binary);
    hash.add(fmt::format("{}\n", size));
    if (share >= size) {
        for (std::uint64_t at = 0; at < size; at += kReadBytes) {
            base::throwIfStopped(stop);
            addBytes(hash, file, at, std::min(kReadBytes, size - at));
        }
        return;
    }
    const std::uint64_t pieces = std::max<std::uint64_t>(share / kSamplePiece, 2);
    const std::uint64_t piece = std::min(kSamplePiece, size);
    const std::uint64_t gap = (size - piece) / (pieces - 1); // the product below is at most the size
    for (std::uint64_t i = 0; i < pieces; ++i) {
        base::throwIfStopped(stop);
        addBytes(hash, file, i + 1 == pieces ? size - piece : i * gap, piece);
    }
}

std::string digestOfSamples(const std::vector<std::string>& paths, const base::StopToken& stop) {
    std::uint64_t total = 0;
    for (const std::string& path : paths) {
        total += sizeOf(path);
    }
    if (total == 0) {
        return {};
    }
    base::Sha256 hash;
    for (const std::string& path : paths) {
        const std::uint64_t size = sizeOf(path);
        const double part = static_cast<double>(size) / static_cast<double>(total);
        addFile(hash, path,
                total <= kSampleBytes ? size : static_cast<std::uint64_t>(part * static_cast<double>(kSampleBytes)),
                stop);
    }
    return hash.hex();
}

} // namespace

std::string fileDigest(const std::string& path, const base::StopToken& stop) {
    std::error_code none;
    if (!fs::is_regular_file(path, none)) {
        return {};
    }
    base::Sha256 hash;
    addFile(hash, path, sizeOf(path), stop);
    return hash.hex();
}

std::string jsonDigest(const std::string& text) {
    const nlohmann::json value = nlohmann::json::parse(text, nullptr, false);
    return base::sha256Hex(value.is_discarded() ? text
                                                : value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

std::string weightsDigest(const ModelSource& source, const base::StopToken& stop) {
    if (source.synthetic()) {
        return {};
    }
    std::set<std::string> files;
    for (const auto& [name, location] : source.checkpoint->tensors()) {
        files.insert(location.file->path());
    }
    std::vector<std::string> paths(files.begin(), files.end());
    std::ranges::stable_sort(paths, {}, [](const std::string& path) { return fs::path(path).filename(); });
    return digestOfSamples(paths, stop);
}

std::string adapterDigest(const std::string& folder, const base::StopToken& stop) {
    return digestOfSamples({folder + "/adapter_config.json", folder + "/adapter_model.safetensors"}, stop);
}

} // namespace vitrine::engine
