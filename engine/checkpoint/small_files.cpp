// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/checkpoint/small_files.h"

#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/error.h"
#include "base/regular_file.h"
#include "base/strict_json.h"

namespace vitrine::engine {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr std::size_t kMaxConfigBytes = std::size_t{16} << 20;
constexpr std::size_t kMaxConfigValues = std::size_t{1} << 20;

} // namespace

bool hasFile(const fs::path& path) {
    std::error_code error;
    if (fs::symlink_status(path, error).type() == fs::file_type::not_found) {
        return false;
    }
    const fs::file_status status = fs::status(path, error);
    if (!fs::exists(status)) {
        throw base::BadInput(path.string() + ": is a link that leads nowhere; complete the model's folder");
    }
    if (!fs::is_regular_file(status)) {
        throw base::BadInput(path.string() + ": is no regular file; put the model's file there or take it away");
    }
    return true;
}

std::string readSmallFile(const fs::path& path) {
    const std::uint64_t bytes = base::regularFileBytes(path.string());
    if (bytes > kMaxConfigBytes) {
        throw base::BadInput(
            fmt::format("{}: size: has {} bytes, and {} at most are read", path.string(), bytes, kMaxConfigBytes));
    }
    std::ifstream file(path, std::ios::binary);
    std::string text(static_cast<std::size_t>(bytes), '\0');
    if (!file.read(text.data(), static_cast<std::streamsize>(bytes))) {
        throw base::BadInput(path.string() + ": reading: failed");
    }
    return text;
}

json parseSmallText(const std::string& text, const fs::path& path) {
    base::JsonLimits limits;
    limits.maxBytes = kMaxConfigBytes;
    limits.maxValues = kMaxConfigValues;
    return base::parseStrictJson(text, path.string(), limits);
}

json parseSmallFile(const fs::path& path) {
    return parseSmallText(readSmallFile(path), path);
}

} // namespace vitrine::engine
