// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Files of tensors whose bytes are made while they are read: from blocks of another format, or from parts of several
// files.

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/checkpoint/checkpoint.h"

namespace vitrine::engine {

/// Whoever derives lists the tensors and makes whole rows of them. Thread-safe reads, if makeRows() is.
class MadeTensorFile : public SafetensorsFile {
public:
    const std::string& path() const override { return path_; }
    const std::string& identity() const override { return identity_; }
    const std::vector<TensorEntry>& tensors() const override { return entries_; }
    const std::map<std::string, std::string>& metadata() const override { return metadata_; }
    const TensorEntry* find(std::string_view name) const override;
    void read(const TensorEntry& entry, std::uint64_t offset, void* out, std::uint64_t bytes) const override;
    /// What is read is taken apart or put together, which the page cache serves best.
    double cachedShare() const override { return 1; }
    const std::byte* readDirect(const TensorEntry& entry, std::uint64_t offset, std::byte* buffer,
                                std::uint64_t bytes) const override;

protected:
    MadeTensorFile(std::string path, std::string identity, std::vector<TensorEntry> entries);

    /// How the bytes of a tensor are made.
    struct Rows {
        std::int64_t bytes = 0; ///< of one row
        std::int64_t most = 1;  ///< rows that are made at once
    };
    virtual Rows rowsOf(std::size_t tensor) const = 0;
    /// `count` rows of tensor `tensor` (a number in tensors()) from row `first` on.
    virtual void makeRows(std::size_t tensor, std::int64_t first, std::int64_t count,
                          std::span<std::byte> out) const = 0;

private:
    std::string path_;
    std::string identity_;
    std::vector<TensorEntry> entries_;
    std::map<std::string, std::string> metadata_;
    std::unordered_map<std::string_view, std::size_t> byName_; ///< views into entries_
};

} // namespace vitrine::engine
