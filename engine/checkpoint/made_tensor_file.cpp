// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/checkpoint/made_tensor_file.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "base/error.h"
#include "base/quoted_text.h"

namespace vitrine::engine {

MadeTensorFile::MadeTensorFile(std::string path, std::string identity, std::vector<TensorEntry> entries)
    : path_(std::move(path)), identity_(std::move(identity)), entries_(std::move(entries)) {
    for (std::size_t i = 0; i < entries_.size(); ++i) {
        byName_.emplace(entries_[i].name, i);
    }
}

const TensorEntry* MadeTensorFile::find(std::string_view name) const {
    const auto found = byName_.find(name);
    return found == byName_.end() ? nullptr : &entries_[found->second];
}

const std::byte* MadeTensorFile::readDirect(const TensorEntry& entry, std::uint64_t offset, std::byte* buffer,
                                            std::uint64_t bytes) const {
    read(entry, offset, buffer, bytes);
    return buffer;
}

void MadeTensorFile::read(const TensorEntry& entry, std::uint64_t offset, void* out, std::uint64_t bytes) const {
    if (offset > entry.bytes || bytes > entry.bytes - offset) {
        throw base::Internal(fmt::format("{}: {}: reading {} bytes at {} of {}", path_, base::quotedText(entry.name),
                                         bytes, offset, entry.bytes));
    }
    const std::size_t tensor = byName_.at(entry.name);
    const Rows how = rowsOf(tensor);
    auto* to = static_cast<std::byte*>(out);
    auto at = static_cast<std::int64_t>(offset);
    const auto end = static_cast<std::int64_t>(offset + bytes);
    std::vector<std::byte> made;
    while (at < end) {
        const std::int64_t row = at / how.bytes;
        const std::int64_t count = std::min(how.most, (end - 1) / how.bytes + 1 - row);
        made.resize(static_cast<std::size_t>(count * how.bytes));
        makeRows(tensor, row, count, made);
        const std::int64_t stop = std::min(end, (row + count) * how.bytes);
        const auto first = made.begin() + (at - row * how.bytes);
        to = std::copy(first, first + (stop - at), to);
        at = stop;
    }
}

} // namespace vitrine::engine
