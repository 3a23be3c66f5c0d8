// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Copies of model fixtures with a damaged weight.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/fixture_paths.h"

namespace vitrine::engine::test {

/// Copies a model fixture to the folder `to`. One row of a tensor is NaN in the copy.
inline void copyWithBrokenRow(const std::string& name, const std::string& to, const std::string& tensor,
                              std::size_t row) {
    namespace fs = std::filesystem;
    fs::copy(vitrine::test::fixture(name), to, fs::copy_options::recursive);
    const std::string path = to + "/model.safetensors";
    fs::permissions(path, fs::perms::owner_write, fs::perm_options::add);
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    std::uint64_t length = 0;
    file.read(reinterpret_cast<char*>(&length), sizeof length); // NOLINT: the first field of the format
    std::string header(length, ' ');
    file.read(header.data(), static_cast<std::streamsize>(length));
    const nlohmann::json entry = nlohmann::json::parse(header).at(tensor);
    const auto begin = entry.at("data_offsets").at(0).get<std::size_t>();
    const auto end = entry.at("data_offsets").at(1).get<std::size_t>();
    const std::string ones((end - begin) / entry.at("shape").at(0).get<std::size_t>(), '\xFF'); // NaN in every type
    file.seekp(static_cast<std::streamoff>(sizeof length + length + begin + row * ones.size()));
    file.write(ones.data(), static_cast<std::streamsize>(ones.size()));
}

} // namespace vitrine::engine::test
