// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Files of rollouts for tests, right or with one fault.

#include <cstdint>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/engine/checkpoint/checkpoint_test_files.h"

namespace vitrine::engine::test {

/// A safetensors file that is made tensor by tensor.
class TensorFileMaker {
public:
    template <class Number>
    TensorFileMaker& set(const std::string& name, const std::vector<std::int64_t>& shape,
                         const std::vector<Number>& values) {
        static_assert(sizeof(Number) == 4 || sizeof(Number) == 8);
        const bool whole = std::is_integral_v<Number>;
        Part part{whole ? (sizeof(Number) == 4 ? "I32" : "I64") : (sizeof(Number) == 4 ? "F32" : "F64"), shape, {}};
        part.bytes.assign(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Number));
        parts_[name] = part;
        return *this;
    }
    TensorFileMaker& remove(const std::string& name) {
        parts_.erase(name);
        return *this;
    }
    std::string bytes() const {
        nlohmann::json header = nlohmann::json::object();
        std::string data;
        for (const auto& [name, part] : parts_) {
            header[name] = {{"dtype", part.dtype},
                            {"shape", part.shape},
                            {"data_offsets", {data.size(), data.size() + part.bytes.size()}}};
            data += part.bytes;
        }
        std::string out = safetensorsBytes(header.dump(), 0);
        return out + data;
    }

private:
    struct Part {
        std::string dtype;
        std::vector<std::int64_t> shape;
        std::string bytes;
    };
    std::map<std::string, Part> parts_;
};

/// Two prompts with two answers each, of different lengths; ids below 64. Row 1 and 3 have the prompt (5, 6, 7).
inline TensorFileMaker fourRollouts() {
    TensorFileMaker out;
    out.set<std::int32_t>("input_ids", {4, 6},
                          {1, 2, 11, 12, 0, 0, 5, 6, 7, 21, 22, 23, 1, 2, 13, 0, -1, 99, 5, 6, 7, 24, 0, 0});
    out.set<std::int32_t>("prompt_lengths", {4}, {2, 3, 2, 3});
    out.set<std::int32_t>("lengths", {4}, {4, 6, 3, 4});
    out.set<float>("rewards", {4}, {1, 0, 0, 2});
    out.set<std::int32_t>("groups", {4}, {0, 1, 0, 1});
    std::vector<float> rollout(24);
    for (std::size_t i = 0; i < rollout.size(); ++i) {
        rollout[i] = -1 - 0.01F * static_cast<float>(i);
    }
    out.set<float>("rollout_logprobs", {4, 6}, rollout);
    return out;
}

} // namespace vitrine::engine::test
