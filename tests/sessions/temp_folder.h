// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <stdlib.h>
#include <string>
#include <unistd.h>

namespace vitrine::test {

/// A folder of its own for one test, removed at its end.
class TempFolder {
public:
    enum class Place : std::uint8_t {
        Disk,
        Memory, ///< a file system without a disk, where there is one
    };

    explicit TempFolder(Place place = Place::Disk) {
        const std::filesystem::path memory = "/dev/shm";
        const bool inMemory = place == Place::Memory && ::access(memory.c_str(), W_OK) == 0;
        const std::filesystem::path parent = inMemory ? memory : std::filesystem::temp_directory_path();
        std::string name = (parent / "vitrine-test-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) {
            throw std::runtime_error("no temporary folder");
        }
        path_ = name;
    }
    ~TempFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    TempFolder(const TempFolder&) = delete;
    TempFolder& operator=(const TempFolder&) = delete;

    std::string file(const std::string& name) const { return (path_ / name).string(); }
    const std::filesystem::path& path() const { return path_; }

private:
    std::filesystem::path path_;
};

inline std::string readAll(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline void writeAll(const std::string& path, const std::string& bytes) {
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

} // namespace vitrine::test
