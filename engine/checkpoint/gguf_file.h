// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// An open GGUF file: its header, and its bytes. A model may be cut into files NAME-00001-of-00003.gguf and so on. The
// first one has the metadata and stands for all.

#include <cstdint>
#include <deque>
#include <string>

#include "engine/checkpoint/gguf_header.h"
#include "engine/checkpoint/read_file.h"

namespace vitrine::engine {

/// An open GGUF file, or all files that a model is cut into. Thread-safe reads.
class GgufFile {
public:
    /// Throws what GgufHeader::parse does, and BadInput when the file is not the first one of its model or another one
    /// is missing.
    explicit GgufFile(const std::string& path);
    /// The metadata of the first file, and the tensors of all.
    const GgufHeader& header() const { return header_; }
    const std::string& path() const { return parts_.front().path(); }
    /// Identifies all files, as ReadFile::identity does one.
    std::string identity() const;
    /// Reads bytes [offset, offset + bytes) of a tensor.
    void read(const GgufTensor& tensor, std::uint64_t offset, void* out, std::uint64_t bytes) const;
    /// Whether the file begins as a GGUF file does.
    static bool is(const std::string& path);

private:
    void joinParts(std::int64_t count);

    std::deque<ReadFile> parts_; ///< files cannot be moved
    GgufHeader header_;
};

} // namespace vitrine::engine
