// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <fstream>

#include "base/regular_file.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/language/module.h"

namespace vitrine::engine {

namespace {

constexpr std::uint64_t kMaxCapturedBytes = std::uint64_t{1} << 30; // of one captured tensor

/// What the attention op itself reads from the same file: large, and never captured.
constexpr std::array<std::string_view, 5> kOperands = {"q", "k", "v", "grad_out", "sinks"};

} // namespace

PyFile readPyFile(const std::string& path) {
    const std::uint64_t size = base::regularFileBytes(path);
    if (size > kMaxSourceBytes) {
        throw base::BadInput(
            fmt::format("{}: has {} bytes; a file of attention programs has at most {}", path, size, kMaxSourceBytes));
    }
    PyFile file{path, std::string(static_cast<std::size_t>(size), '\0')};
    errno = 0;
    std::ifstream stream(path, std::ios::binary);
    if (!stream || !stream.read(file.text.data(), static_cast<std::streamsize>(size))) {
        throw base::BadInput(fmt::format("{}: cannot be read: {}", path,
                                         errno != 0 ? std::strerror(errno) : "it became shorter while it was read"));
    }
    return file;
}

kernels::CaptureBinding ChosenProgram::binding() const {
    kernels::CaptureBinding made;
    for (std::size_t i = 0; i < captures.size(); ++i) {
        if (!captures[i].data) {
            throw base::BadInput(
                fmt::format("{}: the program reads this tensor, whose contents are not known; bind it by a "
                            "safetensors file that has it",
                            program.captures[i].name));
        }
        made.tensors.push_back(captures[i].view());
    }
    kernels::checkCaptures(program, made);
    return made;
}

CapturedTensors readCapturedTensors(const std::string& safetensorsPath) {
    using kernels::DType;
    static constexpr std::array<DType, 10> kTypes = {DType::F64, DType::F32, DType::BF16, DType::F16, DType::I64,
                                                     DType::I32, DType::I16, DType::I8,   DType::U8,  DType::Bool};
    const std::shared_ptr<const SafetensorsFile> file = SafetensorsFile::open(safetensorsPath);
    CapturedTensors tensors;
    for (const TensorEntry& entry : file->tensors()) {
        const bool operand = std::find(kOperands.begin(), kOperands.end(), entry.name) != kOperands.end();
        const bool known = std::find(kTypes.begin(), kTypes.end(), entry.dtype) != kTypes.end();
        if (operand || !known || entry.shape.size() > static_cast<std::size_t>(kernels::kMaxRank) ||
            entry.bytes > kMaxCapturedBytes) {
            continue;
        }
        auto bytes = std::make_shared<std::vector<std::byte>>(static_cast<std::size_t>(entry.bytes));
        file->read(entry, 0, bytes->data(), entry.bytes);
        tensors[entry.name] = {entry.dtype, kernels::Shape(entry.shape), std::move(bytes)};
    }
    return tensors;
}

} // namespace vitrine::engine
