// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/checkpoint/gguf_file.h"

#include <algorithm>
#include <array>
#include <utility>

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

} // namespace

GgufFile::GgufFile(const std::string& path) : file_(path), header_(readGgufHeader(file_)) {}

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
