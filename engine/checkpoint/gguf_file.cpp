// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/checkpoint/gguf_file.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fmt/format.h>
#include <system_error>
#include <utility>

#include "engine/checkpoint/config_reader.h"

namespace vitrine::engine {
namespace {

constexpr std::uint64_t kFirstPart = std::uint64_t{1} << 20; ///< of a file, that is read for its header

/// More of the file at a time, until the header is whole.
GgufHeader readGgufHeader(const ReadFile& file) {
    for (std::uint64_t part = kFirstPart;; part *= 2) {
        std::string bytes(static_cast<std::size_t>(std::min(part, file.bytes())), '\0');
        file.read(0, bytes.data(), bytes.size());
        if (auto header = GgufHeader::parse(std::move(bytes), file.bytes(), file.path())) {
            return std::move(*header);
        }
    }
}

std::string partEnding(std::int64_t number, std::int64_t count) {
    return fmt::format("-{:05}-of-{:05}.gguf", number + 1, count);
}

} // namespace

GgufFile::GgufFile(const std::string& path) : parts_(), header_(readGgufHeader(parts_.emplace_back(path))) {
    if (const auto count = header_.integer("split.count"); count && *count > 1) {
        joinParts(*count);
    }
}

void GgufFile::joinParts(std::int64_t count) {
    constexpr std::string_view kNumber = "split.no", kTensors = "split.tensors.count";
    const std::string first = path();
    const std::string ending = partEnding(0, count);
    if (!first.ends_with(ending) || header_.integer(kNumber).value_or(0) != 0) {
        header_.bad("split.count",
                    fmt::format("the model is cut into {} files; give the first one, whose name must end "
                                "with {}",
                                count, ending));
    }
    const std::string name = first.substr(0, first.size() - ending.size());
    for (std::int64_t number = 1; number < count; ++number) {
        const std::string other = name + partEnding(number, count);
        std::error_code none;
        if (!std::filesystem::exists(other, none)) {
            header_.bad("split.count", fmt::format("the model is cut into {} files, and {} is missing; put it beside "
                                                   "this one",
                                                   count, quotedText(other)));
        }
        GgufHeader part = readGgufHeader(parts_.emplace_back(other));
        if (part.integer(kNumber) != number || part.integer("split.count") != count) {
            part.bad(kNumber,
                     fmt::format("is not that of file {} of {}; the file is of another model", number + 1, count));
        }
        header_.join(std::move(part), static_cast<std::uint32_t>(number));
    }
    const auto tensors = std::ssize(header_.tensors());
    if (const std::int64_t expected = header_.integer(kTensors).value_or(tensors); expected != tensors) {
        header_.bad(kTensors,
                    fmt::format("is {}, and the {} files of the model have {} tensors; one of them is of another "
                                "model",
                                expected, count, tensors));
    }
}

std::string GgufFile::identity() const {
    std::string out;
    for (const ReadFile& part : parts_) {
        out += (out.empty() ? "" : "; ") + part.identity();
    }
    return out;
}

void GgufFile::read(const GgufTensor& tensor, std::uint64_t offset, void* out, std::uint64_t bytes) const {
    parts_[tensor.part].read(tensor.offset + offset, out, bytes);
}

bool GgufFile::is(const std::string& path) {
    const ReadFile file(path);
    std::array<char, kGgufMagic.size()> magic{};
    if (file.bytes() < magic.size()) {
        return false;
    }
    file.read(0, magic.data(), magic.size());
    return std::string_view(magic.data(), magic.size()) == kGgufMagic;
}

} // namespace vitrine::engine
