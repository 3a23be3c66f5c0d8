// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Files for the checkpoint tests: a folder that vanishes, and the bytes of safetensors files, right or wrong.

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>
#include <string>
#include <string_view>
#include <unistd.h>

#include "base/error.h"
#include "tests/fixture_paths.h"

namespace vitrine::engine::test {

class TempFolder {
public:
    TempFolder() {
        static int number = 0;
        path_ = std::filesystem::temp_directory_path() /
                ("vitrine-checkpoint-" + std::to_string(::getpid()) + "-" + std::to_string(number++));
        std::filesystem::create_directories(path_);
    }
    ~TempFolder() {
        std::error_code error;
        std::filesystem::remove_all(path_, error);
    }
    TempFolder(const TempFolder&) = delete; // owns the folder
    TempFolder& operator=(const TempFolder&) = delete;

    std::string file(const std::string& name) const { return (path_ / name).string(); }
    std::string path() const { return path_.string(); }
    std::string write(const std::string& name, std::string_view bytes) const {
        std::ofstream(path_ / name, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
        return file(name);
    }

private:
    std::filesystem::path path_;
};

inline std::string readBytes(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream out;
    out << file.rdbuf();
    return out.str();
}

/// 8 bytes of length, the header, `dataBytes` bytes of data.
inline std::string safetensorsBytes(const std::string& header, std::size_t dataBytes) {
    std::string bytes;
    for (int i = 0; i < 8; ++i) {
        bytes.push_back(static_cast<char>(static_cast<std::uint64_t>(header.size()) >> (8 * i)));
    }
    bytes += header;
    for (std::size_t i = 0; i < dataBytes; ++i) {
        bytes.push_back(static_cast<char>(i));
    }
    return bytes;
}

/// A model folder's copy, to be damaged.
inline void copyFixture(const std::string& name, const TempFolder& to) {
    std::filesystem::copy(vitrine::test::fixture(name), to.path(), std::filesystem::copy_options::recursive);
    std::filesystem::remove(to.file("expected.safetensors"));
}

/// The message that `action` fails with, prefixed by its kind; "no error" when it does not fail.
template <class Action> std::string failure(Action&& action) {
    try {
        action();
    } catch (const base::Error& error) {
        return std::string(base::errorKindName(error.kind())) + ": " + error.message();
    }
    return "no error";
}

} // namespace vitrine::engine::test
