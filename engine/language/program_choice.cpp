// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/language/program_choice.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace vitrine::engine {

namespace {

constexpr std::string_view kDocuments = "documents:";

/// The text between commas as a number; false: it is none.
template <class T> bool numberOf(std::string_view part, T& value) {
    const std::size_t begin = part.find_first_not_of(' ');
    part = begin == std::string_view::npos ? std::string_view() : part.substr(begin);
    while (part.ends_with(' ')) {
        part.remove_suffix(1);
    }
    const auto [stop, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    return error == std::errc{} && stop == part.data() + part.size();
}

std::vector<std::string_view> commaParts(std::string_view text) {
    std::vector<std::string_view> parts;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find(',', begin), text.size());
        parts.push_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    return parts;
}

template <class T> CapturedTensor tensorOf(kernels::DType dtype, const std::vector<T>& values) {
    CapturedTensor tensor;
    tensor.dtype = dtype;
    tensor.shape = kernels::Shape{static_cast<std::int64_t>(values.size())};
    auto bytes = std::make_shared<std::vector<std::byte>>(values.size() * sizeof(T));
    std::memcpy(bytes->data(), values.data(), bytes->size());
    tensor.data = std::move(bytes);
    return tensor;
}

CapturedTensor documentTensor(std::string_view name, std::string_view lengths) {
    std::vector<std::int32_t> ids;
    std::int32_t document = 0;
    for (const std::string_view part : commaParts(lengths)) {
        std::int64_t length = 0;
        if (!numberOf(part, length) || length <= 0 || length > kMaxElements) {
            throw base::BadInput(
                fmt::format("{}: \"{}\" is no length of a document; give positive integers", name, part));
        }
        if (static_cast<std::int64_t>(ids.size()) + length > kMaxElements) {
            throw base::BadInput(
                fmt::format("{}: the documents have more than {} tokens in all; shorten them", name, kMaxElements));
        }
        ids.insert(ids.end(), static_cast<std::size_t>(length), document++);
    }
    return tensorOf(kernels::DType::I32, ids);
}

CapturedTensor numberTensor(std::string_view name, std::string_view list) {
    std::vector<std::int32_t> integers;
    std::vector<float> reals;
    bool whole = true;
    for (const std::string_view part : commaParts(list)) {
        std::int32_t integer = 0;
        double real = 0;
        if (!numberOf(part, real) || !std::isfinite(real)) {
            throw base::BadInput(fmt::format("{}: \"{}\" is no number; give numbers with commas between them, or {}"
                                             "LENGTH,LENGTH",
                                             name, part, kDocuments));
        }
        whole = whole && numberOf(part, integer);
        integers.push_back(integer);
        reals.push_back(static_cast<float>(real));
    }
    return whole ? tensorOf(kernels::DType::I32, integers) : tensorOf(kernels::DType::F32, reals);
}

/// The name and the value of "NAME=VALUE".
std::pair<std::string, std::string_view> assignment(std::string_view option, std::string_view text,
                                                    std::string_view form) {
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos || equals == 0) {
        throw base::BadInput(fmt::format("{}: \"{}\" must be {}", option, text.substr(0, 80), form));
    }
    return {std::string(text.substr(0, equals)), text.substr(equals + 1)};
}

} // namespace

PyModule parseModule(const ProgramChoice& choice) {
    std::vector<PyFile> files;
    files.reserve(choice.files.size() + 1);
    for (const std::string& path : choice.files) {
        files.push_back(readPyFile(path));
    }
    if (!choice.program.empty()) {
        files.push_back({std::string(kProgramTextName), choice.program});
    }
    return PyModule::parse(files);
}

ProgramOptions programOptions(const ProgramChoice& choice, const CapturedTensors& tensors) {
    ProgramOptions options;
    options.tensors = tensors;
    for (const std::string& text : choice.captures) {
        auto [name, tensor] = parseCaptureText(text);
        options.tensors.insert_or_assign(std::move(name), std::move(tensor));
    }
    options.integers = {{"B", choice.batch},       {"H", choice.heads},         {"Hq", choice.heads},
                        {"HQ", choice.heads},      {"HKV", choice.kvHeads},     {"Hkv", choice.kvHeads},
                        {"S", choice.queries},     {"SEQ_LEN", choice.queries}, {"S_LEN", choice.queries},
                        {"Q_LEN", choice.queries}, {"KV_LEN", choice.keys}};
    if (choice.headDim > 0) {
        options.integers["D"] = choice.headDim;
        options.integers["HEAD_DIM"] = choice.headDim;
    }
    for (const auto& [name, value] : choice.defines) {
        options.integers[name] = value;
    }
    options.sliders.insert(choice.parameters.begin(), choice.parameters.end());
    return options;
}

std::pair<std::string, CapturedTensor> parseCaptureText(std::string_view text) {
    auto [name, value] = assignment("capture", text, "NAME=1,2,3 or NAME=documents:LENGTH,LENGTH");
    CapturedTensor tensor = value.starts_with(kDocuments) ? documentTensor(name, value.substr(kDocuments.size()))
                                                          : numberTensor(name, value);
    return {std::move(name), std::move(tensor)};
}

std::string documentsText(std::string_view name, const std::vector<std::int64_t>& lengths) {
    return fmt::format("{}={}{}", name, kDocuments, fmt::join(lengths, ","));
}

std::pair<std::string, double> parseParameter(std::string_view option, std::string_view text) {
    auto [name, part] = assignment(option, text, "NAME=NUMBER");
    double value = 0;
    if (!numberOf(part, value) || !std::isfinite(value)) {
        throw base::BadInput(fmt::format("{}: \"{}\" must be NAME=NUMBER", option, text.substr(0, 80)));
    }
    return {std::move(name), value};
}

std::pair<std::string, std::int64_t> parseDefine(std::string_view option, std::string_view text) {
    auto [name, part] = assignment(option, text, "NAME=INTEGER");
    std::int64_t value = 0;
    if (!numberOf(part, value)) {
        throw base::BadInput(fmt::format("{}: \"{}\" must be NAME=INTEGER", option, text.substr(0, 80)));
    }
    return {std::move(name), value};
}

} // namespace vitrine::engine
