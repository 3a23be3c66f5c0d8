// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Tensors that the reference code of a format wrote (tests/fixtures/quant).

#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/checkpoint/checkpoint.h"
#include "kernels/core/floats.h"
#include "tests/fixture_paths.h"

namespace vitrine::engine::test {

class ReferenceFile {
public:
    explicit ReferenceFile(const std::string& name)
        : file_(SafetensorsFile::open(vitrine::test::fixture("quant/" + name))) {}

    bool has(const std::string& name) const { return file_->find(name) != nullptr; }
    const TensorEntry& entry(const std::string& name) const {
        const TensorEntry* found = file_->find(name);
        if (found == nullptr) {
            throw std::runtime_error("the fixture has no tensor " + name);
        }
        return *found;
    }
    std::vector<std::uint8_t> bytes(const std::string& name) const {
        std::vector<std::uint8_t> out(entry(name).bytes);
        file_->read(entry(name), 0, out.data(), out.size());
        return out;
    }
    std::vector<float> floats(const std::string& name) const {
        const std::vector<std::uint8_t> stored = bytes(name);
        std::vector<float> out(stored.size() / kernels::bytesOf(entry(name).dtype, 1));
        kernels::loadFloats(entry(name).dtype, stored.data(), 0, static_cast<std::int64_t>(out.size()), out.data());
        return out;
    }

private:
    std::shared_ptr<const SafetensorsFile> file_;
};

} // namespace vitrine::engine::test
