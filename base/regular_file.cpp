// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "base/regular_file.h"

#include <filesystem>
#include <fmt/format.h>
#include <ios>
#include <system_error>

#include "base/error.h"

namespace vitrine::base {

std::uint64_t regularFileBytes(const std::string& path) {
    std::error_code error;
    const std::filesystem::file_status status = std::filesystem::status(path, error);
    if (status.type() == std::filesystem::file_type::not_found) {
        throw BadInput(fmt::format("{}: does not exist", path));
    }
    if (status.type() == std::filesystem::file_type::none) {
        throw BadInput(fmt::format("{}: cannot be read: {}", path, error.message()));
    }
    if (!std::filesystem::is_regular_file(status)) {
        throw BadInput(fmt::format("{}: is no regular file; give a file, not a folder, a pipe or a device", path));
    }
    const std::uintmax_t size = std::filesystem::file_size(path, error);
    if (error) {
        throw BadInput(fmt::format("{}: cannot be read: {}", path, error.message()));
    }
    return size;
}

void readNaming(const std::string& path, const std::function<void()>& read) {
    try {
        read();
    } catch (const std::ios_base::failure& failure) {
        throw BadInput(fmt::format("{}: reading: {}; check the disk, or copy the file to another one", path,
                                   failure.code().message()));
    }
}

} // namespace vitrine::base
