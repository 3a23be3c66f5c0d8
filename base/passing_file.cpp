// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "base/passing_file.h"

#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fmt/format.h>
#include <unistd.h>

namespace vitrine::base {

namespace {
constexpr std::chrono::minutes kYoung{1};
} // namespace

std::string passingName(const std::string& path) {
    return fmt::format("{}.new-{}-{}", path, ::getpid(), std::chrono::steady_clock::now().time_since_epoch().count());
}

void removeAbandonedFiles(const std::string& path) {
    namespace fs = std::filesystem;
    const std::string start = fs::path(path).filename().string() + ".new-";
    const fs::path folder = fs::path(path).parent_path();
    std::error_code error;
    for (fs::directory_iterator it(folder.empty() ? fs::path(".") : folder, error), end; !error && it != end;
         it.increment(error)) {
        const std::string name = it->path().filename().string();
        if (!name.starts_with(start)) {
            continue;
        }
        ::pid_t owner = 0;
        const auto parsed = std::from_chars(name.data() + start.size(), name.data() + name.size(), owner);
        const bool gone = parsed.ec == std::errc() && owner > 0 && ::kill(owner, 0) != 0 && errno == ESRCH;
        std::error_code unknown;
        const auto written = fs::last_write_time(it->path(), unknown);
        if (gone && !unknown && fs::file_time_type::clock::now() - written > kYoung) {
            fs::remove(it->path(), unknown);
        }
    }
}

} // namespace vitrine::base
