// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "base/output_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <system_error>

#include "base/error.h"
#include "base/passing_file.h"
#include "base/png.h"

namespace vitrine::base {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSqliteMagic("SQLite format 3\0", 16);
constexpr std::size_t kApplicationIdAt = 68;
constexpr unsigned kSessionId = 0x5654524E; // docs/session-format.md

/// An SQLite file with this application id.
bool isSqlite(std::string_view head, unsigned application) {
    if (!head.starts_with(kSqliteMagic) || head.size() < kApplicationIdAt + 4) {
        return false;
    }
    unsigned id = 0;
    for (std::size_t i = 0; i < 4; ++i) {
        id = id << 8 | static_cast<unsigned char>(head[kApplicationIdAt + i]);
    }
    return id == application;
}

/// The first bytes of a regular file; nothing of what is none or cannot be read.
std::string headOf(const std::string& path) {
    std::error_code none;
    if (!fs::is_regular_file(path, none)) {
        return {};
    }
    std::ifstream file(path, std::ios::binary);
    std::string head(kOutputHeadBytes, '\0');
    file.read(head.data(), static_cast<std::streamsize>(head.size()));
    head.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
    return head;
}

/// "step,loss,grad_norm": the head of every table that we write.
bool isTable(std::string_view head) {
    const std::string_view line = head.substr(0, head.find('\n'));
    return line.size() < head.size() && line.find(',') != std::string_view::npos &&
           std::all_of(
               line.begin(), line.end(),
               [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == ','; });
}

/// Whether `head` begins a safetensors file whose metadata name this maker.
bool isMadeBy(std::string_view head, std::string_view maker) {
    constexpr std::size_t kLengthBytes = 8;
    return head.size() > kLengthBytes && head.substr(kLengthBytes).starts_with("{\"__metadata__\":{") &&
           head.find(fmt::format("\"{}\":\"{}\"", kMadeByKey, maker)) != std::string_view::npos;
}

} // namespace

constinit const OutputKind kPictureOutput{"a picture (PNG)", "", isEncodedPng};
constinit const OutputKind kTableOutput{"a table (CSV)", "", isTable};
constinit const OutputKind kChromeOutput{"a chrome trace", "", [](std::string_view head) {
                                             return head.starts_with('{') &&
                                                    head.find("\"program\":\"Vitrine\"") != std::string_view::npos &&
                                                    head.find("\"traceEvents\"") != std::string_view::npos;
                                         }};
constinit const OutputKind kTablesOutput{"an exported database", "",
                                         [](std::string_view head) { return isSqlite(head, kTablesApplicationId); }};

void requireReplaceable(const std::string& path, const OutputKind& kind) {
    const std::string head = headOf(path);
    const bool own = kind.maker.empty() ? kind.isOwn(head) : isMadeBy(head, kind.maker);
    if (head.empty() || own) {
        return;
    }
    if (isSqlite(head, kSessionId)) {
        throw BadInput(fmt::format("{}: is a session with saved runs, which the output would replace; name another "
                                   "file",
                                   path));
    }
    throw BadInput(fmt::format("{}: exists and is not {} that Vitrine wrote; name another file or remove this one",
                               path, kind.name));
}

bool isWrittenInPlace(const std::string& path) {
    std::error_code none;
    const fs::file_status status = fs::status(path, none);
    if (fs::is_directory(status)) {
        throw BadInput(path + ": is a folder; name a file");
    }
    // /dev/stdout may lead to a file that other programs write to.
    return fs::exists(status) &&
           (!fs::is_regular_file(status) || path.starts_with("/dev/") || path.starts_with("/proc/"));
}

std::string outputTarget(const std::string& path) {
    std::error_code error;
    const fs::path target = fs::is_symlink(path, error) ? fs::canonical(path, error) : fs::path();
    return error || target.empty() ? path : target.string();
}

void writeOutput(const std::string& path, const std::function<void(std::ostream&)>& write) {
    const bool inPlace = isWrittenInPlace(path);
    const std::string target = outputTarget(path);
    if (!inPlace) {
        removeAbandonedFiles(target);
    }
    const std::string passing = inPlace ? path : passingName(target);
    errno = 0;
    try {
        std::ofstream out(passing, std::ios::binary | (inPlace ? std::ios::app : std::ios::trunc));
        if (!out) {
            failWriting(path, errno);
        }
        write(out);
        out.close();
        if (!out) {
            failWriting(path, errno);
        }
        if (!inPlace && std::rename(passing.c_str(), target.c_str()) != 0) {
            failWriting(path, errno);
        }
    } catch (...) {
        const int reason = errno;
        if (!inPlace) {
            std::remove(passing.c_str()); // not there when it could not even be made
        }
        errno = reason;
        throw;
    }
}

void failWriting(const std::string& path, int error) {
    const std::string reason = std::strerror(error);
    switch (error) {
    case ENOSPC:
    case EDQUOT:
        throw Internal(fmt::format("{}: writing: {}; free some space on the disk", path, reason));
    case EFBIG:
        throw Internal(fmt::format("{}: writing: {}; raise the limit of file sizes (ulimit -f)", path, reason));
    case EIO:
        throw Internal(fmt::format("{}: writing: {}; check the disk", path, reason));
    default:
        throw BadInput(fmt::format("{}: writing: {}; check the folder and its permissions", path, reason));
    }
}

} // namespace vitrine::base
