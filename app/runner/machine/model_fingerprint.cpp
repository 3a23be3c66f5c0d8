// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/runner/machine/model_fingerprint.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <vector>

#include "base/sha256.h"

namespace vitrine::app {

namespace {

constexpr std::uint64_t kEnd = 64 * 1024;
constexpr const char* kUnknown = "unknown";

bool addPiece(std::ifstream& file, std::uint64_t begin, std::uint64_t length, base::Sha256& hash) {
    std::string bytes(length, '\0');
    file.seekg(static_cast<std::streamoff>(begin));
    file.read(bytes.data(), static_cast<std::streamsize>(length));
    hash.add(bytes);
    return static_cast<std::uint64_t>(file.gcount()) == length;
}

} // namespace

std::string modelFingerprint(const std::string& folder) {
    namespace fs = std::filesystem;
    std::error_code error;
    std::vector<fs::path> files;
    for (fs::directory_iterator next(folder, error), end; !error && next != end; next.increment(error)) {
        if (next->is_regular_file(error) && !error) {
            files.push_back(next->path());
        }
        error.clear(); // a link to nowhere is no file of the model
    }
    if (error || files.empty()) {
        return kUnknown;
    }
    std::ranges::sort(files);
    base::Sha256 hash;
    for (const fs::path& path : files) {
        const std::uint64_t size = fs::file_size(path, error);
        std::ifstream file(path, std::ios::binary);
        if (error || !file) {
            return kUnknown;
        }
        hash.add(fmt::format("{}\n{}\n", path.filename().string(), size));
        const std::uint64_t first = std::min(size, kEnd), last = std::min(size - first, kEnd);
        if (!addPiece(file, 0, first, hash) || !addPiece(file, size - last, last, hash)) {
            return kUnknown;
        }
    }
    return hash.hex().substr(0, 16);
}

} // namespace vitrine::app
