// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Reference tensors of attention programs (tests/fixtures/flex, flex384; made in float64 and checked against PyTorch's
// flex_attention). Of NAME.out, .dq, .dk and .dv the files keep rows 5, 11, 17, ... of dimension 2.

#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "kernels/core/tensor.h"
#include "tests/fixture_paths.h"

namespace vitrine::kernels::testing {

inline constexpr std::int64_t kFirstKeptRow = 5;
inline constexpr std::int64_t kKeptRowStep = 6;

class FlexFixture {
public:
    explicit FlexFixture(const std::string& name)
        : FlexFixture(std::in_place, vitrine::test::fixture(name + "/flex.safetensors")) {}
    /// Any other file of F32 and I32 tensors.
    static FlexFixture read(const std::string& path) { return {std::in_place, path}; }

    bool has(const std::string& name) const { return tensors_.count(name) != 0; }
    TensorView view(const std::string& name) const {
        const Tensor& tensor = tensors_.at(name);
        return {const_cast<std::int32_t*>(tensor.words.data()), tensor.dtype, tensor.shape,
                0}; // NOLINT(cppcoreguidelines-pro-type-const-cast): read only
    }
    std::vector<float> floats(const std::string& name) const {
        const TensorView tensor = view(name);
        return {tensor.as<const float>(), tensor.as<const float>() + tensor.shape.count()};
    }
    std::vector<std::int32_t> integers(const std::string& name) const { return tensors_.at(name).words; }

private:
    FlexFixture(std::in_place_t, const std::string& path) {
        std::ifstream file(path, std::ios::binary);
        const std::string bytes{std::istreambuf_iterator<char>(file), {}};
        std::uint64_t length = 0;
        if (bytes.size() < sizeof length) {
            throw std::runtime_error(path + " is missing");
        }
        std::memcpy(&length, bytes.data(), sizeof length);
        const nlohmann::json header = nlohmann::json::parse(bytes.substr(8, length));
        for (const auto& [key, value] : header.items()) {
            if (key == "__metadata__") {
                continue;
            }
            Tensor& tensor = tensors_[key];
            tensor.dtype = value["dtype"] == "F32" ? DType::F32 : DType::I32;
            const auto dims = value["shape"].get<std::vector<std::int64_t>>();
            tensor.shape = Shape(dims);
            const auto begin = value["data_offsets"][0].get<std::size_t>();
            const auto end = value["data_offsets"][1].get<std::size_t>();
            tensor.words.resize((end - begin) / 4);
            std::memcpy(tensor.words.data(), bytes.data() + 8 + length + begin, end - begin);
        }
    }

    struct Tensor {
        DType dtype = DType::F32;
        Shape shape;
        std::vector<std::int32_t> words;
    };
    std::map<std::string, Tensor> tensors_;
};

} // namespace vitrine::kernels::testing
